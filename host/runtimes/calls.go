package runtimes

import (
	"context"
	"errors"
	"io"
	"time"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/protomap"
	"github.com/openphone-host/openphone/sdk/runtime"
)

const (
	// silence is the longest a scan or an attachment may say nothing (conversation.proto).
	silence = 10 * time.Second
	// longestSettings bounds what Limits may ask for SetSettings, longestCall what a method may declare.
	longestSettings = 185 * time.Second
	longestCall     = 10 * time.Minute
)

// call runs one RPC of a class against the current process.
func call[P, R any](ctx context.Context, i *Instance, class time.Duration, f func(context.Context, *generation) (P, error), from func(P) R) (R, error) {
	var none R
	g, err := i.ready(ctx, doorPatience)
	if err != nil {
		return none, err
	}
	ctx, cancel := context.WithTimeout(ctx, class)
	defer cancel()
	p, err := f(ctx, g)
	if err != nil {
		return none, g.failed(err)
	}
	return from(p), nil
}

// change is call for what changes something: it passes the door first.
func change[P, R any](ctx context.Context, i *Instance, class time.Duration, f func(context.Context, *generation) (P, error), from func(P) R) (R, error) {
	if err := i.enter(ctx); err != nil {
		var none R
		return none, err
	}
	defer i.leave()
	return call(ctx, i, class, f, from)
}

// outcome runs an RPC that answers with an outcome. Its error is the outcome: not dispatched while there is no process
// or nobody waits any more, since then the call provably never left; unknown for everything gRPC reports.
func outcome[P any](ctx context.Context, i *Instance, f func(context.Context, *generation) (P, error)) (P, runtime.Outcome, string) {
	var none P
	if ctx.Err() != nil {
		return none, runtime.OutcomeNotDispatched, codes.RunNotDispatched
	}
	g, err := i.ready(ctx, 0)
	if err != nil {
		return none, runtime.OutcomeNotDispatched, codes.Of(err)
	}
	ctx, cancel := context.WithTimeout(ctx, classSettings)
	defer cancel()
	p, err := f(ctx, g)
	if err != nil {
		return none, runtime.OutcomeUnknown, g.failed(err).Code
	}
	return p, runtime.OutcomeDispatched, ""
}

// refusal makes every failure of PrepareRun a clean one: it never dispatches.
func refusal(err error) error {
	if e := codes.As(err); e != nil {
		return e.With(codes.NotDispatched)
	}
	return err
}

// Health asks the plugin now. maxAge is the oldest evidence the caller takes.
func (i *Instance) Health(ctx context.Context, maxAge *time.Duration) (*runtime.Status, error) {
	g, err := i.ready(ctx, 0)
	if err != nil {
		return nil, err
	}
	s, err := g.health(ctx, maxAge)
	if err != nil {
		return nil, err
	}
	i.setStatus(s)
	return s, nil
}

// ListProjects names the directories conversations can be started in.
func (i *Instance) ListProjects(ctx context.Context) ([]runtime.Project, error) {
	return call(ctx, i, classIO, func(ctx context.Context, g *generation) (*runtimev1.ListProjectsResponse, error) {
		return g.rpc.Conversations.ListProjects(ctx, &runtimev1.ListProjectsRequest{})
	}, func(p *runtimev1.ListProjectsResponse) []runtime.Project {
		return protomap.FromListProjectsResponse(p).Projects
	})
}

// ListSessions scans the runtime's store. send gets batches in order; a stream that breaks or ends without an end is an
// error, and what send got then proves nothing.
func (i *Instance) ListSessions(ctx context.Context, r *runtime.ListSessionsRequest, send func([]runtime.Session) error) (*runtime.ScanEnd, error) {
	g, err := i.ready(ctx, doorPatience)
	if err != nil {
		return nil, err
	}
	ctx, quiet := newQuiet(ctx)
	defer quiet.stop()
	stream, err := g.rpc.Conversations.ListSessions(ctx, protomap.ToListSessionsRequest(r))
	if err != nil {
		return nil, quiet.failed(g, err)
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil, codes.New(codes.CatalogIncomplete)
		}
		if err != nil {
			return nil, quiet.failed(g, err)
		}
		quiet.heard()
		resp := protomap.FromListSessionsResponse(m)
		if len(resp.Sessions) > 0 {
			if err := send(resp.Sessions); err != nil {
				return nil, err
			}
		}
		if resp.End != nil {
			return resp.End, nil
		}
	}
}

// ObserveActivity says what sessions do that may be running elsewhere.
func (i *Instance) ObserveActivity(ctx context.Context, r *runtime.ObserveActivityRequest) ([]runtime.SessionActivity, error) {
	return call(ctx, i, classFast, func(ctx context.Context, g *generation) (*runtimev1.ObserveActivityResponse, error) {
		return g.rpc.Conversations.ObserveActivity(ctx, protomap.ToObserveActivityRequest(r))
	}, func(p *runtimev1.ObserveActivityResponse) []runtime.SessionActivity {
		return protomap.FromObserveActivityResponse(p).Sessions
	})
}

