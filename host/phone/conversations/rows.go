package conversations

import (
	"context"
	"path/filepath"
	"time"

	"github.com/openphone-host/openphone/host/sessions"
	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/jsonframe"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// descriptor shapes a row. What is unknown is left out: null in an optional text would make the app refuse the whole
// catalog (SYNC-07).
func (d *Dialect) descriptor(r *sessions.Row) clawket.Session {
	t := &d.traits
	s := clawket.Session{
		AgentID: d.backend, Key: r.Key, Kind: kindWord(r.Kind), Title: r.Title, HasActiveRun: r.HasActiveRun,
		UpdatedAt: millisOrNull(r.UpdatedAt), LastActivityAt: millisOrNull(r.LastActivityAt), Preview: r.Preview,
		Model: r.ModelID, ModelProvider: r.ProviderID, SessionID: r.SessionID, ParentSessionKey: r.ParentKey, Channel: r.Channel,
		Attention: attentionWord(r.Attention), Source: "bridge",
		AllowedActions: clawket.Actions{Rename: r.Actions.Rename, Reset: r.Actions.Reset, Delete: r.Actions.Delete, Pin: r.Actions.Pin},
	}
	if p := r.Project; p != nil {
		s.Project = &clawket.Project{ID: p.ID, Name: p.Name, Path: p.Path, Available: p.Available}
		if s.Title == "" {
			if s.Title = p.Name; s.Title == "" {
				s.Title = filepath.Base(p.Path)
			}
		}
	}
	if t.archivable {
		archive, archived := r.Actions.Archive, r.Archived
		s.AllowedActions.Archive, s.Archived = &archive, &archived
	}
	if r.Native {
		s.Source = "native"
		if t.continues {
			can := r.Continuation == runtime.ContinuationAllowed
			s.CanContinue = &can
		}
		if t.reasons {
			s.ContinuationBlockedReason = blockedWord(r.Continuation)
		}
	}
	return s
}

func (d *Dialect) descriptors(rows []sessions.Row) []clawket.Session {
	out := make([]clawket.Session, 0, len(rows))
	for i := range rows {
		out = append(out, d.descriptor(&rows[i]))
	}
	return out
}

func kindWord(k runtime.SessionKind) string {
	switch k {
	case runtime.SessionKindMain, runtime.SessionKindChannel, runtime.SessionKindGroup, runtime.SessionKindSubagent, runtime.SessionKindCron:
		return k.String()
	}
	return "direct"
}

func blockedWord(c runtime.Continuation) string {
	switch c {
	case runtime.ContinuationInUse:
		return "in_use"
	case runtime.ContinuationProjectUnavailable:
		return "project_unavailable"
	case runtime.ContinuationAllowed, runtime.ContinuationReadOnly:
		return ""
	}
	return "ownership_unknown"
}

// attentionWord is nil for none: the app wants null there, not an empty text.
func attentionWord(a runtime.AttentionKind) *string {
	switch a {
	case runtime.AttentionKindInput, runtime.AttentionKindApproval, runtime.AttentionKindError, runtime.AttentionKindCronFailed:
		word := a.String()
		return &word
	}
	return nil
}

func activityWord(a runtime.Activity) string {
	switch a {
	case runtime.ActivityIdle, runtime.ActivityRunning, runtime.ActivityWaiting:
		return a.String()
	}
	return "unknown"
}

func millisOrNull(t time.Time) *int64 {
	if t.IsZero() || t.UnixMilli() < 0 {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}

// millis is 0, which is left out, when the time is not known.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// list is the old catalog: whatever is known, also when a scan was cut (SYNC-01).
func (d *Dialect) list(ctx context.Context, _ *call) (any, error) {
	rows, err := d.svc.List(ctx, false)
	if err != nil {
		return nil, err
	}
	return d.descriptors(rows), nil
}

func (d *Dialect) archived(ctx context.Context, _ *call) (any, error) {
	rows, err := d.svc.Archived(ctx)
	if err != nil {
		return nil, err
	}
	out := d.descriptors(rows)
	for i := range out {
		yes, no := true, false
		out[i].Archived = &yes
		if out[i].Source == "native" {
			out[i].CanContinue, out[i].AllowedActions.Pin = &no, false
		}
	}
	return out, nil
}

// interest is what one phone wants to be told without asking again.
type interest struct {
	keys  map[string]bool
	until time.Time
}

// activity tells what some conversations do. It is evidence for display and proves nothing else (SYNC-10). A direct
// phone is told of changes of just these until its lease ends (SYNC-15).
func (d *Dialect) activity(ctx context.Context, c *call) (any, error) {
	var keys []string
	c.read("keys", '[', &keys)
	seen := map[string]bool{}
	for _, k := range keys {
		if n := jsonframe.Units(k); n < 1 || n > clawket.MaxActivityKeyUnits || seen[k] {
			c.failed = true
		}
		seen[k] = true
	}
	if len(keys) > clawket.MaxActivityKeys {
		c.failed = true
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	if d.traits.activityPush && c.peer.Direct() {
		d.mu.Lock()
		if i, joined := d.peers[c.peer]; joined {
			i.keys, i.until = seen, time.Now().Add(clawket.ActivityLease)
		}
		d.mu.Unlock()
	}
	list, err := d.svc.Activity(ctx, keys)
	if err != nil {
		return nil, err
	}
	if len(list) != len(keys) {
		return nil, codes.New(codes.ReplyInvalid)
	}
	out := make([]clawket.Activity, len(keys))
	for i, a := range list {
		out[i] = clawket.Activity{Key: keys[i], State: activityWord(a.Activity), Attention: attentionWord(a.Attention)}
	}
	return out, nil
}
