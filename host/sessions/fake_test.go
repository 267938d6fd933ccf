package sessions

import (
	"context"
	"sync"
	"time"

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
