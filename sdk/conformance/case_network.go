package conformance

import (
	"context"
	"time"

	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// networkCases cut the connection between host and plugin while both live. A plugin may not take the end of a connection
// for the end of anything else.
var networkCases = []testCase{
	{group: "network", name: "the answer to a commit is lost", run: func(t *T) {
		t.lost(true)
	}},
	{group: "network", name: "a commit is lost on its way", run: func(t *T) {
		t.lost(false)
	}},
	{group: "network", name: "the connection breaks in the middle of a reply", run: func(t *T) {
		p := t.through()
		x := t.send(p, t.session(p), t.need(t.o.Prompts.Long, "long"))
		x.wait("text", isText)
		p.proxy.cut()
		t.heal(p)
		x.from = 0
		if t.has(runtime.CapabilityReconcile) {
			st := t.reconcile(p, x.ref, x.run, runtimev1.Outcome_OUTCOME_DISPATCHED)
			if st.GetPhase() != runtimev1.RunPhase_RUN_PHASE_RUNNING {
				t.Fatalf("the run is %v after the connection broke, want running", st.GetPhase())
			}
		}
		if end := x.end(); end.GetReason() != runtimev1.EndReason_END_REASON_COMPLETED {
			t.Errorf("the run ended %v %s", end.GetReason(), end.GetCode())
		}
		if t.has(runtime.CapabilityReconcile) { // without it the chunks from before the break are not told again
			x.sameText()
		}
		t.rows(p, x, 1)
	}},
	{group: "network", name: "a prepared prompt survives a new connection", run: func(t *T) {
		p := t.through()
		x := t.prepare(p, t.session(p), t.o.Prompts.Text)
		p.proxy.cut()
		t.heal(p)
		x.from = 0
		x.doCommit()
		x.end()
		x.quiet(silence)
	}},
}

// through starts a plugin behind a fault proxy.
func (t *T) through() *process {
	t.talks()
	t.proxied = true
	defer func() { t.proxied = false }()
	return t.start()
}

// heal waits for a new connection and opens the event stream again. A call that began on the old one may still fail.
func (t *T) heal(p *process) {
	ctx := t.timed(20 * time.Second)
	for {
		_, err := p.Runtime.Health(ctx, &runtimev1.HealthRequest{}, grpc.WaitForReady(true))
		if err == nil {
			break
		}
		if status.Code(err) != grpccodes.Unavailable || pause(ctx, 20*time.Millisecond) != nil {
			t.Fatalf("Health over a new connection: %v", err)
		}
	}
	t.must(p.watch(), "Watch again")
}

// lost loses a commit or its answer, and asks again over a new connection. However it was, there is one run.
func (t *T) lost(answer bool) {
	p := t.through()
	x := t.prepare(p, t.session(p), t.o.Prompts.Text)
	p.proxy.deafen(answer, !answer)
	ctx, cancel := context.WithTimeout(t.ctx, 700*time.Millisecond)
	_, err := p.Conversations.CommitRun(ctx, &runtimev1.CommitRunRequest{RunId: x.run})
	cancel()
	if err == nil {
		t.Fatalf("a lost commit was answered")
	}
	p.proxy.cut()
	t.heal(p)
	x.from = 0
	r, err := p.Conversations.CommitRun(t.settings(), &runtimev1.CommitRunRequest{RunId: x.run})
	t.must(err, "CommitRun again")
	switch r.GetOutcome() {
	case runtimev1.Outcome_OUTCOME_DISPATCHED:
	case runtimev1.Outcome_OUTCOME_NOT_DISPATCHED:
		t.rows(p, x, 0)
		return
	default:
		t.Errorf("the second commit answers %v", r.GetOutcome())
	}
	ended := false
	if t.has(runtime.CapabilityReconcile) {
		ended = t.reconcile(p, x.ref, x.run, runtimev1.Outcome_OUTCOME_UNKNOWN).GetPhase() == runtimev1.RunPhase_RUN_PHASE_ENDED
	}
	if !ended && !answer {
		x.end()
	}
	t.prompts(p, x.ref, t.o.Prompts.Text, 1)
}
