// Package runtime is the plugin contract in plain Go: what a plugin author implements and what the host calls.
//
// The structs and enums in contract.gen.go are generated from proto/openphone, comments included, so the two cannot
// drift apart; this file holds the interfaces. Runtime is the mandatory core. Every optional group of calls is a small
// interface of its own, found by type assertion; the SDK computes the advertised capabilities from what is
// implemented, so a plugin cannot promise what it does not have.
//
// Concurrency: the host calls methods from many goroutines at once. It never runs two of PrepareRun, CommitRun,
// SetSettings, CreateSession, UpdateSession and DetachSession side by side for one session. A cancelled context means
// that nobody waits for the answer any more; it does not undo what was begun.
//
// Errors: a method returns a *codes.Error for everything it can name; any other error is a fault of the plugin and
// reaches nobody but the local log. For CommitRun, SteerRun, StopRun and ResolveInteraction every error means that the
// outcome is unknown, so an answer that knows better puts it into the response.
package runtime

import "context"

// IsZero reports that the reference names nothing.
func (r SessionRef) IsZero() bool { return r == SessionRef{} }

// IsZero reports that there is no document.
func (p Payload) IsZero() bool { return p.ContentType == "" && p.Data == nil }

// IsZero reports that the key names nothing.
func (k StateKey) IsZero() bool { return k == StateKey{} }

// JSON is a Payload that holds the given JSON text.
func JSON(data []byte) Payload { return Payload{ContentType: "application/json", Data: data} }

// Sink takes the events of Watch. The SDK numbers them: Seq is set by the sink, never by the plugin.
type Sink interface {
	// Emit hands over one event, in order. It may be called from any goroutine; it blocks only while the host is
	// behind by more than the SDK's buffer (65,536 events or 2 MiB), and never fails. After the process is asked to end it drops.
	Emit(Event)
	// Seq is the number of the last event handed over, for the as_of_seq fields of answers.
	Seq() uint64
}

// Runtime is the mandatory core of a plugin.
type Runtime interface {
	// Describe has no side effects: no native start, no files, no sockets, no reading of native stores. The SDK fills
	// Capabilities. Deadline fast.
	Describe(context.Context) (*Description, error)
	// Configure takes the settings and lets the native runtime begin to start; it does not wait for it. Deadline io.
	Configure(context.Context, *ConfigureRequest, Host) error
	// Health never starts, loads, wakes or logs in anything and never waits behind other work. Deadline fast, io when
	// MaxAge asks for a new look.
	Health(context.Context, *HealthRequest) (*Status, error)
	// Watch is called once, before Configure, and gives the plugin the sink all its events go to. It returns at once
	// or when ctx ends; the sink stays valid until then.
	Watch(ctx context.Context, sink Sink) error
	// ListSessions scans the native store read-only and hands rows to send in batches of at most 500, newest first.
	// Deadline long, a batch at least every 10 s.
	ListSessions(ctx context.Context, r *ListSessionsRequest, send func([]Session) error) (*ScanEnd, error)
	// ReadHistory reads one page. Deadline io.
	ReadHistory(context.Context, *ReadHistoryRequest) (*ReadHistoryResponse, error)
	// PrepareRun makes every check that can still refuse and sends nothing of the prompt. Deadline settings.
	PrepareRun(context.Context, *PrepareRunRequest) (*PrepareRunResponse, error)
	// CommitRun hands the prepared prompt to the runtime, at most once. Deadline settings.
	CommitRun(context.Context, *CommitRunRequest) (*CommitRunResponse, error)
	// AbandonRun drops what PrepareRun holds. Deadline fast.
	AbandonRun(context.Context, *AbandonRunRequest) error
	// StopRun asks for the end; the end itself comes as an event. Deadline settings.
	StopRun(context.Context, *StopRunRequest) (*StopRunResponse, error)
	// Shutdown ends what the plugin started. Deadline io.
	Shutdown(context.Context) error
}

