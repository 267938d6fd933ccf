package sessions

import (
	"context"
	"time"

	"github.com/openphone-host/openphone/host/ledger"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Started asks a new plugin process, or one whose events have a gap, what became of everything that is open. Runs that go on
// stay open, the others end as what they really were, or as interrupted where nobody can tell. Nothing is sent again.
func (c *Conversations) Started(ctx context.Context, generation uint64, reconcile func(context.Context, *runtime.ReconcileRequest) (*runtime.ReconcileResponse, error)) error {
	c.mu.Lock()
	c.enter(generation)
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
			req.Runs = append(req.Runs, runtime.OpenRun{Session: conv.ref(), RunID: r.id, NativeRunID: r.nativeID,
				Outcome: r.outcome, AcceptedAt: r.startedAt})
		}
	}
	c.mu.Unlock()

	var resp *runtime.ReconcileResponse
	if c.describes(runtime.CapabilityReconcile) {
		var err error
		resp, err = reconcile(ctx, req)
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
	if err := c.ensureMain(ctx); err != nil {
		c.log.Error("the main conversation could not be made", "error", err)
	}
	c.mu.Lock()
	c.down = false
	c.publishStatus()
	c.mu.Unlock()
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
		if s.Phase != runtime.RunPhaseRunning {
			continue
		}
		c.mu.Lock()
		c.started(&runtime.Event{SessionID: s.Session.SessionID, NativeID: s.Session.NativeID, RunID: s.RunID,
			RunStarted: &runtime.RunStarted{NativeRunID: s.NativeRunID}})
		c.mu.Unlock()
	}
}

func (c *Conversations) settleRun(r *run, s *runtime.RunState) {
	c.mu.Lock()
	step := ledger.Reconciled(r.state, s.Phase, s.End)
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
	c.down = true
	c.mu.Unlock()
	c.loseInteractions()
	c.mu.Lock()
	now := time.Now()
	for _, r := range c.runs {
		u := r.update(NoticeRaised, now)
		u.Notice = c.notice(runtime.SeverityWarning, code, nil)
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
	c.mu.Unlock()
	c.flush()
}

// publishStatus tells what the runtime's status is now. mu is held.
func (c *Conversations) publishStatus() {
	s := c.rt.Status()
	close(c.statusChanged)
	c.statusChanged = make(chan struct{})
	c.publish(Update{Kind: RuntimeChanged, At: time.Now(), Status: &s})
}
