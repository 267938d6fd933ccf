// Package sessions holds the conversations of one runtime as phones see them: the joined catalog, the run pipeline
// (prepare, receipt, commit), the order of events, interactions, settings, history and artifacts.
//
// It knows no wire format of a phone (a dialect in host/phone translates) and no native format of a runtime (the plugin
// translates). Everything durable goes through host/store. A Service is safe for concurrent use; writes of one
// conversation run one after the other, reads are never blocked by them, and updates reach each subscriber in one order.
package sessions

import (
	"context"
	"encoding/json"
	"time"

	"github.com/openphone-host/openphone/sdk/runtime"
)

// Runtime is the plugin as this package needs it: one call per RPC, with the deadline of its class already applied and
// every failure turned into a *codes.Error. While the plugin is down calls fail with runtime_unavailable. An outcome
// call that failed in transport answers OutcomeUnknown and no error, unless it provably never left the host.
//
// ID, Description and Status are called while locks are held, from inside an observer's call too: they wait for nothing.
type Runtime interface {
	// ID is the name of the instance, such as codex.
	ID() string
	// Description is the last known one; nil before the plugin was ever started.
	Description() *runtime.Description
	// Status is the last known one; Unavailable with a reason while the plugin is down. Never blocks.
	Status() runtime.Status
	// Health asks the plugin, bounded by ctx.
	Health(ctx context.Context, maxAge *time.Duration) (*runtime.Status, error)
	ListProjects(context.Context) ([]runtime.Project, error)
	ListSessions(context.Context, *runtime.ListSessionsRequest, func([]runtime.Session) error) (*runtime.ScanEnd, error)
	ObserveActivity(context.Context, *runtime.ObserveActivityRequest) ([]runtime.SessionActivity, error)
	CreateSession(context.Context, *runtime.CreateSessionRequest) (*runtime.CreateSessionResponse, error)
	UpdateSession(context.Context, *runtime.UpdateSessionRequest) (*runtime.UpdateSessionResponse, error)
	DetachSession(context.Context, *runtime.DetachSessionRequest) error
	ReadHistory(context.Context, *runtime.ReadHistoryRequest) (*runtime.ReadHistoryResponse, error)
	ReadAttachment(context.Context, *runtime.ReadAttachmentRequest, func(*runtime.ReadAttachmentResponse) error) error
	PrepareRun(context.Context, *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error)
	CommitRun(context.Context, *runtime.CommitRunRequest) (*runtime.CommitRunResponse, error)
	AbandonRun(context.Context, *runtime.AbandonRunRequest) error
	SteerRun(context.Context, *runtime.SteerRunRequest) (*runtime.SteerRunResponse, error)
	StopRun(context.Context, *runtime.StopRunRequest) (*runtime.StopRunResponse, error)
	ResolveInteraction(context.Context, *runtime.ResolveInteractionRequest) (*runtime.ResolveInteractionResponse, error)
	GetSettings(context.Context, *runtime.GetSettingsRequest) (*runtime.Settings, error)
	SetSettings(context.Context, *runtime.SetSettingsRequest) (*runtime.Settings, error)
	ListSkills(context.Context, *runtime.ListSkillsRequest) ([]runtime.Skill, error)
	Call(context.Context, *runtime.CallRequest) (*runtime.CallResponse, error)
}

// Row is one conversation of the catalog.
type Row struct {
	Key            string // what phones call it: SessionID where there is one, else Options.NativeKey(NativeID)
	SessionID      string // empty for a native conversation no phone has touched
	NativeID       string // never sent to a phone
	Kind           runtime.SessionKind
	Title          string
	UpdatedAt      time.Time // zero: unknown
	LastActivityAt time.Time // zero: never
	Preview        string
	ModelID        string
	ProviderID     string
	ParentKey      string
	Channel        string
	HasActiveRun   bool
	Attention      runtime.AttentionKind
	Project        *Project // nil where the runtime has none
	Native         bool     // found in the runtime's own store
	Continuation   runtime.Continuation
	Archived       bool
	Actions        Actions
	Roots          []string // directories whose files may be delivered; never sent to a phone
}