// CreateSession makes the runtime know a conversation.
func (i *Instance) CreateSession(ctx context.Context, r *runtime.CreateSessionRequest) (*runtime.CreateSessionResponse, error) {
	return change(ctx, i, classSettings, func(ctx context.Context, g *generation) (*runtimev1.CreateSessionResponse, error) {
		return g.rpc.Conversations.CreateSession(ctx, protomap.ToCreateSessionRequest(r))
	}, protomap.FromCreateSessionResponse)
}

// UpdateSession changes title or archive state.
func (i *Instance) UpdateSession(ctx context.Context, r *runtime.UpdateSessionRequest) (*runtime.UpdateSessionResponse, error) {
	return change(ctx, i, classSettings, func(ctx context.Context, g *generation) (*runtimev1.UpdateSessionResponse, error) {
		return g.rpc.Conversations.UpdateSession(ctx, protomap.ToUpdateSessionRequest(r))
	}, protomap.FromUpdateSessionResponse)
}

// DetachSession lets go of a conversation.
func (i *Instance) DetachSession(ctx context.Context, r *runtime.DetachSessionRequest) error {
	_, err := change(ctx, i, classSettings, func(ctx context.Context, g *generation) (*runtimev1.DetachSessionResponse, error) {
		return g.rpc.Conversations.DetachSession(ctx, protomap.ToDetachSessionRequest(r))
	}, protomap.FromDetachSessionResponse)
	return err
}

// ReadHistory reads one page.
func (i *Instance) ReadHistory(ctx context.Context, r *runtime.ReadHistoryRequest) (*runtime.ReadHistoryResponse, error) {
	return call(ctx, i, classIO, func(ctx context.Context, g *generation) (*runtimev1.ReadHistoryResponse, error) {
		return g.rpc.Conversations.ReadHistory(ctx, protomap.ToReadHistoryRequest(r))
	}, protomap.FromReadHistoryResponse)
}

// ReadAttachment gives a file of the runtime in pieces; without an error send got all of it.
func (i *Instance) ReadAttachment(ctx context.Context, r *runtime.ReadAttachmentRequest, send func(*runtime.ReadAttachmentResponse) error) error {
	g, err := i.ready(ctx, doorPatience)
	if err != nil {
		return err
	}
	ctx, quiet := newQuiet(ctx)
	defer quiet.stop()
	stream, err := g.rpc.Conversations.ReadAttachment(ctx, protomap.ToReadAttachmentRequest(r))
	if err != nil {
		return quiet.failed(g, err)
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return quiet.failed(g, err)
		}
		quiet.heard()
		if err := send(protomap.FromReadAttachmentResponse(m)); err != nil {
			return err
		}
	}
}

// PrepareRun makes every check that can still refuse; every error is a clean refusal.
func (i *Instance) PrepareRun(ctx context.Context, r *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error) {
	resp, err := change(ctx, i, classSettings, func(ctx context.Context, g *generation) (*runtimev1.PrepareRunResponse, error) {
		p, err := g.rpc.Conversations.PrepareRun(ctx, protomap.ToPrepareRunRequest(r))
		if err == nil {
			i.prepared(r.RunID)
		}
		return p, err
	}, protomap.FromPrepareRunResponse)
	return resp, refusal(err)
}

// CommitRun dispatches a prepared run, at most once. It never returns an error: see sessions.Runtime.
func (i *Instance) CommitRun(ctx context.Context, r *runtime.CommitRunRequest) (*runtime.CommitRunResponse, error) {
	i.committing(r.RunID)
	p, out, code := outcome(ctx, i, func(ctx context.Context, g *generation) (*runtimev1.CommitRunResponse, error) {
		return g.rpc.Conversations.CommitRun(ctx, protomap.ToCommitRunRequest(r))
	})
	resp := &runtime.CommitRunResponse{Outcome: out, Code: code}
	if p != nil {
		resp = protomap.FromCommitRunResponse(p)
	}
	if resp.Outcome == runtime.OutcomeNotDispatched {
		i.notRunning(r.RunID)
	}
	return resp, nil
}

// AbandonRun drops a prepared run.
func (i *Instance) AbandonRun(ctx context.Context, r *runtime.AbandonRunRequest) error {
	defer i.abandoned(r.RunID)
	_, err := call(ctx, i, classFast, func(ctx context.Context, g *generation) (*runtimev1.AbandonRunResponse, error) {
		return g.rpc.Conversations.AbandonRun(ctx, protomap.ToAbandonRunRequest(r))
	}, protomap.FromAbandonRunResponse)
	return err
}

