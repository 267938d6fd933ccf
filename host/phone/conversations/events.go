package conversations

import (
	"encoding/json"
	"time"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/host/phone"
	"github.com/openphone-host/openphone/host/sessions"
	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/jsonframe"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// deliver turns an update into events for all phones. It is called by one goroutine at a time and never blocks: a phone
// that cannot keep up is dropped by its socket.
func (d *Dialect) deliver(u sessions.Update) {
	if u.Kind == sessions.ActivityChanged {
		d.deliverActivity(u)
		return
	}
	list := d.events(&u)
	to := d.joined()
	if len(to) == 0 {
		return
	}
	for _, e := range list {
		frame, err := d.frame(e.update)
		if err != nil {
			d.log.Error("event cannot be written", obs.KeyRuntime, d.backend, obs.KeyError, err)
			continue
		}
		for _, p := range to {
			p.Event(frame, e.key)
		}
	}
}

// event is an update on the wire; key marks one that a newer one of the same key makes worthless.
type event struct {
	update any
	key    string
}

func (d *Dialect) frame(update any) ([]byte, error) {
	return jsonframe.Marshal(clawket.Event{Type: clawket.TypeEvent, Event: d.event, Payload: update})
}

func (d *Dialect) joined() []phone.Peer {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]phone.Peer, 0, len(d.peers))
	for p := range d.peers {
		list = append(list, p)
	}
	return list
}

// deliverActivity reaches only direct phones that asked about this conversation not long ago (SYNC-15).
func (d *Dialect) deliverActivity(u sessions.Update) {
	if !d.traits.activityPush || u.Activity == nil {
		return
	}
	var to []phone.Peer
	now := time.Now()
	d.mu.Lock()
	for p, i := range d.peers {
		if p.Direct() && i.keys[u.SessionKey] && now.Before(i.until) {
			to = append(to, p)
		}
	}
	d.mu.Unlock()
	if len(to) == 0 {
		return
	}
	frame, err := d.frame(clawket.Update{Type: clawket.UpdateSessionActivity, Activity: &clawket.Activity{
		Key: u.SessionKey, State: activityWord(u.Activity.Activity), Attention: attentionWord(u.Activity.Attention),
	}})
	if err != nil {
		return
	}
	for _, p := range to {
		p.Event(frame, "")
	}
}

func (d *Dialect) events(u *sessions.Update) []event {
	base := clawket.Update{SessionKey: u.SessionKey, RunID: u.RunID}
	if d.traits.turns {
		base.TurnID = u.NativeRunID
	}
	switch u.Kind {
	case sessions.RunStarted:
		return d.plain(d.identified(base, u, clawket.UpdateRunStarted))
	case sessions.TextChunk:
		return d.chunk(base, u)
	case sessions.ThoughtChunk:
		base.Type, base.Text = clawket.UpdateThoughtChunk, &u.Text
		return d.plain(base)
	case sessions.ToolCalled:
		return d.toolEvents(base, u)
	case sessions.RunFinished:
		return d.finished(base, u)
	case sessions.InteractionOpened:
		return d.opened(u)
	case sessions.InteractionClosed:
		return d.closed(u)
	case sessions.SessionChanged:
		if u.Row == nil {
			return nil
		}
		return d.plain(clawket.Update{Type: clawket.UpdateSessionInfo, Session: mustJSON(d.descriptor(u.Row))})
	case sessions.AttentionChanged:
		return d.plain(clawket.Update{Type: clawket.UpdateSessionInfo, Session: mustJSON(struct {
			Key       string  `json:"key"`
			Attention *string `json:"attention"`
		}{u.SessionKey, attentionWord(u.Attention)})})
	case sessions.NoticeRaised:
		return d.notice(u)
	case sessions.RuntimeChanged:
		return d.runtimeChanged(u.Status)
	}
	// CatalogInvalidated: a phone learns of it with its next read of the catalog.
	return nil
}

func (d *Dialect) plain(u clawket.Update) []event { return []event{{update: u}} }

