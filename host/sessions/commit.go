package sessions

import (
	"context"
	"time"

	"github.com/openphone-host/openphone/host/ledger"
	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/host/store"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// commit dispatches an accepted run, once, and notes what became of it. It holds the write lock of the conversation.
func (c *Conversations) commit(r *run) {
	c.opts.Fault(killCommitting)
	c.mu.Lock()
	open := c.runs[r.id] == r
	c.mu.Unlock()
	if !open {
		return // another process, which never saw it, has said so
	}
	resp, err := c.rt.CommitRun(c.life, &runtime.CommitRunRequest{RunID: r.id})
	c.opts.Fault(killCommitted)
	outcome, code, native := runtime.OutcomeUnknown, "", ""
	switch {
	case err != nil:
		c.log.Warn("a run could not be dispatched", "run", obs.ID(r.id), obs.KeyError, err)
		// Only a call that provably never left this process comes back as an error that says so.
		if e := codes.As(err); e != nil && e.Outcome == codes.NotDispatched {
			outcome, code = runtime.OutcomeNotDispatched, e.Code
		}
	case resp != nil:
		outcome, code, native = resp.Outcome, resp.Code, resp.NativeRunID
		if outcome == runtime.OutcomeUnspecified {
			outcome = runtime.OutcomeUnknown
		}
	}
	c.note(r, outcome, code, native)
	c.flush()
	c.stopNow(r)
}

func (c *Conversations) note(r *run, outcome runtime.Outcome, code, native string) {
	c.mu.Lock()
	if r.state == ledger.Dispatched && outcome != runtime.OutcomeDispatched {
		outcome = runtime.OutcomeDispatched // its events came already: it runs, whatever the answer says
	}
	c.mu.Unlock()
	// Written first: if the host ends here, the next one asks the runtime with what is known.
	if err := c.db.SetOutcome(context.WithoutCancel(c.life), c.id, r.id, int32(outcome), native); err != nil {
		c.log.Error("the outcome of a run was not written", "run", obs.ID(r.id), obs.KeyError, err)
	}
	c.opts.Fault(killNoted)
	c.mu.Lock()
	if c.runs[r.id] != r {
		c.mu.Unlock()
		return // its end overtook the answer
	}
	step := ledger.Committed(r.state, outcome, code)
	r.outcome, r.committing = outcome, 0
	if step.End == nil {
		r.state = step.State
		if native != "" && native != r.nativeID {
			r.nativeID = native
			c.publish(r.update(RunStarted, time.Now()))
		}
		if step.Tell != "" {
			c.count.doubts.Inc()
			u := r.update(NoticeRaised, time.Now())
			u.Notice = c.notice(runtime.SeverityError, step.Tell, nil)
			c.publish(u)
		}
	}
	c.mu.Unlock()
	if step.End != nil {
		c.end(r, step.End, time.Time{}, 0)
	}
}

// end finishes a run: its end goes to disk, then its interactions are closed, then phones are told. Only the first end
// counts. seq is the event that brought it; 0: none did.
func (c *Conversations) end(r *run, e *runtime.RunEnded, at time.Time, seq uint64) {
	now := time.Now()
	if at.IsZero() {
		at = now
	}
	c.mu.Lock()
	if c.runs[r.id] != r || r.ending {
		c.mu.Unlock()
		return
	}
	r.ending = true
	conv := r.conv
	c.count.runs.WithLabelValues(e.Reason.String()).Inc()
	c.mu.Unlock()

	c.opts.Fault(killEnding)
	if !r.elsewhere {
		// Before phones are told, or a host that ends now would tell them another end.
		if err := c.db.EndRun(context.WithoutCancel(c.life), c.id, r.id, int32(e.Reason), e.Code, now); err != nil {
			c.log.Error("the end of a run was not written", "run", obs.ID(r.id), obs.KeyError, err)
		}
	}
	c.opts.Fault(killEnded)
	c.retireInteractions(conv, r.id)

	// Nothing of the run is applied any more, so what it said stays the same while files are looked for.
	c.mu.Lock()
	message := r.reply(e, at)
	roots := conv.roots()
	c.mu.Unlock()
	var final *HistoryMessage
	if message != nil {
		m := c.project(c.shelf.Begin(conv.key, ""), roots, *message)
		final = &m
	}

	c.mu.Lock()
	r.state = ledger.Ended
	c.forget(r)
	if x, ok := endingOf(r.record(e, now)); ok && !r.elsewhere && conv.endingsKnown {
		conv.addEnding(x)
	}
	conv.lastEnd = max(conv.lastEnd, seq)
	u := r.update(RunFinished, at)
	u.End = &RunEnd{
		Reason: e.Reason, Code: endCode(e), Usage: e.Usage, Message: final,
		UnappliedInput: e.UnappliedInput, StartedAt: r.startedAt,
	}
	if u.End.Code != "" {
		u.End.NoticeText = c.sentence(u.End.Code, nil)
	}
	c.publish(u)
	changed := conv.isOwn && !conv.deleted
	if changed {
		conv.rec.UpdatedAt, conv.rec.LastActivityAt = later(conv.rec.UpdatedAt, at), later(conv.rec.LastActivityAt, at)
		pick(&conv.rec.Preview, messagePreview(message))
	} else if conv.row != nil {
		row := *conv.row
		row.UpdatedAt = at
		row.LastMessage = lastMessage(message, at, row.LastMessage)
		conv.row = &row
	}
	c.publishRow(conv)
	c.publishAttention(conv)
	c.mu.Unlock()
	c.flush()
	if changed {
		c.save(conv)
	}
}

// record is what the store has of an ended run, as far as endings look at it.
func (r *run) record(e *runtime.RunEnded, at time.Time) store.Run {
	return store.Run{
		RunID: r.id, NativeRunID: r.nativeID, Outcome: int32(r.outcome), Ended: true, EndReason: int32(e.Reason),
		EndCode: e.Code, EndedAt: at,
	}
}

// reply is the message a run ends with: the runtime's own record, else the chunks. nil: it said nothing.
func (r *run) reply(e *runtime.RunEnded, at time.Time) *runtime.Message {
	if e.Message != nil {
		m := *e.Message
		pick(&m.RunID, r.id)
		return &m
	}
	text := r.text.reply()
	if text == "" {
		return nil
	}
	return &runtime.Message{
		Role: runtime.RoleAssistant, Parts: []runtime.Part{{Text: text}}, CreatedAt: at, RunID: r.id,
		NativeRunID: r.nativeID,
	}
}

// later keeps the clock of a runtime from turning a conversation's times back.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// endCode is the code to show: an end that is no success always has one.
func endCode(e *runtime.RunEnded) string {
	if e.Code != "" {
		return e.Code
	}
	switch e.Reason {
	case runtime.EndReasonCompleted, runtime.EndReasonLimitReached, runtime.EndReasonCancelled:
		return ""
	case runtime.EndReasonFailed:
		return codes.RunFailed
	}
	return codes.OutcomeUnknown
}