// Actions are the changes a phone may make to a conversation.
type Actions struct{ Rename, Reset, Delete, Pin, Archive bool }

// Project is a directory conversations can be started in.
type Project struct {
	ID        string // first 32 hex digits of sha256 of the canonical absolute path
	Name      string
	Path      string
	Available bool
}

// Health is what a handshake tells.
type Health struct {
	Status       runtime.Status
	Description  *runtime.Description
	Capabilities []runtime.Capability // Description ∩ Status
	ProjectName  string               // base name of the one project; empty on the whole computer
	DeviceScope  bool                 // conversations of the whole computer
}

// SendInput is one prompt of a phone.
type SendInput struct {
	SessionKey     string
	Text           string
	IdempotencyKey string
	Attachments    []Attachment
	Thinking       string // empty: as the conversation has it
	Fingerprint    string // made by the dialect from what was received; 64 hex digits
}

// Attachment is a file sent with a prompt.
type Attachment struct {
	MIME string
	Name string
	Data []byte
}

// Person is who did something: a paired phone, or the person at this computer.
type Person struct{ ID, Label string }

// Answer is a person's answer to a question.
type Answer struct {
	Fields map[string][]string // by field id; every field must be there
	Cancel bool
}

// SettingsChange names what shall change; nil and absent stay as they are.
type SettingsChange struct {
	ModelID    *string
	ProviderID *string
	Options    map[string]string
}

// OpenInteraction is a question or an approval that waits.
type OpenInteraction struct {
	SessionKey string
	RunID      string
	Request    runtime.Interaction
}

// History is one page, oldest message first.
type History struct {
	Key        string
	Messages   []HistoryMessage
	NextCursor string // empty: the oldest page
	ActiveRun  *ActiveRun
	SessionID  string
	Thinking   string
}

// HistoryMessage is a message with what the host knows beside it.
type HistoryMessage struct {
	runtime.Message
	IdempotencyKey string // the phone's key, on the proven prompt of one of our runs
	Files          []ArtifactRef
	Converted      bool // links became files; DisplayText is the text without them, and may be empty
	DisplayText    string
}

// ArtifactRef is a file or image of a message that can be read with OpenArtifact and ReadArtifact.
type ArtifactRef struct {
	ID    string // file_ or image_ and 64 hex digits
	Image bool
	MIME  string
	Name  string
	Data  []byte // bytes of an inline image, for readers that take no artifacts
}

// ActiveRun is a reply in the making.
type ActiveRun struct {
	RunID          string
	NativeRunID    string
	InputMessageID string
	InputKey       string // the phone's key of the prompt
	Text           string // all parts so far, joined by two line feeds, the last 128,000 characters
	StartedAt      time.Time
	Abortable      bool
}

