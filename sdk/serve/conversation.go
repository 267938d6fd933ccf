package serve

import (
	"context"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/protomap"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// maxRows is the contract's bound of one batch of ListSessions.
const maxRows = 500

// conversations implements ConversationService.
type conversations struct {
	runtimev1.UnimplementedConversationServiceServer
	s *server
}

func (c *conversations) ListProjects(ctx context.Context, _ *runtimev1.ListProjectsRequest) (*runtimev1.ListProjectsResponse, error) {
	x, ok := c.s.r.(runtime.ProjectLister)
	if !ok {
		return nil, unsupported()
	}
	list, err := x.ListProjects(ctx)
	if err != nil {
		return nil, err
	}
	return protomap.ToListProjectsResponse(&runtime.ListProjectsResponse{Projects: list}), nil
}

func (c *conversations) ListSessions(in *runtimev1.ListSessionsRequest, stream runtimev1.ConversationService_ListSessionsServer) error {
	send := func(rows []runtime.Session) error {
		for len(rows) > 0 {
			n := min(len(rows), maxRows)
			m := protomap.ToListSessionsResponse(&runtime.ListSessionsResponse{Sessions: rows[:n]})
			scrub(m)
			if err := stream.Send(m); err != nil {
				return err
			}
			rows = rows[n:]
		}
		return nil
	}
	end, err := c.s.r.ListSessions(stream.Context(), protomap.FromListSessionsRequest(in), send)
	if err != nil {
		return err
	}
	if end == nil {
		end = &runtime.ScanEnd{} // not complete: nothing may be removed because of it
	}
	return stream.Send(&runtimev1.ListSessionsResponse{End: protomap.ToScanEnd(end)})
}

func (c *conversations) ObserveActivity(ctx context.Context, in *runtimev1.ObserveActivityRequest) (*runtimev1.ObserveActivityResponse, error) {
	x, ok := c.s.r.(runtime.ActivityObserver)
	if !ok {
		return nil, unsupported()
	}
	list, err := x.ObserveActivity(ctx, protomap.FromObserveActivityRequest(in))
	if err != nil {
		return nil, err
	}
	return protomap.ToObserveActivityResponse(&runtime.ObserveActivityResponse{Sessions: list}), nil
}

func (c *conversations) CreateSession(ctx context.Context, in *runtimev1.CreateSessionRequest) (*runtimev1.CreateSessionResponse, error) {
	if x, ok := c.s.r.(runtime.Creator); ok {
		if every, branches := x.Creates(); in.GetSource() == nil && !every || in.GetSource() != nil && !branches {
			return nil, unsupported()
		}
	}
	return changing(c.s, func() (*runtimev1.CreateSessionResponse, error) {
		return optional(ctx, c.s, in, protomap.FromCreateSessionRequest, runtime.Creator.CreateSession, protomap.ToCreateSessionResponse)
	})
}

func (c *conversations) UpdateSession(ctx context.Context, in *runtimev1.UpdateSessionRequest) (*runtimev1.UpdateSessionResponse, error) {
	if x, ok := c.s.r.(runtime.Updater); ok {
		if title, archived := x.Updates(); in.Title != nil && !title || in.Archived != nil && !archived {
			return nil, unsupported()
		}
	}
	return changing(c.s, func() (*runtimev1.UpdateSessionResponse, error) {
		return optional(ctx, c.s, in, protomap.FromUpdateSessionRequest, runtime.Updater.UpdateSession, protomap.ToUpdateSessionResponse)
	})
}

func (c *conversations) DetachSession(ctx context.Context, in *runtimev1.DetachSessionRequest) (*runtimev1.DetachSessionResponse, error) {
	x, ok := c.s.r.(runtime.Detacher)
	if !ok {
		return nil, unsupported()
	}
	return changing(c.s, func() (*runtimev1.DetachSessionResponse, error) {
		q := protomap.FromDetachSessionRequest(in)
		if q.Mode == runtime.DetachModeUnspecified {
			q.Mode = runtime.DetachModeRelease
		}
		return &runtimev1.DetachSessionResponse{}, x.DetachSession(ctx, q)
	})
}

func (c *conversations) ReadHistory(ctx context.Context, in *runtimev1.ReadHistoryRequest) (*runtimev1.ReadHistoryResponse, error) {
	q := protomap.FromReadHistoryRequest(in)
	if q.MaxMessages == 0 {
		q.MaxMessages = 100
	}
	if q.MaxBytes == 0 {
		q.MaxBytes = maxHistoryBytes
	}
	page, err := c.s.r.ReadHistory(ctx, q)
	if err != nil {
		return nil, err
	}
	return protomap.ToReadHistoryResponse(page), nil
}

func (c *conversations) ReadAttachment(in *runtimev1.ReadAttachmentRequest, stream runtimev1.ConversationService_ReadAttachmentServer) error {
	x, ok := c.s.r.(runtime.AttachmentReader)
	if !ok {
		return unsupported()
	}
	return x.ReadAttachment(stream.Context(), protomap.FromReadAttachmentRequest(in), func(r *runtime.ReadAttachmentResponse) error {
		m := protomap.ToReadAttachmentResponse(r)
		scrub(m)
		return stream.Send(m)
	})
}

func (c *conversations) PrepareRun(ctx context.Context, in *runtimev1.PrepareRunRequest) (*runtimev1.PrepareRunResponse, error) {
	Fault(PointPrepareReceived)
	return changing(c.s, func() (*runtimev1.PrepareRunResponse, error) {
		resp, err := c.s.runs.prepare(ctx, fingerprint(in), protomap.FromPrepareRunRequest(in))
		if err != nil {
			return nil, clean(err)
		}
		Fault(PointPrepareAnswer)
		return protomap.ToPrepareRunResponse(resp), nil
	})
}

// clean says of a refusal to prepare what is always true of one: nothing was dispatched.
func clean(err error) error {
	if e := codes.As(err); e != nil {
		return e.With(codes.NotDispatched)
	}
	return err
}

func (c *conversations) CommitRun(ctx context.Context, in *runtimev1.CommitRunRequest) (*runtimev1.CommitRunResponse, error) {
	Fault(PointCommitReceived)
	resp, err := c.s.runs.commit(ctx, protomap.FromCommitRunRequest(in))
	if err != nil {
		return nil, unknown(err)
	}
	Fault(PointCommitAnswer)
	return protomap.ToCommitRunResponse(resp), nil
}

// unknown says of a failed outcome call what every caller has to read into it.
func unknown(err error) error {
	if e := codes.As(err); e != nil {
		return e.With(codes.Unknown)
	}
	return err
}

func (c *conversations) AbandonRun(ctx context.Context, in *runtimev1.AbandonRunRequest) (*runtimev1.AbandonRunResponse, error) {
	if err := c.s.runs.abandon(ctx, protomap.FromAbandonRunRequest(in)); err != nil {
		return nil, err
	}
	return &runtimev1.AbandonRunResponse{}, nil
}

func (c *conversations) SteerRun(ctx context.Context, in *runtimev1.SteerRunRequest) (*runtimev1.SteerRunResponse, error) {
	resp, err := optional(ctx, c.s, in, protomap.FromSteerRunRequest, runtime.Steerer.SteerRun, protomap.ToSteerRunResponse)
	return resp, outcomeError(err)
}

func (c *conversations) StopRun(ctx context.Context, in *runtimev1.StopRunRequest) (*runtimev1.StopRunResponse, error) {
	resp, err := c.s.r.StopRun(ctx, protomap.FromStopRunRequest(in))
	if err != nil {
		return nil, unknown(err)
	}
	return protomap.ToStopRunResponse(resp), nil
}

func (c *conversations) ResolveInteraction(ctx context.Context, in *runtimev1.ResolveInteractionRequest) (*runtimev1.ResolveInteractionResponse, error) {
	q := protomap.FromResolveInteractionRequest(in)
	if _, ok := in.GetAnswer().(*runtimev1.ResolveInteractionRequest_Decision); ok && q.Decision == runtime.DecisionUnspecified {
		q.Decision = runtime.DecisionDeny
	}
	x, ok := c.s.r.(runtime.Resolver)
	if !ok {
		return nil, unsupported()
	}
	resp, err := x.ResolveInteraction(ctx, q)
	if err != nil {
		return nil, unknown(err)
	}
	return protomap.ToResolveInteractionResponse(resp), nil
}

// outcomeError keeps an absent method provably not dispatched and everything else unknown.
func outcomeError(err error) error {
	if codes.Of(err) == codes.MethodUnsupported {
		return err
	}
	return unknown(err)
}

func (c *conversations) GetSettings(ctx context.Context, in *runtimev1.GetSettingsRequest) (*runtimev1.GetSettingsResponse, error) {
	x, ok := c.s.r.(runtime.SettingsReader)
	if !ok {
		return nil, unsupported()
	}
	st, err := x.GetSettings(ctx, protomap.FromGetSettingsRequest(in))
	if err != nil {
		return nil, err
	}
	return &runtimev1.GetSettingsResponse{Settings: protomap.ToSettings(st)}, nil
}

func (c *conversations) SetSettings(ctx context.Context, in *runtimev1.SetSettingsRequest) (*runtimev1.SetSettingsResponse, error) {
	x, ok := c.s.r.(runtime.SettingsKeeper)
	if !ok {
		return nil, unsupported()
	}
	return changing(c.s, func() (*runtimev1.SetSettingsResponse, error) {
		st, err := x.SetSettings(ctx, protomap.FromSetSettingsRequest(in))
		if err != nil {
			return nil, err
		}
		return &runtimev1.SetSettingsResponse{Settings: protomap.ToSettings(st)}, nil
	})
}

func (c *conversations) ListSkills(ctx context.Context, in *runtimev1.ListSkillsRequest) (*runtimev1.ListSkillsResponse, error) {
	x, ok := c.s.r.(runtime.SkillLister)
	if !ok {
		return nil, unsupported()
	}
	list, err := x.ListSkills(ctx, protomap.FromListSkillsRequest(in))
	if err != nil {
		return nil, err
	}
	return protomap.ToListSkillsResponse(&runtime.ListSkillsResponse{Skills: list}), nil
}

// changing runs a call that changes something, unless the door is shut.
func changing[R any](s *server, call func() (*R, error)) (*R, error) {
	if err := s.door.enter(); err != nil {
		return nil, err
	}
	defer s.door.leave()
	resp, err := call()
	if err != nil {
		return nil, err
	}
	return resp, nil
}
