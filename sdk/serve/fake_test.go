package serve_test

import (
	"context"
	"sync"
	"time"

	"github.com/openphone-host/openphone/sdk/runtime"
)

// fake is the mandatory core with hooks; every hook may be nil.
type fake struct {
	mu        sync.Mutex
	sink      runtime.Sink
	host      runtime.Host
	prepares  int
	commits   int
	abandoned []string
	prepare   func(context.Context, *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error)
	commit    func(context.Context, *runtime.CommitRunRequest) (*runtime.CommitRunResponse, error)
	status    *runtime.Status
	methods   []runtime.Method
	history   *runtime.ReadHistoryResponse
	shutdown  func(context.Context) error
}

func (f *fake) Describe(context.Context) (*runtime.Description, error) {
	return &runtime.Description{RuntimeID: "fake", Name: "Fake", PluginVersion: "1.0.0", Methods: f.methods, Capabilities: []runtime.Capability{runtime.CapabilityChannels}}, nil
}

func (f *fake) Configure(_ context.Context, _ *runtime.ConfigureRequest, h runtime.Host) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.host = h
	return nil
}

func (f *fake) Health(context.Context, *runtime.HealthRequest) (*runtime.Status, error) {
	if f.status != nil {
		return f.status, nil
	}
	return &runtime.Status{Condition: runtime.ConditionReady, EvidenceAt: time.Now()}, nil
}

func (f *fake) Watch(_ context.Context, s runtime.Sink) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sink = s
	return nil
}

func (f *fake) ListSessions(_ context.Context, _ *runtime.ListSessionsRequest, send func([]runtime.Session) error) (*runtime.ScanEnd, error) {
	rows := make([]runtime.Session, 1200)
	if err := send(rows); err != nil {
		return nil, err
	}
	return nil, nil
}

func (f *fake) ReadHistory(context.Context, *runtime.ReadHistoryRequest) (*runtime.ReadHistoryResponse, error) {
	if f.history != nil {
		return f.history, nil
	}
	return &runtime.ReadHistoryResponse{}, nil
}

func (f *fake) PrepareRun(ctx context.Context, r *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error) {
	f.mu.Lock()
	f.prepares++
	f.mu.Unlock()
	if f.prepare != nil {
		return f.prepare(ctx, r)
	}
	return &runtime.PrepareRunResponse{Session: r.Session}, nil
}

func (f *fake) CommitRun(ctx context.Context, r *runtime.CommitRunRequest) (*runtime.CommitRunResponse, error) {
	f.mu.Lock()
	f.commits++
	f.mu.Unlock()
	if f.commit != nil {
		return f.commit(ctx, r)
	}
	return &runtime.CommitRunResponse{Outcome: runtime.OutcomeDispatched, NativeRunID: "n-" + r.RunID}, nil
}

func (f *fake) AbandonRun(_ context.Context, r *runtime.AbandonRunRequest) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.abandoned = append(f.abandoned, r.RunID)
	return nil
}

func (f *fake) StopRun(context.Context, *runtime.StopRunRequest) (*runtime.StopRunResponse, error) {
	return &runtime.StopRunResponse{Outcome: runtime.OutcomeDispatched}, nil
}

func (f *fake) Shutdown(ctx context.Context) error {
	if f.shutdown != nil {
		return f.shutdown(ctx)
	}
	return nil
}

func (f *fake) counts() (prepares, commits, abandoned int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.prepares, f.commits, len(f.abandoned)
}

// drainer and manager add one group each.
type drainer struct{ *fake }

func (drainer) Drain(context.Context, *runtime.DrainRequest) (*runtime.DrainResponse, error) {
	return &runtime.DrainResponse{}, nil
}

func (drainer) Call(context.Context, *runtime.CallRequest) (*runtime.CallResponse, error) {
	return &runtime.CallResponse{Result: runtime.JSON([]byte("{}"))}, nil
}
