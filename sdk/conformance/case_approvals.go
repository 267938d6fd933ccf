package conformance

import (
	"time"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// approvalCases are about interactions.
var approvalCases = []testCase{
	{group: "approvals", name: "allowed once", needs: caps("approvals"), run: func(t *T) {
		t.decide(runtimev1.Decision_DECISION_ALLOW_ONCE, runtimev1.Closure_CLOSURE_ALLOWED)
	}},
	{group: "approvals", name: "denied", needs: caps("approvals"), run: func(t *T) {
		t.decide(runtimev1.Decision_DECISION_DENY, runtimev1.Closure_CLOSURE_DENIED)
	}},
	{group: "approvals", name: "an unknown decision denies", needs: caps("approvals"), run: func(t *T) {
		t.decide(runtimev1.Decision(99), runtimev1.Closure_CLOSURE_DENIED)
	}},
	{group: "approvals", name: "pending survives another watch", needs: caps("approvals", "reconcile"), run: func(t *T) {
		p := t.start()
		x := t.send(p, t.session(p), t.need(t.o.Prompts.Approval, "approval"))
		in := x.wait("a question", isQuestion).GetInteractionOpened()
		t.must(p.watch(), "Watch again")
		r, err := p.Runtime.Reconcile(t.settings(), &runtimev1.ReconcileRequest{Runs: []*runtimev1.OpenRun{{Session: x.ref, RunId: x.run, Outcome: runtimev1.Outcome_OUTCOME_DISPATCHED}}})
		t.must(err, "Reconcile")
		found := false
		for _, o := range r.GetInteractions() {
			found = found || o.GetInteraction().GetInteractionId() == in.GetInteractionId() && o.GetRunId() == x.run
		}
		if !found {
			t.Errorf("Reconcile does not list the open interaction")
		}
		x.from = 0
		x.resolve(in, allow(runtimev1.Decision_DECISION_ALLOW_ONCE), runtimev1.Outcome_OUTCOME_DISPATCHED)
		x.end()
	}},
	{group: "approvals", name: "closed with the end of the run", needs: caps("approvals"), run: func(t *T) {
		p := t.start()
		x := t.send(p, t.session(p), t.need(t.o.Prompts.Approval, "approval"))
		in := x.wait("a question", isQuestion).GetInteractionOpened()
		_, err := p.Conversations.StopRun(t.settings(), &runtimev1.StopRunRequest{Session: x.ref, RunId: x.run})
		t.must(err, "StopRun")
		x.end()
		if x.closed(in) == nil {
			t.Errorf("the run ended before its open interaction was closed")
		}
		x.resolve(in, allow(runtimev1.Decision_DECISION_ALLOW_ONCE), runtimev1.Outcome_OUTCOME_NOT_DISPATCHED)
	}},
	{group: "approvals", name: "gone with the process", needs: caps("approvals", "reconcile"), run: func(t *T) {
		dir := t.dataDir()
		p := t.startIn(dir)
		x := t.send(p, t.session(p), t.need(t.o.Prompts.Approval, "approval"))
		in := x.wait("a question", isQuestion).GetInteractionOpened()
		p.Kill()
		x.p = t.startIn(dir)
		st := t.reconcile(x.p, x.ref, x.run, runtimev1.Outcome_OUTCOME_DISPATCHED)
		if st.GetPhase() == runtimev1.RunPhase_RUN_PHASE_RUNNING {
			t.skip("the runtime outlives the plugin")
		}
		x.resolve(in, allow(runtimev1.Decision_DECISION_ALLOW_ONCE), runtimev1.Outcome_OUTCOME_NOT_DISPATCHED)
	}},
	{group: "approvals", name: "a question takes one answer", needs: caps("questions"), run: func(t *T) {
		p := t.start()
		x := t.send(p, t.session(p), t.need(t.o.Prompts.Question, "question"))
		in := x.wait("a question", isQuestion).GetInteractionOpened()
		q := in.GetQuestion()
		if len(q.GetFields()) == 0 {
			t.Fatalf("the question has no field")
		}
		x.resolve(in, &runtimev1.ResolveInteractionRequest{Answer: &runtimev1.ResolveInteractionRequest_Answers{Answers: fill(q)}}, runtimev1.Outcome_OUTCOME_DISPATCHED)
		x.resolve(in, &runtimev1.ResolveInteractionRequest{Answer: &runtimev1.ResolveInteractionRequest_Answers{Answers: fill(q)}}, runtimev1.Outcome_OUTCOME_NOT_DISPATCHED)
		x.end()
		if c := x.closed(in); c == nil || c.GetClosure() != runtimev1.Closure_CLOSURE_ANSWERED {
			t.Errorf("the question was closed as %v, want answered", c.GetClosure())
		}
	}},
	{group: "approvals", name: "a question can be cancelled", needs: caps("questions"), run: func(t *T) {
		p := t.start()
		x := t.send(p, t.session(p), t.need(t.o.Prompts.Question, "question"))
		in := x.wait("a question", isQuestion).GetInteractionOpened()
		x.resolve(in, &runtimev1.ResolveInteractionRequest{Answer: &runtimev1.ResolveInteractionRequest_Cancel{Cancel: true}}, runtimev1.Outcome_OUTCOME_DISPATCHED)
		x.end()
		if x.closed(in) == nil {
			t.Errorf("the cancelled question was not closed")
		}
	}},
	{group: "approvals", name: "what is unknown is not pending", run: func(t *T) {
		if !t.has(runtime.CapabilityApprovals) && !t.has(runtime.CapabilityQuestions) {
			t.skip("the runtime asks nothing")
		}
		p := t.start()
		x := &turn{t: t, p: p, ref: t.session(p)}
		x.resolve(&runtimev1.Interaction{InteractionId: id("none-")}, allow(runtimev1.Decision_DECISION_ALLOW_ONCE), runtimev1.Outcome_OUTCOME_NOT_DISPATCHED)
	}},
}

func allow(d runtimev1.Decision) *runtimev1.ResolveInteractionRequest {
	return &runtimev1.ResolveInteractionRequest{Answer: &runtimev1.ResolveInteractionRequest_Decision{Decision: d}}
}

// decide answers one approval, checks that the answer counts once, and that the run goes on.
func (t *T) decide(d runtimev1.Decision, want runtimev1.Closure) {
	p := t.start()
	x := t.send(p, t.session(p), t.need(t.o.Prompts.Approval, "approval"))
	in := x.wait("a question", isQuestion).GetInteractionOpened()
	a := in.GetApproval()
	switch {
	case a == nil:
		t.Fatalf("the interaction is no approval")
	case a.GetSubject() == "" || len([]rune(a.GetSubject())) > 128_000 || len([]rune(a.GetReason())) > 2000:
		t.Errorf("subject of %d and reason of %d characters", len([]rune(a.GetSubject())), len([]rune(a.GetReason())))
	}
	if e := in.GetExpiresAt(); e != nil && e.AsTime().Before(time.Now()) {
		t.Errorf("the interaction has expired at birth")
	}
	x.resolve(in, allow(d), runtimev1.Outcome_OUTCOME_DISPATCHED)
	x.resolve(in, allow(runtimev1.Decision_DECISION_ALLOW_ONCE), runtimev1.Outcome_OUTCOME_NOT_DISPATCHED)
	x.end()
	if c := x.closed(in); c == nil || c.GetClosure() != want {
		t.Errorf("the approval was closed as %v, want %v", c.GetClosure(), want)
	}
	x.quiet(silence)
	x.resolve(in, allow(d), runtimev1.Outcome_OUTCOME_NOT_DISPATCHED)
}

// resolve answers an interaction and checks the outcome.
func (x *turn) resolve(in *runtimev1.Interaction, q *runtimev1.ResolveInteractionRequest, want runtimev1.Outcome) {
	q.Session, q.InteractionId = x.ref, in.GetInteractionId()
	r, err := x.p.Conversations.ResolveInteraction(x.t.settings(), q)
	x.t.must(err, "ResolveInteraction")
	if r.GetOutcome() != want {
		x.t.Errorf("ResolveInteraction answered %v %s, want %v", r.GetOutcome(), r.GetCode(), want)
	}
	if want == runtimev1.Outcome_OUTCOME_NOT_DISPATCHED && r.GetCode() != codes.InteractionNotPending {
		x.t.Errorf("ResolveInteraction answered code %q, want interaction_not_pending", r.GetCode())
	}
}

// closed gives the closing of an interaction, if it came before the end of the run.
func (x *turn) closed(in *runtimev1.Interaction) *runtimev1.InteractionClosed {
	for _, e := range x.p.events.all() {
		if e.GetRunId() == x.run && isEnd(e) {
			return nil
		}
		if c := e.GetInteractionClosed(); c.GetInteractionId() == in.GetInteractionId() && c != nil {
			return c
		}
	}
	return nil
}

// fill answers every field with what it offers.
func fill(q *runtimev1.Question) *runtimev1.Answers {
	a := &runtimev1.Answers{}
	for _, f := range q.GetFields() {
		v := "an answer"
		switch f.GetKind() {
		case runtimev1.FieldKind_FIELD_KIND_SELECT:
			if len(f.GetOptions()) > 0 {
				v = f.GetOptions()[0].GetLabel()
			}
		case runtimev1.FieldKind_FIELD_KIND_CONFIRM:
			v = "true"
		}
		a.Answers = append(a.Answers, &runtimev1.Answer{FieldId: f.GetFieldId(), Values: []string{v}})
	}
	return a
}
