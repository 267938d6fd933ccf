package sessions

import (
	"context"
	"strings"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Abort asks the runtime to stop a run; its end comes as RunFinished. A prompt that has no receipt yet is called off
// instead. ran is false when nothing was running.
func (c *Conversations) Abort(ctx context.Context, key, runID string) (ran bool, err error) {
	conv, err := c.find(key)
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	if p := conv.prepare; p != nil && (runID == "" || runID == p.runID) {
		p.called = true
		p.cancel()
		c.mu.Unlock()
		return true, nil
	}
	r, err := conv.open(runID)
	if r == nil {
		c.mu.Unlock()
		return false, err
	}
	r.stopped = true
	req := &runtime.StopRunRequest{Session: conv.ref(), RunID: r.id}
	c.mu.Unlock()

	resp, err := c.rt.StopRun(ctx, req)
	if err != nil {
		return true, err
	}
	switch resp.Outcome {
	case runtime.OutcomeDispatched:
		return true, nil
	case runtime.OutcomeNotDispatched:
		if c.stopLater(r) {
			return true, nil
		}
		return true, named(resp.Code, codes.StopFailed).With(codes.NotDispatched)
	}
	return true, codes.New(codes.StopFailed).With(codes.Unknown)
}

// stopLater has a run stopped once its dispatch was answered; false: it is not being dispatched.
func (c *Conversations) stopLater(r *run) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs[r.id] != r || r.committing == 0 {
		return false
	}
	r.stopping = true
	return true
}

// stopNow does what stopLater promised.
func (c *Conversations) stopNow(r *run) {
	c.mu.Lock()
	wanted := r.stopping && c.runs[r.id] == r
	req := &runtime.StopRunRequest{Session: r.conv.ref(), RunID: r.id}
	c.mu.Unlock()
	if !wanted {
		return
	}
	if _, err := c.rt.StopRun(c.life, req); err != nil {
		c.log.Warn("a run was not stopped", "run", obs.ID(r.id), obs.KeyError, err)
	}
}

// open finds the open run of that name, or the oldest one when the name is empty. mu is held.
func (conv *conversation) open(runID string) (*run, error) {
	for _, r := range conv.runs {
		if runID == "" || r.id == runID {
			return r, nil
		}
	}
	if runID == "" {
		return nil, nil
	}
	return nil, codes.New(codes.RunNotActive)
}

// Steer adds text to exactly this running reply. Errors: run_not_active, steering_unsupported, steering_refused,
// prompt_empty, prompt_too_long; outcome_unknown when nobody can tell whether it was taken.
func (c *Conversations) Steer(ctx context.Context, key, runID, text string) error {
	if strings.TrimSpace(text) == "" {
		return codes.New(codes.PromptEmpty)
	}
	if err := c.checkText(text); err != nil {
		return err
	}
	conv, err := c.find(key)
	if err != nil {
		return err
	}
	if !c.can(runtime.CapabilitySteer) {
		return codes.New(codes.SteeringUnsupported)
	}
	c.mu.Lock()
	r, _ := conv.open(runID)
	if r == nil || runID == "" {
		c.mu.Unlock()
		return codes.New(codes.RunNotActive)
	}
	req := &runtime.SteerRunRequest{Session: conv.ref(), RunID: r.id, Text: text}
	c.mu.Unlock()

	resp, err := c.rt.SteerRun(ctx, req)
	if err != nil {
		return err
	}
	switch resp.Outcome {
	case runtime.OutcomeDispatched:
		return nil
	case runtime.OutcomeNotDispatched:
		return named(resp.Code, codes.SteeringRefused).With(codes.NotDispatched)
	}
	return codes.New(codes.OutcomeUnknown)
}

// named is the error of a code a plugin answered with, or of the other code when it gave none.
func named(code, otherwise string) *codes.Error {
	if code == "" {
		code = otherwise
	}
	return codes.New(code)
}
