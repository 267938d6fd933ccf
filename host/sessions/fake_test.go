package sessions

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/openphone-host/openphone/host/store"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// fake is a runtime whose calls do what a test says; what it does not say succeeds. It counts dispatched prompts.
type fake struct {
	mu          sync.Mutex
	description runtime.Description
	status      runtime.Status
	prepared    map[string]*runtime.PrepareRunRequest
	dispatched  []string // run ids, in order
	abandoned   []string
	resolved    []*runtime.ResolveInteractionRequest
	rows        []runtime.Session
	end         runtime.ScanEnd
	pages       map[string][]runtime.Message // by native id
	settings    runtime.Settings

	onPrepare func(context.Context, *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error)
	onCommit  func(context.Context, *runtime.CommitRunRequest) (*runtime.CommitRunResponse, error)
	onStop    func(*runtime.StopRunRequest) (*runtime.StopRunResponse, error)
	onSteer   func(*runtime.SteerRunRequest) (*runtime.SteerRunResponse, error)
	onResolve func(*runtime.ResolveInteractionRequest) (*runtime.ResolveInteractionResponse, error)
	onList    func(*runtime.ListSessionsRequest, func([]runtime.Session) error) (*runtime.ScanEnd, error)
	onHistory func(*runtime.ReadHistoryRequest) (*runtime.ReadHistoryResponse, error)
	onUpdate  func(*runtime.UpdateSessionRequest) (*runtime.UpdateSessionResponse, error)
	onDetach  func(*runtime.DetachSessionRequest) error
	onCreate  func(*runtime.CreateSessionRequest) (*runtime.CreateSessionResponse, error)
	onHealth  func() (*runtime.Status, error)
	onCall    func(*runtime.CallRequest) (*runtime.CallResponse, error)
	onObserve func(*runtime.ObserveActivityRequest) ([]runtime.SessionActivity, error)
	onSet     func(*runtime.SetSettingsRequest) (*runtime.Settings, error)
	onAttach  func(*runtime.ReadAttachmentRequest, func(*runtime.ReadAttachmentResponse) error) error
	projects  []runtime.Project
}

func newFake() *fake {
	var all []runtime.Capability
	for x := runtime.CapabilityBranch; x <= runtime.CapabilityPhoneTools; x++ {
		all = append(all, x)
	}
	return &fake{
		description: runtime.Description{RuntimeID: "fake", Name: "Fake", Capabilities: all},
		status:      runtime.Status{Condition: runtime.ConditionReady, Capabilities: all},
		prepared:    map[string]*runtime.PrepareRunRequest{}, end: runtime.ScanEnd{Complete: true},
		pages: map[string][]runtime.Message{},
	}
}

func (f *fake) ID() string                        { return "fake" }
func (f *fake) Description() *runtime.Description { return &f.description }
func (f *fake) Status() runtime.Status            { return f.status }

func (f *fake) Health(context.Context, *time.Duration) (*runtime.Status, error) {
	if f.onHealth != nil {
		return f.onHealth()
	}
	return &f.status, nil
}

func (f *fake) ListProjects(context.Context) ([]runtime.Project, error) { return f.projects, nil }

func (f *fake) ListSessions(_ context.Context, r *runtime.ListSessionsRequest, send func([]runtime.Session) error) (*runtime.ScanEnd, error) {
	if f.onList != nil {
		return f.onList(r, send)
	}
	f.mu.Lock()
	rows, end := f.rows, f.end
	f.mu.Unlock()
	if err := send(rows); err != nil {
		return nil, err
	}
	return &end, nil
}

func (f *fake) ObserveActivity(_ context.Context, r *runtime.ObserveActivityRequest) ([]runtime.SessionActivity, error) {
	if f.onObserve != nil {
		return f.onObserve(r)
	}
	return make([]runtime.SessionActivity, len(r.Sessions)), nil
}

func (f *fake) CreateSession(_ context.Context, r *runtime.CreateSessionRequest) (*runtime.CreateSessionResponse, error) {
	if f.onCreate != nil {
		return f.onCreate(r)
	}
	s := runtime.Session{Ref: r.Session, Title: r.Title}
	s.Ref.NativeID = "copy-" + r.Session.SessionID
	return &runtime.CreateSessionResponse{Session: &s}, nil
}

