package sessions

import (
	"testing"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Consent survives phones; a plugin that dies takes it along, and brings it back if it still asks.
func TestInteractionsAndProcesses(t *testing.T) {
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	again := func(q *runtime.ReconcileRequest) *runtime.ReconcileResponse {
		resp := phase(runtime.RunPhaseRunning, nil)(q)
		resp.Interactions = []runtime.OpenInteraction{{Session: q.Runs[0].Session, RunID: id, Interaction: approval(id, "a", runtime.RiskHigh).InteractionOpened}}
		return resp
	}
	r.emit(approval(id, "a", runtime.RiskHigh), approval(id, "gone", runtime.RiskHigh))
	r.clear()
	r.Down(r.gen, codes.PluginCrashed)
	if u := r.seen(InteractionClosed); len(u) != 2 || u[0].Closure != runtime.ClosureCancelled {
		t.Errorf("closed %+v", u)
	}
	r.up(again)
	if u := r.seen(InteractionOpened); len(u) != 1 || u[0].SessionKey != key {
		t.Errorf("opened %+v", u)
	}
	r.restart()
	if l, _ := r.Approvals(t.Context(), key); len(l) != 0 {
		t.Errorf("a host that was restarted lists %+v", l)
	}
	r.up(again)
	l, _ := r.Approvals(t.Context(), key)
	if len(l) != 1 {
		t.Fatalf("%d are open", len(l))
	}
	if err := r.Resolve(t.Context(), somebody, l[0].Request.InteractionID, runtime.DecisionAllowOnce); err != nil {
		t.Error(err)
	}
}

func TestWhatCannotBeShown(t *testing.T) {
	r := newRig(t)
	id := r.send(r.create(), "x", "k")
	r.clear()
	r.emit(question(id, "odd", runtime.Field{FieldID: "f", Kind: 42}), question(id, "none", runtime.Field{}))
	r.until("the refusals", func() bool { return len(r.f.answers()) == 2 })
	for _, q := range r.f.answers() {
		if !q.Cancel {
			t.Errorf("the runtime got %+v", q)
		}
	}
	if k := r.kinds(); len(k) != 0 {
		t.Errorf("phones got %v", k)
	}
}

func TestAskedAfterTheEnd(t *testing.T) {
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	late := approval(id, "a", runtime.RiskHigh)
	late.SessionID = key
	r.emit(ended(id), late)
	if l, _ := r.Approvals(t.Context(), key); len(l) != 0 {
		t.Errorf("open: %+v", l)
	}
}

func TestCancelAQuestion(t *testing.T) {
	rules.Covers(t, "CX-15")
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	r.emit(question(id, "q"))
	l, _ := r.Questions(t.Context(), key)
	if err := r.Respond(t.Context(), somebody, key, l[0].Request.InteractionID, Answer{Cancel: true}); err != nil {
		t.Fatal(err)
	}
	if q := r.f.answers(); len(q) != 1 || !q[0].Cancel {
		t.Errorf("the runtime got %+v", q)
	}
	if len(r.seen(InteractionClosed)) != 0 {
		t.Error("it ended before the runtime said so")
	}
	r.emit(closed(id, "q", runtime.ClosureCancelled), runtime.Event{RunID: id, RunEnded: &runtime.RunEnded{Reason: runtime.EndReasonCancelled}})
	if len(r.seen(InteractionClosed)) != 1 {
		t.Error("it did not end")
	}
}

func TestRaisedAttention(t *testing.T) {
	r := newRig(t)
	key := r.create()
	raise := &runtime.RaiseAttentionRequest{AttentionID: "x", Session: runtime.SessionRef{SessionID: key}, Kind: runtime.AttentionKindError, Code: codes.RuntimeLoginRequired}
	if err := r.RaiseAttention(t.Context(), "fake", raise); err != nil {
		t.Fatal(err)
	}
	if row, _ := r.Lookup(t.Context(), key); row.Attention != runtime.AttentionKindError {
		t.Errorf("attention %v", row.Attention)
	}
	r.restart()
	if row, _ := r.Lookup(t.Context(), key); row.Attention != runtime.AttentionKindError {
		t.Errorf("after a restart: %v", row.Attention)
	}
	if err := r.ClearAttention(t.Context(), "fake", "x"); err != nil {
		t.Fatal(err)
	}
	if row, _ := r.Lookup(t.Context(), key); row.Attention != runtime.AttentionKindUnspecified {
		t.Errorf("cleared: %v", row.Attention)
	}
	raise.Session.SessionID = "nobody"
	if err := r.RaiseAttention(t.Context(), "fake", raise); codes.Of(err) != codes.SessionUnknown {
		t.Errorf("got %v", err)
	}
}