func mustJSON(v any) json.RawMessage {
	text, err := jsonframe.Marshal(v)
	if err != nil {
		panic(err) // plain structs of strings and numbers
	}
	return text
}

func (d *Dialect) identified(base clawket.Update, u *sessions.Update, kind string) clawket.Update {
	base.Type = kind
	if d.traits.turns {
		base.InputMessageID, base.InputMessageKey = u.InputMessageID, u.InputKey
	}
	return base
}

// chunk sends text as a snapshot or as a delta. A replaced part cannot be said as a delta; its reader gets the truth with
// the end of the run.
func (d *Dialect) chunk(base clawket.Update, u *sessions.Update) []event {
	c := d.identified(base, u, clawket.UpdateMessageChunk)
	c.TimestampMS = millis(u.At)
	if d.traits.snapshot {
		c.Text, c.TextMode = &u.FullText, clawket.TextSnapshot
		return []event{{update: c, key: u.RunID}}
	}
	if !u.Appends {
		return nil
	}
	text := u.Text
	if u.StartsPart {
		text = "\n\n" + text
	}
	c.Text, c.TextMode = &text, clawket.TextDelta
	return d.plain(c)
}

// toolEvents begins a call and goes on with it. One that is over when it is first heard of begins and ends at once.
func (d *Dialect) toolEvents(base clawket.Update, u *sessions.Update) []event {
	t := u.Tool
	if t == nil {
		return nil
	}
	base.ToolCallID, base.StartedAtMS = t.CallID, millis(t.StartedAt)
	over := t.Status == runtime.ToolStatusSucceeded || t.Status == runtime.ToolStatusFailed
	var list []event
	if u.FirstOfCall {
		c := base
		c.Type, c.Title, c.Kind, c.RawInput = clawket.UpdateToolCall, t.Name, t.Kind, d.toolInput(t.Input)
		if t.Status == runtime.ToolStatusRunning {
			c.Status = toolStatus(t.Status)
		}
		list = append(list, event{update: c})
		if !over && t.Output.IsZero() {
			return list
		}
	}
	c := base
	c.Type, c.Status, c.RawOutput = clawket.UpdateToolCallUpdate, toolStatus(t.Status), liveOutput(t.Output)
	if t.Status == runtime.ToolStatusUnspecified {
		c.Status = "running"
	}
	if over {
		c.FinishedAtMS = millis(t.FinishedAt)
		if t.Duration > 0 {
			ms := t.Duration.Milliseconds()
			c.DurationMS = &ms
		}
	}
	return append(list, event{update: c})
}

func stopReason(r runtime.EndReason) string {
	switch r {
	case runtime.EndReasonCompleted:
		return clawket.StopEndTurn
	case runtime.EndReasonLimitReached:
		return clawket.StopMaxTokens
	case runtime.EndReasonCancelled:
		return clawket.StopCancelled
	}
	return clawket.StopError
}

// finished is the one end of a run.
func (d *Dialect) finished(base clawket.Update, u *sessions.Update) []event {
	end := u.End
	if end == nil {
		end = &sessions.RunEnd{}
	}
	base.Type, base.StopReason, base.UnappliedInput = clawket.UpdateRunFinished, stopReason(end.Reason), end.UnappliedInput
	if d.traits.usage {
		base.Usage = usage(end.Usage)
	}
	if m := end.Message; m != nil {
		files, display := delivered(m, false)
		final := clawket.FinalMessage{
			Role: "assistant", Content: d.text(m), Attachments: files, ArtifactDisplayText: display,
			Provider: m.ProviderID, Model: m.ModelID, TimestampMS: millis(m.CreatedAt),
		}
		base.Message = mustJSON(final)
	}
	if base.StopReason != clawket.StopError {
		return d.plain(base)
	}
	text := d.shown(end.Code, end.NoticeText)
	if d.traits.terminalMessage {
		turn := u.NativeRunID
		if turn == "" {
			turn = "run:" + u.RunID
		}
		base.TerminalMessage = &clawket.TerminalMessage{ID: d.backend + "-turn-error:" + turn, Role: "system", Text: text, TimestampMS: millis(u.At)}
		return d.plain(base)
	}
	return []event{{update: d.errorUpdate(u.SessionKey, u.RunID, end.Code, text)}, {update: base}}
}