func (f *fake) UpdateSession(_ context.Context, r *runtime.UpdateSessionRequest) (*runtime.UpdateSessionResponse, error) {
	if f.onUpdate != nil {
		return f.onUpdate(r)
	}
	s := runtime.Session{Ref: r.Session, Archived: r.Archived}
	if r.Title != nil {
		s.Title = *r.Title
	}
	return &runtime.UpdateSessionResponse{Session: &s}, nil
}

func (f *fake) DetachSession(_ context.Context, r *runtime.DetachSessionRequest) error {
	if f.onDetach != nil {
		return f.onDetach(r)
	}
	return nil
}

func (f *fake) ReadHistory(_ context.Context, r *runtime.ReadHistoryRequest) (*runtime.ReadHistoryResponse, error) {
	if f.onHistory != nil {
		return f.onHistory(r)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return &runtime.ReadHistoryResponse{Messages: f.pages[r.Session.NativeID]}, nil
}

func (f *fake) ReadAttachment(_ context.Context, r *runtime.ReadAttachmentRequest, send func(*runtime.ReadAttachmentResponse) error) error {
	if f.onAttach != nil {
		return f.onAttach(r, send)
	}
	return codes.New(codes.AttachmentUnknown)
}

func (f *fake) PrepareRun(ctx context.Context, r *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error) {
	if f.onPrepare != nil {
		if resp, err := f.onPrepare(ctx, r); resp != nil || err != nil {
			return resp, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prepared[r.RunID] = r
	ref := r.Session
	if ref.NativeID == "" {
		ref.NativeID = "native-" + ref.SessionID
	}
	return &runtime.PrepareRunResponse{Session: ref, ModelID: "model-1"}, nil
}

func (f *fake) CommitRun(ctx context.Context, r *runtime.CommitRunRequest) (*runtime.CommitRunResponse, error) {
	if f.onCommit != nil {
		if resp, err := f.onCommit(ctx, r); resp != nil || err != nil {
			return resp, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dispatched = append(f.dispatched, r.RunID)
	return &runtime.CommitRunResponse{Outcome: runtime.OutcomeDispatched, NativeRunID: "turn-" + r.RunID}, nil
}

func (f *fake) AbandonRun(_ context.Context, r *runtime.AbandonRunRequest) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.abandoned = append(f.abandoned, r.RunID)
	return nil
}

func (f *fake) SteerRun(_ context.Context, r *runtime.SteerRunRequest) (*runtime.SteerRunResponse, error) {
	if f.onSteer != nil {
		return f.onSteer(r)
	}
	return &runtime.SteerRunResponse{Outcome: runtime.OutcomeDispatched}, nil
}

func (f *fake) StopRun(_ context.Context, r *runtime.StopRunRequest) (*runtime.StopRunResponse, error) {
	if f.onStop != nil {
		return f.onStop(r)
	}
	return &runtime.StopRunResponse{Outcome: runtime.OutcomeDispatched}, nil
}

func (f *fake) ResolveInteraction(_ context.Context, r *runtime.ResolveInteractionRequest) (*runtime.ResolveInteractionResponse, error) {
	f.mu.Lock()
	f.resolved = append(f.resolved, r)
	f.mu.Unlock()
	if f.onResolve != nil {
		return f.onResolve(r)
	}
	return &runtime.ResolveInteractionResponse{Outcome: runtime.OutcomeDispatched}, nil
}

func (f *fake) GetSettings(context.Context, *runtime.GetSettingsRequest) (*runtime.Settings, error) {
	s := f.settings
	return &s, nil
}

func (f *fake) SetSettings(_ context.Context, r *runtime.SetSettingsRequest) (*runtime.Settings, error) {
	if f.onSet != nil {
		return f.onSet(r)
	}
	s := f.settings
	return &s, nil
}

func (f *fake) ListSkills(context.Context, *runtime.ListSkillsRequest) ([]runtime.Skill, error) {
	return []runtime.Skill{{SkillID: "s"}}, nil
}

func (f *fake) Call(_ context.Context, r *runtime.CallRequest) (*runtime.CallResponse, error) {
	if f.onCall != nil {
		return f.onCall(r)
	}
	return &runtime.CallResponse{Result: runtime.JSON([]byte(`{}`))}, nil
}

func (f *fake) runs() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.dispatched...)
}

func (f *fake) answers() []*runtime.ResolveInteractionRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*runtime.ResolveInteractionRequest(nil), f.resolved...)
}

