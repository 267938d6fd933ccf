package sessions

import (
	"context"
	"time"

	"github.com/openphone-host/openphone/host/ledger"
	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Events takes a batch of the plugin's events, in order. It writes to disk only for what must survive: ends of runs,
// interactions, new native names. Events of another process than the one that is listened to are dropped.
func (c *Conversations) Events(generation uint64, events []runtime.Event) {
	for i := range events {
		if !c.apply(generation, &events[i]) {
			c.count.dropped.WithLabelValues("process").Add(float64(len(events) - i))
			break
		}
	}
	c.flush()
}

// apply takes one event; false: the process is not listened to.
func (c *Conversations) apply(generation uint64, ev *runtime.Event) bool {
	c.mu.Lock()
	if generation < c.generation {
		c.mu.Unlock()
		return false
	}
	c.enter(generation)
	// What must be written first is done without the lock; everything else is applied here.
	switch {
	case ev.RunEnded != nil:
		r := c.runs[ev.RunID]
		c.mu.Unlock()
		if r != nil {
			c.end(r, ev.RunEnded, ev.At, ev.Seq)
		}
		c.advance(ev.Seq)
		return true
	case ev.InteractionOpened != nil:
		conv := c.of(ev)
		over := c.ended.has(ev.RunID)
		c.mu.Unlock()
		if conv != nil && !over {
			c.openInteraction(conv, ev.RunID, ev.InteractionOpened)
		}
		c.advance(ev.Seq)
		return true
	case ev.InteractionClosed != nil:
		conv := c.of(ev)
		c.mu.Unlock()
		if conv != nil {
			c.closeInteraction(conv, ev.InteractionClosed)
		}
		c.advance(ev.Seq)
		return true
	case ev.RunStarted != nil:
		known := c.runs[ev.RunID] != nil
		c.mu.Unlock()
		if !known && c.onRecord(ev.RunID) {
			c.advance(ev.Seq)
			return true // one of ours that ended, before this host started perhaps
		}
		c.mu.Lock()
		r := c.started(ev)
		c.mu.Unlock()
		if r != nil && !r.elsewhere && ev.RunStarted.NativeRunID != "" {
			c.noteNative(r, ev.RunStarted.NativeRunID)
		}
		c.advance(ev.Seq)
		return true
	case ev.SessionChanged != nil:
		c.mu.Unlock()
		c.sessionChanged(ev)
		c.advance(ev.Seq)
		return true
	}
	defer c.mu.Unlock()
	c.advanceLocked(ev.Seq)
	at := ev.At
	if at.IsZero() {
		at = time.Now()
	}
	switch {
	case ev.Text != nil:
		if r := c.heard(ev); r != nil {
			if ch, changed := r.text.apply(ev.Text); changed {
				u := r.update(TextChunk, at)
				u.Text, u.Appends, u.StartsPart, u.FullText = ch.text, ch.appends, ch.startsPart, r.text.full()
				c.publish(u)
			}
		}
	case ev.Thought != nil:
		if r := c.heard(ev); r != nil && ev.Thought.Text != "" {
			u := r.update(ThoughtChunk, at)
			u.Text, u.Appends = ev.Thought.Text, !ev.Thought.Replace
			c.publish(u)
		}
	case ev.ToolCall != nil:
		if r := c.heard(ev); r != nil && ev.ToolCall.CallID != "" {
			u := r.update(ToolCalled, at)
			u.Tool, u.FirstOfCall = r.tools.merge(ev.ToolCall)
			c.publish(u)
		}
	case ev.Notice != nil:
		c.noticed(ev, at)
	case ev.CatalogChanged != nil:
		c.publish(Update{Kind: CatalogInvalidated, At: at})
	case ev.SettingsChanged != nil:
		c.settingsChanged(ev)
	case ev.ActivityChanged != nil:
		c.activityChanged(ev, at)
	case ev.StatusChanged != nil:
		c.publishStatus()
	}
	return true
}

// heard finds the run an event belongs to and notes that the runtime has it; nil: it ended, or nobody announced it.
// mu is held.
func (c *Conversations) heard(ev *runtime.Event) *run {
	r := c.runs[ev.RunID]
	if r == nil || r.ending {
		c.count.dropped.WithLabelValues("run").Inc()
		return nil
	}
	r.state = ledger.Seen(r.state)
	return r
}

// of finds the conversation an event belongs to: by its run, by our name, by the runtime's name. One that the runtime
// has and nobody listed yet is made known. mu is held.
func (c *Conversations) of(ev *runtime.Event) *conversation {
	if r := c.runs[ev.RunID]; r != nil {
		return r.conv
	}
	return c.ofNames(ev.SessionID, ev.NativeID)
}

func (c *Conversations) ofNames(sessionID, nativeID string) *conversation {
	if sessionID != "" {
		conv := c.byKey[sessionID]
		if _, gone := c.gone[nativeID]; gone && nativeID != "" && conv != nil && conv.ref().NativeID != nativeID {
			return nil // it was begun anew since
		}
		return conv // nil: deleted, and its late events concern nobody
	}
	if nativeID == "" {
		return nil
	}
	if conv := c.byNative[nativeID]; conv != nil {
		return conv
	}
	if _, gone := c.gone[nativeID]; gone {
		return nil // let go of: what was said of it before comes too late
	}
	return c.discover(runtime.Session{Ref: runtime.SessionRef{NativeID: nativeID}})
}

// started takes what the runtime says about a run: more identity of one of ours, or a run begun elsewhere. mu is held.
func (c *Conversations) started(ev *runtime.Event) *run {
	at := ev.At
	if at.IsZero() {
		at = time.Now()
	}
	r := c.runs[ev.RunID]
	if r == nil {
		conv := c.of(ev)
		if conv == nil || ev.RunID == "" || c.ended.has(ev.RunID) {
			return nil
		}
		r = &run{
			id: ev.RunID, elsewhere: true, state: ledger.Dispatched, outcome: runtime.OutcomeDispatched, startedAt: at,
			nativeID: ev.RunStarted.NativeRunID, inputID: ev.RunStarted.InputMessageID,
		}
		c.track(conv, r)
		c.publishRow(conv)
		c.publish(r.update(RunStarted, at))
		return r
	}
	if r.ending {
		return nil
	}
	r.state = ledger.Seen(r.state)
	native, input := r.nativeID, r.inputID
	pick(&r.nativeID, ev.RunStarted.NativeRunID)
	pick(&r.inputID, ev.RunStarted.InputMessageID)
	if r.nativeID == native && r.inputID == input {
		return nil
	}
	c.publish(r.update(RunStarted, at))
	return r
}

// onRecord reports that a run has a receipt.
func (c *Conversations) onRecord(runID string) bool {
	_, found, err := c.db.Run(c.life, c.id, runID)
	if err != nil {
		c.log.Warn("a run was not looked up", obs.KeyError, err)
	}
	return found
}

// noteNative keeps the runtime's name of a run, which Reconcile needs after a crash.
func (c *Conversations) noteNative(r *run, native string) {
	c.mu.Lock()
	outcome := r.outcome
	if outcome == runtime.OutcomeUnspecified {
		outcome = runtime.OutcomeDispatched // the runtime speaks of it, so it has it
	}
	c.mu.Unlock()
	if err := c.db.SetOutcome(context.WithoutCancel(c.life), c.id, r.id, int32(outcome), native); err != nil {
		c.log.Error("the name of a run was not written", "run", obs.ID(r.id), obs.KeyError, err)
	}
}

// advance notes that an event was applied.
func (c *Conversations) advance(seq uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advanceLocked(seq)
}

func (c *Conversations) advanceLocked(seq uint64) {
	if seq <= c.seq {
		return
	}
	c.seq = seq
	if c.seqWaiters > 0 {
		close(c.seqChanged)
		c.seqChanged = make(chan struct{})
	}
}

// caughtUp waits until an event has been applied, or for a moment: an answer of the plugin may overtake its events.
func (c *Conversations) caughtUp(ctx context.Context, seq uint64) {
	timer := time.NewTimer(catchUpTime)
	defer timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seqWaiters++
	defer func() { c.seqWaiters-- }()
	for generation := c.generation; c.seq < seq && c.generation == generation; {
		changed := c.seqChanged
		c.mu.Unlock()
		late := false
		select {
		case <-changed:
		case <-timer.C:
			late = true
		case <-ctx.Done():
			late = true
		}
		c.mu.Lock()
		if late {
			return
		}
	}
}

// enter makes a plugin process the one that is listened to. mu is held.
func (c *Conversations) enter(generation uint64) {
	if generation == c.generation {
		return
	}
	c.generation, c.seq = generation, 0
	for _, conv := range c.byKey {
		conv.rowSeq, conv.lastEnd = 0, 0
	}
	close(c.seqChanged)
	c.seqChanged = make(chan struct{})
}
