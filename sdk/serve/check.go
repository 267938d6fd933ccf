package serve

import (
	"encoding/json"
	"time"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/protocol/codes"
)

// Bounds of requests a plugin never has to look at again.
const (
	maxIDLength      = 1024 // any name in a request, in bytes
	maxObserved      = 32
	maxLease         = 45 * time.Second
	maxHistoryBytes  = 7 << 20
	maxSteerBytes    = 4 << 20
	maxTitleBytes    = 4096
	maxBoundSessions = 20_000
)

// withSession is every other request that may name a conversation.
type withSession interface{ GetSession() *runtimev1.SessionRef }

func badParams() error { return codes.New(codes.ParamsInvalid) }

func checkRef(r *runtimev1.SessionRef) error {
	if r.GetSessionId() == "" && r.GetNativeId() == "" {
		return badParams()
	}
	return checkRefSize(r)
}

func checkRefSize(r *runtimev1.SessionRef) error {
	if len(r.GetSessionId()) > maxIDLength || len(r.GetNativeId()) > 4*maxIDLength || len(r.GetProjectPath()) > 8*maxIDLength {
		return badParams()
	}
	return nil
}

func checkName(s string) error {
	if s == "" || len(s) > maxIDLength {
		return badParams()
	}
	return nil
}

// check refuses what is wrong whatever the runtime is. It answers nil for a request it knows nothing about.
func check(req any) error {
	switch q := req.(type) {
	case *runtimev1.ConfigureRequest:
		if q.GetInstanceId() == "" {
			return codes.New(codes.ConfigInvalid, "where", "instance_id")
		}
		if d := q.GetConfig().GetData(); len(d) > 0 && !json.Valid(d) {
			return codes.New(codes.ConfigInvalid, "where", "config")
		}
	case *runtimev1.ListSessionsRequest:
		if len(q.GetBound()) > maxBoundSessions {
			return badParams()
		}
	case *runtimev1.ObserveActivityRequest:
		if len(q.GetSessions()) > maxObserved || q.GetLease().AsDuration() > maxLease || q.GetLease().AsDuration() < 0 {
			return badParams()
		}
		for _, r := range q.GetSessions() {
			if err := checkRef(r); err != nil {
				return err
			}
		}
	case *runtimev1.CreateSessionRequest:
		if q.GetSource() != nil {
			if err := checkRef(q.GetSource()); err != nil {
				return err
			}
		}
		if len(q.GetTitle()) > maxTitleBytes {
			return codes.New(codes.TitleInvalid)
		}
		if q.GetSession().GetSessionId() == "" || q.GetSession().GetNativeId() != "" {
			return badParams()
		}
		return checkRefSize(q.GetSession())
	case *runtimev1.UpdateSessionRequest:
		if q.Title == nil && q.Archived == nil {
			return badParams()
		}
		if q.Title != nil && (q.GetTitle() == "" || len(q.GetTitle()) > maxTitleBytes) {
			return codes.New(codes.TitleInvalid)
		}
		return checkRef(q.GetSession())
	case *runtimev1.DetachSessionRequest:
		return checkRef(q.GetSession())
	case *runtimev1.ReadHistoryRequest:
		if q.GetMaxBytes() > maxHistoryBytes {
			return badParams()
		}
		if len(q.GetCursor()) > 4*maxIDLength {
			return codes.New(codes.CursorInvalid)
		}
		return checkRef(q.GetSession())
	case *runtimev1.ReadAttachmentRequest:
		if q.GetAttachmentId() == "" || len(q.GetAttachmentId()) > 4*maxIDLength {
			return codes.New(codes.AttachmentUnknown)
		}
		return checkRef(q.GetSession())
	case *runtimev1.PrepareRunRequest:
		if err := checkName(q.GetRunId()); err != nil {
			return err
		}
		if err := checkInput(q.GetInput()); err != nil {
			return err
		}
		return checkRef(q.GetSession())
	case *runtimev1.CommitRunRequest:
		return checkName(q.GetRunId())
	case *runtimev1.AbandonRunRequest:
		return checkName(q.GetRunId())
	case *runtimev1.SteerRunRequest:
		if err := checkName(q.GetRunId()); err != nil {
			return err
		}
		if q.GetText() == "" {
			return codes.New(codes.PromptEmpty)
		}
		if len(q.GetText()) > maxSteerBytes {
			return codes.New(codes.PromptTooLong)
		}
		return checkRef(q.GetSession())
	case *runtimev1.StopRunRequest:
		if err := checkName(q.GetRunId()); err != nil {
			return err
		}
		return checkRef(q.GetSession())
	case *runtimev1.ResolveInteractionRequest:
		if q.GetAnswer() == nil || q.GetInteractionId() == "" {
			return badParams()
		}
		if c, ok := q.GetAnswer().(*runtimev1.ResolveInteractionRequest_Cancel); ok && !c.Cancel {
			return badParams()
		}
		return checkRef(q.GetSession())
	case *runtimev1.SetSettingsRequest:
		if q.ModelId == nil && q.ProviderId == nil && len(q.GetOptions()) == 0 {
			return badParams()
		}
		return checkRefSize(q.GetSession())
	case *runtimev1.CallRequest:
		if q.GetMethod() == "" {
			return codes.New(codes.MethodUnknown)
		}
		return checkRefSize(q.GetSession())
	case withSession:
		return checkRefSize(q.GetSession())
	}
	return nil
}

// checkInput wants something to send, and every file to say what it is.
func checkInput(parts []*runtimev1.Part) error {
	any := false
	for _, p := range parts {
		switch c := p.GetContent().(type) {
		case *runtimev1.Part_Text:
			any = any || c.Text != ""
		case *runtimev1.Part_Data:
			if p.GetContentType() == "" || len(c.Data) == 0 {
				return codes.New(codes.AttachmentMalformed)
			}
			any = true
		case *runtimev1.Part_AttachmentId:
			return codes.New(codes.AttachmentUnsupported)
		default:
			return codes.New(codes.AttachmentMalformed)
		}
	}
	if !any {
		return codes.New(codes.PromptEmpty)
	}
	return nil
}
