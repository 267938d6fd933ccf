package runtimes

import (
	"context"
	"testing"

	"github.com/openphone-host/openphone/sdk/runtime"
)

// TestOnePromptWalks starts a real process and takes one prompt through it.
func TestOnePromptWalks(t *testing.T) {
	r := newRig(t, nil, nil)
	r.rec.reconcile = &runtime.ReconcileRequest{Runs: []runtime.OpenRun{{RunID: "old"}}}
	s := r.until(Ready)
	if s.Generation != 1 || s.PID == 0 || s.Status.Condition != runtime.ConditionReady || s.Status.NativeVersion != "1.0.0" {
		t.Errorf("snapshot %+v", s)
	}
	if len(r.rec.answer.Runs) != 1 || r.rec.answer.Runs[0].Phase != runtime.RunPhaseNeverSeen {
		t.Errorf("reconciled %+v", r.rec.answer)
	}
	ctx := context.Background()
	i := r.inst()
	if _, err := i.PrepareRun(ctx, &runtime.PrepareRunRequest{RunID: "r1"}); err != nil {
		t.Fatal(err)
	}
	c, err := i.CommitRun(ctx, &runtime.CommitRunRequest{RunID: "r1"})
	if err != nil || c.Outcome != runtime.OutcomeDispatched {
		t.Fatalf("commit: %+v, %v", c, err)
	}
	r.tell("end r1")
	r.wait("two events", func() bool { r.rec.mu.Lock(); defer r.rec.mu.Unlock(); return len(r.rec.events) == 2 })
	if r.rec.events[0].RunStarted == nil || r.rec.events[1].RunEnded == nil {
		t.Errorf("events %+v", r.rec.events)
	}
	r.stop()
	if !r.rec.has("down 1 restarting") {
		t.Errorf("observer saw %v", r.rec.lines)
	}
}