// shown is the sentence to show for a code, unless there is a text for it already. Neither may log the phone out.
func (d *Dialect) shown(code, text string) string {
	if text != "" && !loggedOut.MatchString(text) {
		return text
	}
	return d.sentence(code, nil)
}

func (d *Dialect) errorUpdate(sessionKey, runID, code, text string) clawket.Update {
	return clawket.Update{Type: clawket.UpdateError, SessionKey: sessionKey, RunID: runID, Code: appCode(code), Message: mustJSON(text)}
}

func (d *Dialect) opened(u *sessions.Update) []event {
	if u.Interaction == nil {
		return nil
	}
	out := clawket.Update{SessionKey: u.SessionKey}
	if out.Approval = approval(&u.Interaction.Request); out.Approval != nil {
		out.Type = clawket.UpdateApprovalRequested
		return d.plain(out)
	}
	if out.Question = d.question(&u.Interaction.Request); out.Question != nil {
		out.Type = clawket.UpdateQuestionRequested
		return d.plain(out)
	}
	return nil
}

// closed retires an interaction. Only what was decided by a phone is told as a decision.
func (d *Dialect) closed(u *sessions.Update) []event {
	if u.Interaction == nil {
		return nil
	}
	i := &u.Interaction.Request
	if i.Approval == nil {
		return d.plain(clawket.Update{Type: clawket.UpdateQuestionResolved, SessionKey: u.SessionKey, QuestionID: i.InteractionID})
	}
	out := clawket.Update{Type: clawket.UpdateApprovalResolved, SessionKey: u.SessionKey, ApprovalID: i.InteractionID, Decision: clawket.DecisionExpired}
	switch u.Closure {
	case runtime.ClosureAllowed:
		out.Decision = clawket.DecisionAllowOnce
	case runtime.ClosureDenied:
		out.Decision = clawket.DecisionDeny
	default:
		if d.traits.bareApprovals {
			out.Decision = clawket.DecisionDeny
		}
	}
	if d.traits.bareApprovals {
		out.Kind = "exec"
	}
	return d.plain(out)
}

// notice tells what a person may want to read. It ends nothing.
func (d *Dialect) notice(u *sessions.Update) []event {
	n := u.Notice
	if n == nil {
		return nil
	}
	if n.Severity == runtime.SeverityError || n.Severity == runtime.SeverityWarning {
		return d.plain(d.errorUpdate(u.SessionKey, u.RunID, n.Code, d.shown(n.Code, n.Text)))
	}
	if !d.traits.systemEvents || u.SessionKey == "" {
		return nil
	}
	switch n.Code {
	case "compaction_started":
		return d.plain(clawket.Update{Type: clawket.UpdateCompaction, SessionKey: u.SessionKey, Phase: "start"})
	case "compaction_ended":
		return d.plain(clawket.Update{Type: clawket.UpdateCompaction, SessionKey: u.SessionKey, Phase: "end"})
	}
	text := d.shown(n.Code, n.Text)
	return d.plain(clawket.Update{Type: clawket.UpdateSystemEvent, SessionKey: u.SessionKey, Kind: "info", Text: &text, TimestampMS: millis(u.At)})
}

// runtimeChanged is the status line: one when the runtime goes away, not one per attempt to bring it back.
func (d *Dialect) runtimeChanged(s *runtime.Status) []event {
	if s == nil {
		return nil
	}
	down := s.Condition == runtime.ConditionUnavailable
	d.mu.Lock()
	news := down && !d.down
	d.down = down
	d.mu.Unlock()
	if !news {
		return nil
	}
	code := s.Reason
	if code == "" {
		code = "runtime_unavailable"
	}
	u := d.errorUpdate("", "", code, d.sentence(code, nil))
	u.Code = "gateway_offline"
	return d.plain(u)
}