// SteerRun adds text to a running reply. It never returns an error: see sessions.Runtime.
func (i *Instance) SteerRun(ctx context.Context, r *runtime.SteerRunRequest) (*runtime.SteerRunResponse, error) {
	p, out, code := outcome(ctx, i, func(ctx context.Context, g *generation) (*runtimev1.SteerRunResponse, error) {
		return g.rpc.Conversations.SteerRun(ctx, protomap.ToSteerRunRequest(r))
	})
	if p == nil {
		return &runtime.SteerRunResponse{Outcome: out, Code: code}, nil
	}
	return protomap.FromSteerRunResponse(p), nil
}

// StopRun asks for the end of a run. It never returns an error: see sessions.Runtime.
func (i *Instance) StopRun(ctx context.Context, r *runtime.StopRunRequest) (*runtime.StopRunResponse, error) {
	p, out, code := outcome(ctx, i, func(ctx context.Context, g *generation) (*runtimev1.StopRunResponse, error) {
		return g.rpc.Conversations.StopRun(ctx, protomap.ToStopRunRequest(r))
	})
	if p == nil {
		return &runtime.StopRunResponse{Outcome: out, Code: code}, nil
	}
	return protomap.FromStopRunResponse(p), nil
}

// ResolveInteraction hands over the one answer. It never returns an error: see sessions.Runtime.
func (i *Instance) ResolveInteraction(ctx context.Context, r *runtime.ResolveInteractionRequest) (*runtime.ResolveInteractionResponse, error) {
	p, out, code := outcome(ctx, i, func(ctx context.Context, g *generation) (*runtimev1.ResolveInteractionResponse, error) {
		return g.rpc.Conversations.ResolveInteraction(ctx, protomap.ToResolveInteractionRequest(r))
	})
	if p == nil {
		return &runtime.ResolveInteractionResponse{Outcome: out, Code: code}, nil
	}
	return protomap.FromResolveInteractionResponse(p), nil
}

// GetSettings reads what can be chosen and what is in force.
func (i *Instance) GetSettings(ctx context.Context, r *runtime.GetSettingsRequest) (*runtime.Settings, error) {
	s, err := call(ctx, i, classSettings, func(ctx context.Context, g *generation) (*runtimev1.GetSettingsResponse, error) {
		return g.rpc.Conversations.GetSettings(ctx, protomap.ToGetSettingsRequest(r))
	}, func(p *runtimev1.GetSettingsResponse) *runtime.Settings {
		return protomap.FromSettings(p.GetSettings())
	})
	return some(s, err)
}

// SetSettings changes what is named; the plugin may ask for more time in its Limits.
func (i *Instance) SetSettings(ctx context.Context, r *runtime.SetSettingsRequest) (*runtime.Settings, error) {
	class := classSettings
	if d := i.Description(); d != nil && d.Limits != nil {
		class = max(class, min(d.Limits.SettingsDeadline, longestSettings))
	}
	s, err := change(ctx, i, class, func(ctx context.Context, g *generation) (*runtimev1.SetSettingsResponse, error) {
		return g.rpc.Conversations.SetSettings(ctx, protomap.ToSetSettingsRequest(r))
	}, func(p *runtimev1.SetSettingsResponse) *runtime.Settings {
		return protomap.FromSettings(p.GetSettings())
	})
	return some(s, err)
}

// ListSkills lists what can be called upon by name.
func (i *Instance) ListSkills(ctx context.Context, r *runtime.ListSkillsRequest) ([]runtime.Skill, error) {
	return call(ctx, i, classIO, func(ctx context.Context, g *generation) (*runtimev1.ListSkillsResponse, error) {
		return g.rpc.Conversations.ListSkills(ctx, protomap.ToListSkillsRequest(r))
	}, func(p *runtimev1.ListSkillsResponse) []runtime.Skill {
		return protomap.FromListSkillsResponse(p).Skills
	})
}

// Call runs a declared management method; one that is not declared is method_unknown and never leaves the host.
func (i *Instance) Call(ctx context.Context, r *runtime.CallRequest) (*runtime.CallResponse, error) {
	method := declared(i.Description(), r.Method)
	if method == nil {
		return nil, codes.New(codes.MethodUnknown)
	}
	reads := method.Scope == runtime.MethodScopeRead
	class := classSettings
	if reads {
		class = classIO
	}
	if method.Deadline > 0 {
		class = min(method.Deadline, longestCall)
	}
	f := func(ctx context.Context, g *generation) (*runtimev1.CallResponse, error) {
		return g.rpc.Management.Call(ctx, protomap.ToCallRequest(r))
	}
	if reads {
		return call(ctx, i, class, f, protomap.FromCallResponse)
	}
	return change(ctx, i, class, f, protomap.FromCallResponse)
}

func declared(d *runtime.Description, name string) *runtime.Method {
	if d == nil {
		return nil
	}
	for k := range d.Methods {
		if d.Methods[k].Name == name {
			return &d.Methods[k]
		}
	}
	return nil
}

// some turns an answer without content into reply_invalid.
func some[T any](v *T, err error) (*T, error) {
	if err == nil && v == nil {
		return nil, codes.New(codes.ReplyInvalid)
	}
	return v, err
}
