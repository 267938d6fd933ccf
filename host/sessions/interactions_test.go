package sessions

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

var somebody = Person{ID: "phone-1", Label: "Pixel"}

func approval(run, id string, risk runtime.Risk) runtime.Event {
	return runtime.Event{RunID: run, InteractionOpened: &runtime.Interaction{
		InteractionID: id,
		Approval:      &runtime.Approval{Category: runtime.ApprovalCategoryCommand, Subject: "rm -r " + id, Risk: risk},
	}}
}

func question(run, id string, fields ...runtime.Field) runtime.Event {
	if len(fields) == 0 {
		fields = []runtime.Field{{FieldID: "f", Kind: runtime.FieldKindLine}}
	}
	return runtime.Event{RunID: run, InteractionOpened: &runtime.Interaction{InteractionID: id, Question: &runtime.Question{Title: "?", Fields: fields}}}
}

func closed(run, id string, c runtime.Closure) runtime.Event {
	return runtime.Event{RunID: run, InteractionClosed: &runtime.InteractionClosed{InteractionID: id, Closure: c}}
}

// Five approvals raised together, one of them by a nested agent, are all there and answered in any order.
func TestFiveApprovalsAtOnce(t *testing.T) {
	rules.Covers(t, "FAULT-03", "SYNC-11")
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	var events []runtime.Event
	for i := range 5 {
		e := approval(id, fmt.Sprint("a", i), runtime.RiskHigh)
		if i == 3 {
			e.InteractionOpened.AgentName = "helper"
		}
		events = append(events, e)
	}
	r.emit(events...)
	list, err := r.Approvals(t.Context(), key)
	if err != nil || len(list) != 5 || len(r.seen(InteractionOpened)) != 5 {
		t.Fatalf("%d are listed, %d were told, %v", len(list), len(r.seen(InteractionOpened)), err)
	}
	if all, _ := r.Approvals(t.Context(), ""); len(all) != 5 {
		t.Errorf("%d in all conversations", len(all))
	}
	if list[3].Request.AgentName != "helper" || list[3].RunID != id {
		t.Errorf("nested: %+v", list[3])
	}
	if rows, _ := r.List(t.Context(), true); rows[0].Attention != runtime.AttentionKindApproval {
		t.Errorf("attention %v", rows[0].Attention)
	}
	var wg sync.WaitGroup
	for _, i := range []int{4, 0, 3, 1, 2} {
		wg.Go(func() {
			d := runtime.DecisionAllowOnce
			if i%2 == 1 {
				d = runtime.DecisionDeny
			}
			if err := r.Resolve(t.Context(), somebody, list[i].Request.InteractionID, d); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := map[string]runtime.Decision{}
	for _, q := range r.f.answers() {
		got[q.InteractionID] = q.Decision
	}
	want := map[string]runtime.Decision{"a0": 1, "a1": 2, "a2": 1, "a3": 2, "a4": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the runtime got (-want +got):\n%s", diff)
	}
	if n := len(r.seen(InteractionClosed)); n != 5 {
		t.Errorf("%d were closed", n)
	}
	if rows, _ := r.List(t.Context(), true); rows[0].Attention != runtime.AttentionKindUnspecified {
		t.Errorf("attention stays %v", rows[0].Attention)
	}
}

// Two phones, one answer: the second is told, and the runtime hears one.
func TestAnsweredOnce(t *testing.T) {
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	r.emit(approval(id, "a", runtime.RiskHigh), question(id, "q"))
	a, _ := r.Approvals(t.Context(), key)
	q, _ := r.Questions(t.Context(), key)
	var wg sync.WaitGroup
	var mu sync.Mutex
	codesGot := map[string]int{}
	note := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		codesGot[codes.Of(err)]++
	}
	for range 4 {
		wg.Go(func() { note(r.Resolve(t.Context(), somebody, a[0].Request.InteractionID, runtime.DecisionAllowOnce)) })
		wg.Go(func() {
			note(r.Respond(t.Context(), somebody, key, q[0].Request.InteractionID, Answer{Fields: map[string][]string{"f": {"v"}}}))
		})
	}
	wg.Wait()
	if codesGot[""] != 2 || codesGot[codes.InteractionAnswered] != 6 {
		t.Errorf("the phones got %v", codesGot)
	}
	if n := len(r.f.answers()); n != 2 {
		t.Errorf("the runtime got %d answers", n)
	}
	// Late, and after the runtime said so itself.
	r.emit(closed(id, "a", runtime.ClosureAllowed), closed(id, "q", runtime.ClosureAnswered))
	if err := r.Resolve(t.Context(), somebody, a[0].Request.InteractionID, runtime.DecisionDeny); codes.Of(err) != codes.InteractionAnswered {
		t.Errorf("late: %v", err)
	}
	if n := len(r.seen(InteractionClosed)); n != 2 {
		t.Errorf("%d were closed", n)
	}
	if u := r.seen(InteractionClosed); u[0].AnsweredBy != "Pixel" {
		t.Errorf("answered by %q", u[0].AnsweredBy)
	}
}

func TestAnswers(t *testing.T) {
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	fields := []runtime.Field{
		{FieldID: "one", Kind: runtime.FieldKindSelect, Options: []runtime.FieldOption{{Label: "a"}, {Label: "b"}}},
		{FieldID: "many", Kind: runtime.FieldKindSelect, Options: []runtime.FieldOption{{Label: "a"}, {Label: "b"}}, MultiSelect: true, AllowCustom: true},
		{FieldID: "sure", Kind: runtime.FieldKindConfirm},
		{FieldID: "text", Kind: runtime.FieldKindText},
	}
	good := func() map[string][]string {
		return map[string][]string{"one": {"a"}, "many": {"a", "b"}, "sure": {"true"}, "text": {"x\ny"}}
	}
	r.emit(question(id, "q", fields...))
	list, _ := r.Questions(t.Context(), key)
	public := list[0].Request.InteractionID
	for _, x := range []struct {
		name   string
		change func(map[string][]string)
	}{
		{"a field is missing", func(m map[string][]string) { delete(m, "sure") }},
		{"a field too many", func(m map[string][]string) { m["other"] = []string{"x"} }},
		{"an unlisted label", func(m map[string][]string) { m["one"] = []string{"c"} }},
		{"two where one is asked", func(m map[string][]string) { m["one"] = []string{"a", "b"} }},
		{"none", func(m map[string][]string) { m["one"] = nil }},
		{"blank custom text", func(m map[string][]string) { m["many"] = []string{" "} }},
		{"a label and custom text", func(m map[string][]string) { m["many"] = []string{"a", "c"} }},
		{"twice the same", func(m map[string][]string) { m["many"] = []string{"a", "a"} }},
		{"neither yes nor no", func(m map[string][]string) { m["sure"] = []string{"maybe"} }},
		{"not UTF-8", func(m map[string][]string) { m["text"] = []string{"\xff"} }},
	} {
		m := good()
		x.change(m)
		if err := r.Respond(t.Context(), somebody, key, public, Answer{Fields: m}); codes.Of(err) != codes.AnswerInvalid {
			t.Errorf("%s: got %v", x.name, err)
		}
	}
	if err := r.Respond(t.Context(), somebody, "other", public, Answer{Fields: good()}); codes.Of(err) != codes.InteractionNotPending {
		t.Errorf("from another conversation: %v", err)
	}
	if err := r.Resolve(t.Context(), somebody, public, runtime.DecisionAllowOnce); codes.Of(err) != codes.InteractionNotPending {
		t.Errorf("a decision on a question: %v", err)
	}
	if err := r.Respond(t.Context(), somebody, key, "nothing", Answer{}); codes.Of(err) != codes.InteractionNotPending {
		t.Errorf("an unknown question: %v", err)
	}
	if n := len(r.f.answers()); n != 0 {
		t.Fatalf("the runtime got %d wrong answers", n)
	}
	m := good()
	m["many"] = []string{"something else"}
	if err := r.Respond(t.Context(), somebody, key, public, Answer{Fields: m}); err != nil {
		t.Fatal(err)
	}
	if q := r.f.answers(); len(q) != 1 || q[0].InteractionID != "q" || len(q[0].Answers.Answers) != 4 || q[0].Answers.Answers[1].Values[0] != "something else" {
		t.Errorf("the runtime got %+v", q)
	}
}

func TestDecisions(t *testing.T) {
	rules.Covers(t, "CX-03")
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	r.emit(approval(id, "a", runtime.RiskLow))
	list, _ := r.Approvals(t.Context(), key)
	for _, d := range []runtime.Decision{runtime.DecisionUnspecified, 3, 99} { // 3 was to allow always
		if err := r.Resolve(t.Context(), somebody, list[0].Request.InteractionID, d); codes.Of(err) != codes.DecisionInvalid {
			t.Errorf("%d: %v", d, err)
		}
	}
	if n := len(r.f.answers()); n != 0 {
		t.Errorf("the runtime got %d answers", n)
	}
}

// What nobody can tell is told as such, takes no second answer, and is free again when the runtime still asks.
func TestAnswerUnknown(t *testing.T) {
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	r.emit(approval(id, "a", runtime.RiskHigh))
	list, _ := r.Approvals(t.Context(), key)
	public := list[0].Request.InteractionID
	r.f.onResolve = func(*runtime.ResolveInteractionRequest) (*runtime.ResolveInteractionResponse, error) {
		return &runtime.ResolveInteractionResponse{Outcome: runtime.OutcomeUnknown}, nil
	}
	for range 2 {
		if err := r.Resolve(t.Context(), somebody, public, runtime.DecisionAllowOnce); codes.Of(err) != codes.AnswerUnknown {
			t.Errorf("got %v", err)
		}
	}
	if n := len(r.f.answers()); n != 1 {
		t.Errorf("the runtime got %d answers", n)
	}
	r.f.onResolve = nil
	r.up(func(q *runtime.ReconcileRequest) *runtime.ReconcileResponse {
		resp := phase(runtime.RunPhaseRunning, nil)(q)
		resp.Interactions = []runtime.OpenInteraction{{Session: q.Runs[0].Session, RunID: id, Interaction: approval(id, "a", runtime.RiskHigh).InteractionOpened}}
		return resp
	})
	if err := r.Resolve(t.Context(), somebody, public, runtime.DecisionDeny); err != nil {
		t.Errorf("still asked, but: %v", err)
	}
}

func TestAnswerNotTaken(t *testing.T) {
	for _, x := range []struct {
		name, code string
		again      bool
	}{{"no longer asked", codes.InteractionNotPending, false}, {"still asked", "", true}} {
		t.Run(x.name, func(t *testing.T) {
			r := newRig(t)
			key := r.create()
			id := r.send(key, "x", "k")
			r.emit(approval(id, "a", runtime.RiskHigh))
			list, _ := r.Approvals(t.Context(), key)
			r.f.onResolve = func(*runtime.ResolveInteractionRequest) (*runtime.ResolveInteractionResponse, error) {
				return &runtime.ResolveInteractionResponse{Outcome: runtime.OutcomeNotDispatched, Code: x.code}, nil
			}
			if err := r.Resolve(t.Context(), somebody, list[0].Request.InteractionID, runtime.DecisionDeny); codes.Of(err) != codes.InteractionNotPending {
				t.Errorf("got %v", err)
			}
			r.f.onResolve = nil
			err := r.Resolve(t.Context(), somebody, list[0].Request.InteractionID, runtime.DecisionDeny)
			if (err == nil) != x.again {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// The policy answers what leaves nothing to ask, and nothing else; never a question.
func TestPolicyAnswers(t *testing.T) {
	for _, x := range []struct {
		level runtime.Autonomy
		risk  runtime.Risk
		want  runtime.Decision // unspecified: a person is asked
	}{
		{runtime.AutonomyUnspecified, runtime.RiskLow, 0},
		{runtime.AutonomyObserveOnly, runtime.RiskLow, runtime.DecisionDeny},
		{runtime.AutonomyAskBeforeAction, runtime.RiskLow, 0},
		{runtime.AutonomyTrustedActions, runtime.RiskLow, runtime.DecisionAllowOnce},
		{runtime.AutonomyTrustedActions, runtime.RiskHigh, 0},
		{runtime.AutonomyTrustedActions, runtime.RiskUnspecified, 0},
	} {
		t.Run(x.level.String()+"/"+x.risk.String(), func(t *testing.T) {
			r := newRig(t)
			r.restart(func(o *Options) { o.Autonomy = x.level })
			r.up()
			key := r.create()
			id := r.send(key, "x", "k")
			r.emit(approval(id, "a", x.risk), question(id, "q"))
			if x.want == 0 {
				if n := len(r.seen(InteractionOpened)); n != 2 || len(r.f.answers()) != 0 {
					t.Errorf("%d were shown, %d answered", n, len(r.f.answers()))
				}
				return
			}
			r.until("the answer", func() bool { return len(r.seen(InteractionClosed)) == 1 })
			if q := r.f.answers(); len(q) != 1 || q[0].Decision != x.want {
				t.Errorf("the runtime got %+v", q)
			}
			if u := r.seen(InteractionOpened); len(u) != 1 || u[0].Interaction.Request.Question == nil {
				t.Errorf("shown: %+v", u)
			}
			if u := r.seen(InteractionClosed)[0]; u.AnsweredBy != byPolicy {
				t.Errorf("answered by %q", u.AnsweredBy)
			}
		})
	}
}

// The end of a run closes what it still asks first, each followed by the change of attention it causes.
func TestOrderAtTheEnd(t *testing.T) {
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	r.clear()
	r.emit(question(id, "q"), approval(id, "a", runtime.RiskHigh), closed(id, "a", runtime.ClosureExpired), closed(id, "q", runtime.ClosureExpired))
	var attention []runtime.AttentionKind
	for _, u := range r.seen(AttentionChanged) {
		attention = append(attention, u.Attention)
	}
	if diff := cmp.Diff([]runtime.AttentionKind{1, 2, 1, 0}, attention); diff != "" {
		t.Errorf("input, approval, input, nothing (-want +got):\n%s", diff)
	}
	r.clear()
	r.emit(question(id, "q2"), approval(id, "a2", runtime.RiskHigh),
		runtime.Event{RunID: id, RunEnded: &runtime.RunEnded{Reason: runtime.EndReasonCancelled}})
	want := []UpdateKind{
		InteractionOpened, AttentionChanged, InteractionOpened, AttentionChanged,
		InteractionClosed, InteractionClosed, AttentionChanged, RunFinished, SessionChanged,
	}
	if diff := cmp.Diff(want, r.kinds()); diff != "" {
		t.Errorf("updates (-want +got):\n%s", diff)
	}
}
