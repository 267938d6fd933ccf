package sessions

import (
	"context"
	"time"

	"github.com/openphone-host/openphone/host/ledger"
	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Started asks a new plugin process, or one whose events have a gap, what became of everything that is open. Runs that go on
// stay open, the others end as what they really were, or as interrupted where nobody can tell. Nothing is sent again.
//
// A plugin whose runtime cannot be reached has no answer yet: everything stays open, and it is asked again when its
// status says that the runtime is there. That is no fault of the plugin. Other errors are.
func (c *Conversations) Started(ctx context.Context, generation uint64, reconcile func(context.Context, *runtime.ReconcileRequest) (*runtime.ReconcileResponse, error)) error {
	c.mu.Lock()
	c.enter(generation)
	c.mu.Unlock()
	again := reconcileFunc(nil)
	err := c.reconcile(ctx, generation, reconcile)
	if codes.Of(err) == codes.RuntimeUnavailable {
		c.log.Info("the runtime cannot tell yet what became of open work", obs.KeyError, err)
		again, err = reconcile, nil
	}
	if err != nil {
		return err
	}
	if err := c.ensureMain(ctx); err != nil {
		c.log.Error("the main conversation could not be made", obs.KeyError, err)
	}
	c.mu.Lock()
	c.down, c.unasked = false, again
	c.publishStatus()
	c.mu.Unlock()
	c.flush()
	return nil
}

type reconcileFunc func(context.Context, *runtime.ReconcileRequest) (*runtime.ReconcileResponse, error)

// reconcile asks once and applies the answer.
func (c *Conversations) reconcile(ctx context.Context, generation uint64, ask reconcileFunc) error {
	c.mu.Lock()
	for _, r := range c.runs {
		r.text.restart()
	}
	var asked []*run
	var elsewhere []*run
	req := &runtime.ReconcileRequest{}
	for _, conv := range c.byKey {
		for _, r := range conv.runs {
			if r.elsewhere {
				elsewhere = append(elsewhere, r)
				continue
			}
			if r.committing == generation {
				continue // events are missing, but its dispatch is under way and will be answered
			}
			asked = append(asked, r)
			req.Runs = append(req.Runs, runtime.OpenRun{
				Session: conv.ref(), RunID: r.id, NativeRunID: r.nativeID,
				Outcome: r.outcome, AcceptedAt: r.startedAt,
			})
		}
	}
	c.mu.Unlock()

	var resp *runtime.ReconcileResponse
	if c.describes(runtime.CapabilityReconcile) {
		var err error
		resp, err = ask(ctx, req)
		switch codes.Of(err) {
		case "":
		case codes.MethodUnsupported, codes.MethodUnknown:
			resp = nil // nobody can tell: the same as an answer that names nothing
		default:
			return err
		}
	}
	if resp == nil {
		resp = &runtime.ReconcileResponse{}
	}
	c.settle(asked, elsewhere, resp)
	c.flush()
	return nil
}

func (c *Conversations) settle(asked, elsewhere []*run, resp *runtime.ReconcileResponse) {
	states := map[string]*runtime.RunState{}
	for i := range resp.Runs {
		states[resp.Runs[i].RunID] = &resp.Runs[i]
	}
	// Interactions first: those that wait no longer are closed before their runs end.
	c.settleInteractions(resp.Interactions)
	for _, r := range asked {
		s := states[r.id]
		delete(states, r.id)
		if s == nil {
			s = &runtime.RunState{}
		}
		c.settleRun(r, s)
	}
	for _, r := range elsewhere {
		s := states[r.id]
		delete(states, r.id)
		if s == nil {
			s = &runtime.RunState{}
		}
		c.settleRun(r, s)
	}
	// What runs in the runtime and nobody here knew.
	for _, s := range states {
		if s.Phase != runtime.RunPhaseRunning || c.onRecord(s.RunID) {
			continue
		}
		c.mu.Lock()
		c.started(&runtime.Event{
			SessionID: s.Session.SessionID, NativeID: s.Session.NativeID, RunID: s.RunID,
			RunStarted: &runtime.RunStarted{NativeRunID: s.NativeRunID},
		})
		c.mu.Unlock()
	}
}

func (c *Conversations) settleRun(r *run, s *runtime.RunState) {
	c.mu.Lock()
	step := ledger.Reconciled(r.state, s.Phase, s.End, r.stopped)
	if step.End == nil {
		r.state = step.State
		if s.NativeRunID != "" && s.NativeRunID != r.nativeID && c.runs[r.id] == r {
			r.nativeID = s.NativeRunID
			c.publish(r.update(RunStarted, time.Now()))
		}
	}
	c.mu.Unlock()
	if step.End != nil {
		c.end(r, step.End, time.Time{}, 0)
	}
}

// describes reports whether the plugin is built to do something, whatever the runtime can do now.
func (c *Conversations) describes(x runtime.Capability) bool {
	d := c.rt.Description()
	return d != nil && runtime.Has(d.Capabilities, x)
}

// Down says that the plugin process is gone. Runs stay open: the next process is asked about them. Phones get a status
// line.
func (c *Conversations) Down(generation uint64, code string) {
	c.mu.Lock()
	if generation < c.generation {
		c.mu.Unlock()
		return
	}
	c.down, c.unasked = true, nil
	c.mu.Unlock()
	c.loseInteractions()
	c.mu.Lock()
	now := time.Now()
	for _, r := range c.runs {
		u := r.update(NoticeRaised, now)
		if code == codes.Restarting { // on purpose: an upgrade, or the person asked for it
			u.Notice = c.notice(runtime.SeverityInfo, codes.Draining, nil)
		} else {
			u.Notice = c.notice(runtime.SeverityWarning, code, nil)
		}
		c.publish(u)
	}
	c.publishStatus()
	c.mu.Unlock()
	c.flush()
}

// Changed says that the runtime's status changed.
func (c *Conversations) Changed() {
	c.mu.Lock()
	c.publishStatus()
	ask, generation := c.unasked, c.generation
	c.mu.Unlock()
	c.flush()
	if ask == nil {
		return
	}
	if s := c.rt.Status().Condition; s != runtime.ConditionReady && s != runtime.ConditionDegraded {
		return
	}
	ctx, cancel := context.WithTimeout(c.life, askAgainTime)
	defer cancel()
	err := c.reconcile(ctx, generation, ask)
	if err != nil {
		c.log.Warn("the runtime still cannot tell what became of open work", obs.KeyError, err)
		return
	}
	c.mu.Lock()
	c.unasked = nil
	c.mu.Unlock()
}

// publishStatus tells what the runtime's status is now. mu is held.
func (c *Conversations) publishStatus() {
	s := c.rt.Status()
	close(c.statusChanged)
	c.statusChanged = make(chan struct{})
	c.publish(Update{Kind: RuntimeChanged, At: time.Now(), Status: &s})
}