// rig is a Conversations over a fake runtime and a real store, with everything it told phones.
type rig struct {
	*Conversations
	t    testing.TB
	f    *fake
	dir  string
	db   *store.Store
	stop func()

	mu      sync.Mutex
	updates []Update
	changed chan struct{}
	seq     uint64
	gen     uint64

	emitting sync.Mutex
}

func newRig(t testing.TB, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, f: newFake(), dir: t.TempDir(), changed: make(chan struct{})}
	r.start(change...)
	t.Cleanup(func() { r.stop() })
	r.up()
	return r
}

func (r *rig) start(change ...func(*Options)) {
	r.t.Helper()
	db, err := store.Open(r.t.Context(), r.dir, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	o := Options{Runtime: r.f, Store: db}
	for _, fn := range change {
		fn(&o)
	}
	c, err := New(o)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Run(ctx) }()
	unsubscribe := c.Subscribe(func(u Update) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.updates = append(r.updates, u)
		close(r.changed)
		r.changed = make(chan struct{})
	})
	r.Conversations, r.db = c, db
	var once sync.Once
	r.stop = func() {
		once.Do(func() {
			cancel()
			<-done
			unsubscribe()
			_ = db.Close()
		})
	}
}

// restart ends the host and starts the next one over the same data.
func (r *rig) restart(change ...func(*Options)) {
	r.t.Helper()
	r.stop()
	r.mu.Lock()
	r.updates = nil
	r.mu.Unlock()
	r.start(change...)
}

// up starts the next plugin process; answer says what it knows of a run.
func (r *rig) up(answer ...func(*runtime.ReconcileRequest) *runtime.ReconcileResponse) {
	r.t.Helper()
	r.gen++
	r.seq = 0
	err := r.Started(r.t.Context(), r.gen, func(_ context.Context, q *runtime.ReconcileRequest) (*runtime.ReconcileResponse, error) {
		if len(answer) > 0 {
			return answer[0](q), nil
		}
		return &runtime.ReconcileResponse{}, nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) emit(events ...runtime.Event) {
	for i := range events {
		r.seq++
		events[i].Seq = r.seq
	}
	r.Events(r.gen, events)
}

// emit1 is emit for tests with several goroutines.
func (r *rig) emit1(e runtime.Event) {
	r.emitting.Lock()
	defer r.emitting.Unlock()
	r.emit(e)
}

func (r *rig) create() string {
	r.t.Helper()
	row, err := r.Create(r.t.Context(), "", "", "")
	if err != nil {
		r.t.Fatal(err)
	}
	return row.Key
}

func prompt(key, text, idempotency string) SendInput {
	return SendInput{SessionKey: key, Text: text, IdempotencyKey: idempotency, Fingerprint: fingerprint(text)}
}

func fingerprint(text string) string {
	return projectID(text) + projectID("x"+text)
}

func (r *rig) send(key, text, idempotency string) string {
	r.t.Helper()
	id, err := r.Send(r.t.Context(), prompt(key, text, idempotency))
	if err != nil {
		r.t.Fatal(err)
	}
	r.dispatched(id)
	return id
}

// dispatched waits until the commit of a run was noted.
func (r *rig) dispatched(id string) {
	r.t.Helper()
	r.until("the commit of "+id, func() bool {
		rec, ok, err := r.db.Run(r.t.Context(), "fake", id)
		return err == nil && ok && rec.Outcome != 0
	})
}

// until waits for something that updates or the store show.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			r.t.Fatalf("waited in vain for %s; updates: %v", what, r.kinds())
		}
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func (r *rig) seen(kind UpdateKind) []Update {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []Update
	for _, u := range r.updates {
		if u.Kind == kind {
			list = append(list, u)
		}
	}
	return list
}

func (r *rig) kinds() []UpdateKind {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []UpdateKind
	for _, u := range r.updates {
		if u.Kind != RuntimeChanged {
			list = append(list, u.Kind)
		}
	}
	return list
}

func (r *rig) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.updates = nil
}

func text(run, part, s string) runtime.Event {
	return runtime.Event{RunID: run, Text: &runtime.TextChunk{PartID: part, Text: s}}
}

func ended(run string) runtime.Event {
	return runtime.Event{RunID: run, RunEnded: &runtime.RunEnded{Reason: runtime.EndReasonCompleted}}
}
