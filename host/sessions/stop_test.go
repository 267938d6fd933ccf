package sessions

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Stopping what has no receipt calls it off; nothing is recorded and nothing dispatched.
func TestAbortWhilePreparing(t *testing.T) {
	r := newRig(t)
	key := r.create()
	entered := make(chan struct{})
	r.f.onPrepare = func(ctx context.Context, _ *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error) {
		close(entered)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	failed := make(chan error, 1)
	go func() { _, err := r.Send(t.Context(), prompt(key, "x", "k")); failed <- err }()
	<-entered
	if ran, err := r.Abort(t.Context(), key, ""); !ran || err != nil {
		t.Errorf("abort: %t, %v", ran, err)
	}
	if err := <-failed; codes.Of(err) != codes.RunNotDispatched {
		t.Errorf("the send got %v", err)
	}
	if len(r.f.runs()) != 0 || len(r.seen(RunStarted)) != 0 {
		t.Error("it was dispatched or announced")
	}
}

func TestAbort(t *testing.T) {
	r := newRig(t)
	key := r.create()
	if ran, err := r.Abort(t.Context(), key, ""); ran || err != nil {
		t.Errorf("idle: %t, %v", ran, err)
	}
	id := r.send(key, "x", "k")
	if _, err := r.Abort(t.Context(), key, "other"); codes.Of(err) != codes.RunNotActive {
		t.Errorf("another run: %v", err)
	}
	if ran, err := r.Abort(t.Context(), key, id); !ran || err != nil {
		t.Errorf("abort: %t, %v", ran, err)
	}
	if n := len(r.seen(RunFinished)); n != 0 {
		t.Error("the acknowledgement ended the run")
	}
	r.f.onStop = func(*runtime.StopRunRequest) (*runtime.StopRunResponse, error) {
		return &runtime.StopRunResponse{Outcome: runtime.OutcomeNotDispatched, Code: codes.StopUnsupported}, nil
	}
	if _, err := r.Abort(t.Context(), key, ""); codes.Of(err) != codes.StopUnsupported {
		t.Errorf("refused: %v", err)
	}
	r.emit(runtime.Event{RunID: id, RunEnded: &runtime.RunEnded{Reason: runtime.EndReasonCancelled}})
	if u := r.seen(RunFinished); len(u) != 1 || u[0].End.Reason != runtime.EndReasonCancelled || u[0].End.NoticeText != "" {
		t.Errorf("ends: %+v", u)
	}
}

func TestSteer(t *testing.T) {
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	var got []*runtime.SteerRunRequest
	answer := runtime.SteerRunResponse{Outcome: runtime.OutcomeDispatched}
	r.f.onSteer = func(q *runtime.SteerRunRequest) (*runtime.SteerRunResponse, error) {
		got = append(got, q)
		return &answer, nil
	}
	if err := r.Steer(t.Context(), key, id, "more"); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].RunID != id || got[0].Text != "more" {
		t.Errorf("the runtime got %+v", got)
	}
	for _, x := range []struct {
		name, run, text string
		outcome         runtime.Outcome
		want            string
	}{
		{"another run", "other", "more", runtime.OutcomeDispatched, codes.RunNotActive},
		{"no run named", "", "more", runtime.OutcomeDispatched, codes.RunNotActive},
		{"blank", id, " \n", runtime.OutcomeDispatched, codes.PromptEmpty},
		{"refused", id, "more", runtime.OutcomeNotDispatched, codes.SteeringRefused},
		{"unknown", id, "more", runtime.OutcomeUnknown, codes.OutcomeUnknown},
	} {
		answer.Outcome = x.outcome
		if err := r.Steer(t.Context(), key, x.run, x.text); codes.Of(err) != x.want {
			t.Errorf("%s: got %v, want %s", x.name, err, x.want)
		}
	}
}

func TestSendAfterTheHostEnded(t *testing.T) {
	r := newRig(t)
	key := r.create()
	r.mu.Lock()
	c := r.Conversations
	r.mu.Unlock()
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	if _, err := r.Send(t.Context(), prompt(key, "x", "k")); codes.Of(err) != codes.Restarting {
		t.Errorf("got %v", err)
	}
	c.mu.Lock()
	c.closed = false
	c.mu.Unlock()
}

func TestLockGivesUp(t *testing.T) {
	r := newRig(t)
	key := r.create()
	conv, _ := r.find(key)
	if err := r.lock(t.Context(), conv); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := r.lock(ctx, conv); codes.Of(err) != codes.SessionBusy || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	conv.unlock()
}