// Service is the API a dialect and the control socket use. It is implemented by *Conversations.
type Service interface {
	RuntimeID() string
	Health(ctx context.Context) (*Health, error)
	Projects(ctx context.Context) ([]Project, error)
	// List gives the catalog. strict: an incomplete scan is catalog_incomplete; otherwise what is known.
	List(ctx context.Context, strict bool) ([]Row, error)
	Archived(ctx context.Context) ([]Row, error)
	// Lookup finds one conversation without a scan.
	Lookup(ctx context.Context, key string) (Row, error)
	// Generation counts successful management writes; a catalog read begun under another one is stale (SYNC-04).
	Generation() uint64
	Activity(ctx context.Context, keys []string) ([]runtime.SessionActivity, error) // same order; Ref unused
	Create(ctx context.Context, title, projectID, fromKey string) (Row, error)
	Rename(ctx context.Context, key, title string) (Row, error)
	Archive(ctx context.Context, key string, archived bool) (Row, error)
	Reset(ctx context.Context, key string) error
	Delete(ctx context.Context, key string) error
	// History reads a page. maxMessages ≤ 100.
	History(ctx context.Context, key, cursor string, maxMessages int) (*History, error)
	Send(ctx context.Context, in SendInput) (runID string, err error)
	PromptStatus(ctx context.Context, key, idempotencyKey string) (runID string, recorded bool, err error)
	// Abort asks to stop; runID empty: the active one. ran is false when nothing was running.
	Abort(ctx context.Context, key, runID string) (ran bool, err error)
	Steer(ctx context.Context, key, runID, text string) error
	Questions(ctx context.Context, key string) ([]OpenInteraction, error)
	Approvals(ctx context.Context, key string) ([]OpenInteraction, error) // key empty: all
	Respond(ctx context.Context, by Person, key, questionID string, a Answer) error
	Resolve(ctx context.Context, by Person, approvalID string, d runtime.Decision) error
	Settings(ctx context.Context, key string) (*runtime.Settings, error) // key empty: a new conversation
	SetSettings(ctx context.Context, key string, c SettingsChange) (*runtime.Settings, error)
	Skills(ctx context.Context, key string) ([]runtime.Skill, error)
	OpenArtifact(ctx context.Context, key, artifactID string) (*ArtifactInfo, error)
	// ReadArtifact reads one piece of 131,072 bytes.
	ReadArtifact(ctx context.Context, key, artifactID string, offset int64) (*ArtifactPiece, error)
	// Manage calls a declared management method of scope READ, WRITE or ADMIN.
	Manage(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// Subscribe delivers every update from now on, in order, from one goroutine at a time. fn must not block: a slow
	// phone is the dialect's business. cancel returns after the last call of fn.
	Subscribe(fn func(Update)) (cancel func())
}

// ArtifactInfo describes a file.
type ArtifactInfo struct {
	ID, Name, MIME string
	Size           int64
}

// ArtifactPiece is a piece of a file.
type ArtifactPiece struct {
	Offset, Total int64
	Data          []byte
	Done          bool
}

// UpdateKind is what an Update says.
type UpdateKind int

// Kinds of updates and the fields they use beside SessionKey, RunID and Turn.
const (
	RunStarted         UpdateKind = iota + 1 // again for the same run: more identity is known
	TextChunk                                // Text, Appends, FullText
	ThoughtChunk                             // Text
	ToolCalled                               // Tool, FirstOfCall
	RunFinished                              // End
	InteractionOpened                        // Interaction
	InteractionClosed                        // Interaction (its id, and request kind), Closure
	SessionChanged                           // Row, whole
	AttentionChanged                         // Attention
	ActivityChanged                          // Activity; only for dialects that were asked
	NoticeRaised                             // Notice
	RuntimeChanged                           // Status
	CatalogInvalidated                       // list again
)

// Update is one thing phones may want to know. Which fields are set depends on Kind.
type Update struct {
	Kind        UpdateKind
	SessionKey  string
	RunID       string
	NativeRunID string
	// InputMessageID and InputKey tell which message is the prompt of the run.
	InputMessageID, InputKey string
	At                       time.Time

	Text    string // the new text, byte for byte
	Appends bool   // Text continues what was sent; false: a part was replaced, see FullText
	// StartsPart says that Text begins another part: FullText has two line feeds before it, Text has not.
	StartsPart bool
	FullText   string // whole run text, parts joined by two line feeds, last 128,000 characters

	Tool        *runtime.ToolCall // merged: fields left out keep what was said before
	FirstOfCall bool

	End         *RunEnd
	Interaction *OpenInteraction
	Closure     runtime.Closure
	AnsweredBy  string // label of who answered; empty: nobody here
	Row         *Row
	Attention   runtime.AttentionKind
	Activity    *runtime.SessionActivity
	Notice      *Notice
	Status      *runtime.Status
}

// RunEnd is how a run ended.
type RunEnd struct {
	Reason         runtime.EndReason
	Code           string          // when it did not end well
	NoticeText     string          // the fixed sentence that belongs to Code
	Message        *HistoryMessage // the reply: the runtime's own record of it, else the chunks; nil when there is none
	Usage          *runtime.Usage
	UnappliedInput string
	StartedAt      time.Time
}

// Notice is a line for people; it ends nothing.
type Notice struct {
	Severity runtime.Severity
	Code     string
	Text     string // the fixed sentence of Code, or what an extension wrote for this person
}
