package control

import (
	"context"
	"slices"

	"google.golang.org/grpc"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/host/runtimes"
	"github.com/openphone-host/openphone/host/sessions"
	controlv1 "github.com/openphone-host/openphone/proto/openphone/control/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// logBatch is how many records of the past travel in one message.
const logBatch = 500

func (s *service) ReadLogs(r *controlv1.ReadLogsRequest, out grpc.ServerStreamingServer[controlv1.ReadLogsResponse]) error {
	least, ok := obs.ParseLevel(r.GetLevel())
	if !ok {
		return codes.New(codes.ParamsInvalid)
	}
	if s.opt.Logs == nil {
		return nil
	}
	wanted := func(x obs.Record) bool {
		return x.Level >= least &&
			(len(r.GetComponents()) == 0 || slices.Contains(r.GetComponents(), x.Component)) &&
			(r.GetRuntime() == "" || x.Attributes[obs.KeyRuntime] == r.GetRuntime())
	}
	past := func(list []obs.Record) error {
		list = slices.DeleteFunc(list, func(x obs.Record) bool { return !wanted(x) })
		if r.Tail != nil && len(list) > int(r.GetTail()) {
			list = list[len(list)-int(r.GetTail()):]
		}
		for part := range slices.Chunk(list, logBatch) {
			m := &controlv1.ReadLogsResponse{}
			for _, x := range part {
				m.Records = append(m.Records, record(x))
			}
			if err := out.Send(m); err != nil {
				return err
			}
		}
		return nil
	}
	if !r.GetFollow() {
		return past(s.opt.Logs.Recent())
	}
	return s.opt.Logs.Follow(out.Context(), s.ending, past, func(x obs.Record, lost uint64) error {
		m := &controlv1.ReadLogsResponse{Lost: lost}
		if wanted(x) {
			m.Records = []*controlv1.LogRecord{record(x)}
		} else if lost == 0 {
			return nil
		}
		return out.Send(m)
	})
}

func record(x obs.Record) *controlv1.LogRecord {
	return &controlv1.LogRecord{
		At: stamp(x.At), Level: obs.LevelName(x.Level), Component: x.Component, Message: x.Message, Attributes: x.Attributes,
	}
}

func (s *service) ListSessions(ctx context.Context, r *controlv1.ListSessionsRequest) (*controlv1.ListSessionsResponse, error) {
	ids := []string{r.GetRuntime()}
	if r.GetRuntime() == "" {
		ids = nil
		if s.opt.Runtimes != nil {
			for _, i := range s.opt.Runtimes.Instances() {
				if state, _ := i.State(); state != runtimes.Disabled {
					ids = append(ids, i.ID())
				}
			}
		}
	}
	out := &controlv1.ListSessionsResponse{}
	for _, id := range ids {
		service, err := s.sessions(id)
		if err != nil {
			if r.GetRuntime() != "" {
				return nil, err
			}
			continue
		}
		list := service.List
		if r.GetArchived() {
			list = func(ctx context.Context, _ bool) ([]sessions.Row, error) { return service.Archived(ctx) }
		}
		rows, err := list(ctx, false)
		if err != nil && r.GetRuntime() != "" {
			return nil, err
		}
		for _, row := range rows {
			out.Sessions = append(out.Sessions, conversation(id, row))
		}
	}
	return out, nil
}

func (s *service) ShowSession(ctx context.Context, r *controlv1.ShowSessionRequest) (*controlv1.ShowSessionResponse, error) {
	service, err := s.sessions(r.GetRuntime())
	if err != nil {
		return nil, err
	}
	row, err := service.Lookup(ctx, r.GetKey())
	if err != nil {
		return nil, err
	}
	out := &controlv1.ShowSessionResponse{Session: conversation(r.GetRuntime(), row)}
	if row.SessionID != "" {
		receipts, err := s.opt.Backend.Receipts(ctx, r.GetRuntime(), row.SessionID)
		if err != nil {
			return nil, err
		}
		for _, x := range receipts[:min(len(receipts), mostReceipts)] {
			out.Receipts = append(out.Receipts, &controlv1.Receipt{
				RunId: x.RunID, AcceptedAt: stamp(x.AcceptedAt), EndedAt: stamp(x.EndedAt), Outcome: x.Outcome, End: x.End, Code: x.Code,
			})
		}
	}
	questions, err := service.Questions(ctx, r.GetKey())
	if err != nil {
		return nil, err
	}
	approvals, err := service.Approvals(ctx, r.GetKey())
	if err != nil {
		return nil, err
	}
	pending := func(kind string, list []sessions.OpenInteraction) {
		for _, x := range list {
			out.Pending = append(out.Pending, &controlv1.Pending{Id: x.Request.InteractionID, Kind: kind, RunId: x.RunID})
		}
	}
	pending("question", questions)
	pending("approval", approvals)
	return out, nil
}

func (s *service) sessions(id string) (sessions.Service, error) {
	if s.opt.Sessions != nil {
		if x := s.opt.Sessions(id); x != nil {
			return x, nil
		}
	}
	return nil, codes.New(codes.RuntimeUnknown)
}

func conversation(id string, row sessions.Row) *controlv1.Conversation {
	c := &controlv1.Conversation{
		Runtime: id, Key: row.Key, Title: row.Title, Preview: row.Preview, ModelId: row.ModelID, UpdatedAt: stamp(row.UpdatedAt),
		Active: row.HasActiveRun, Native: row.Native, Archived: row.Archived,
	}
	if row.Project != nil {
		c.Project, c.ProjectPath = row.Project.Name, row.Project.Path
	}
	switch row.Attention {
	case runtime.AttentionKindInput:
		c.Attention = "question"
	case runtime.AttentionKindApproval:
		c.Attention = "approval"
	case runtime.AttentionKindError, runtime.AttentionKindCronFailed:
		c.Attention = "error"
	}
	return c
}