// Optional groups, each advertised by the SDK as the capability named in its comment.
type (
	// Reconciler is CAPABILITY_RECONCILE.
	Reconciler interface {
		Reconcile(context.Context, *ReconcileRequest) (*ReconcileResponse, error)
	}
	// Drainer is CAPABILITY_DRAIN.
	Drainer interface {
		Drain(context.Context, *DrainRequest) (*DrainResponse, error)
	}
	// Creator is CAPABILITY_CREATE and, when Branches says so, CAPABILITY_BRANCH.
	Creator interface {
		CreateSession(context.Context, *CreateSessionRequest) (*CreateSessionResponse, error)
		// Creates reports which of the two kinds of creation the plugin wants: every new conversation, copies.
		Creates() (every, branches bool)
	}
	// Updater is CAPABILITY_RENAME and CAPABILITY_ARCHIVE as far as Updates says so.
	Updater interface {
		UpdateSession(context.Context, *UpdateSessionRequest) (*UpdateSessionResponse, error)
		// Updates reports what can be changed.
		Updates() (title, archived bool)
	}
	// Detacher is CAPABILITY_DETACH.
	Detacher interface {
		DetachSession(context.Context, *DetachSessionRequest) error
	}
	// ProjectLister is CAPABILITY_PROJECTS.
	ProjectLister interface {
		ListProjects(context.Context) ([]Project, error)
	}
	// Steerer is CAPABILITY_STEER.
	Steerer interface {
		SteerRun(context.Context, *SteerRunRequest) (*SteerRunResponse, error)
	}
	// Resolver is CAPABILITY_QUESTIONS and CAPABILITY_APPROVALS as far as Asks says so.
	Resolver interface {
		ResolveInteraction(context.Context, *ResolveInteractionRequest) (*ResolveInteractionResponse, error)
		// Asks reports what the runtime may ask.
		Asks() (questions, approvals bool)
	}
	// SettingsReader is CAPABILITY_SETTINGS.
	SettingsReader interface {
		GetSettings(context.Context, *GetSettingsRequest) (*Settings, error)
	}
	// SettingsKeeper is CAPABILITY_SET_SETTINGS.
	SettingsKeeper interface {
		SettingsReader
		SetSettings(context.Context, *SetSettingsRequest) (*Settings, error)
	}
	// SkillLister is CAPABILITY_SKILLS.
	SkillLister interface {
		ListSkills(context.Context, *ListSkillsRequest) ([]Skill, error)
	}
	// ActivityObserver is CAPABILITY_ACTIVITY.
	ActivityObserver interface {
		ObserveActivity(context.Context, *ObserveActivityRequest) ([]SessionActivity, error)
	}
	// AttachmentReader is CAPABILITY_ATTACHMENTS. send gets the description first, then pieces of at most 1 MiB.
	AttachmentReader interface {
		ReadAttachment(ctx context.Context, r *ReadAttachmentRequest, send func(*ReadAttachmentResponse) error) error
	}
	// Manager is CAPABILITY_MANAGEMENT; Describe declares the methods.
	Manager interface {
		Call(context.Context, *CallRequest) (*CallResponse, error)
	}
	// FrameCarrier is CAPABILITY_CHANNELS.
	FrameCarrier interface {
		OpenChannel(ctx context.Context, open *ChannelOpen, ch Channel) error
	}
	// PhoneToolUser is CAPABILITY_PHONE_TOOLS: the plugin hands phone tools to its runtime.
	PhoneToolUser interface {
		UsesPhoneTools()
	}
)

// Channel is one phone socket, seen from the plugin. Recv and Send may be called concurrently with each other.
type Channel interface {
	// Recv gives the next frame or demand; io.EOF when the host ended the channel.
	Recv() (*OpenChannelRequest, error)
	// Send hands over a frame, state, recycle or pairing.
	Send(*OpenChannelResponse) error
}

// Host is what a plugin may ask of the host; see proto/openphone/host/v1. It is safe for concurrent use and valid until
// Shutdown.
type Host interface {
	// GetState reads one entry; nil when there is none.
	GetState(context.Context, StateKey) (*StateEntry, error)
	// PutState writes an entry and returns its revision once it is on disk. expected nil: whatever there is.
	PutState(ctx context.Context, key StateKey, value []byte, expected *uint64) (uint64, error)
	// DeleteState removes an entry.
	DeleteState(ctx context.Context, key StateKey, expected *uint64) error
	// ListState reads entries whose name begins with prefix, in order of name.
	ListState(ctx context.Context, sessionID, prefix string) ([]StateEntry, error)
	// RaiseAttention makes something known to the person.
	RaiseAttention(context.Context, *RaiseAttentionRequest) error
	// ClearAttention takes it back.
	ClearAttention(ctx context.Context, attentionID string) error
	// ListPhoneTools sends the list at once and again after each change, until ctx ends.
	ListPhoneTools(ctx context.Context, session SessionRef, send func(*ListPhoneToolsResponse) error) error
	// InvokePhoneTool runs one tool; progress may be nil.
	InvokePhoneTool(ctx context.Context, r *InvokePhoneToolRequest, progress func(*PhoneToolProgress)) (*PhoneToolResult, error)
	// CancelPhoneTool withdraws a call.
	CancelPhoneTool(ctx context.Context, callID string) error
}

// Has reports that the list names the capability.
func Has(list []Capability, c Capability) bool {
	for _, x := range list {
		if x == c {
			return true
		}
	}
	return false
}
