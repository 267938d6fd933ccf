package consent

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/host/store"
	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func approval(id, subject string) runtime.Interaction {
	return runtime.Interaction{InteractionID: id, Approval: &runtime.Approval{Subject: subject}}
}

func question(id string) runtime.Interaction {
	return runtime.Interaction{InteractionID: id, Question: &runtime.Question{Title: "?"}}
}

func book(tb testing.TB, s Store) *Book {
	tb.Helper()
	b, _, err := New(tb.Context(), Options{Runtime: "codex", Store: s, Clock: clock{time.Now()}})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func disk(tb testing.TB, dir string) *store.Store {
	tb.Helper()
	s, err := store.Open(tb.Context(), dir, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func ask(tb testing.TB, b *Book, session, run string, in runtime.Interaction) Asked {
	tb.Helper()
	a, fresh, err := b.Open(tb.Context(), session, run, in)
	if err != nil || !fresh {
		tb.Fatalf("Open(%s) = fresh %v, %v", in.InteractionID, fresh, err)
	}
	return a
}

func wantCode(tb testing.TB, err error, code string) {
	tb.Helper()
	if got := codes.Of(err); got != code {
		tb.Errorf("code %q (%v), want %q", got, err, code)
	}
}

func TestOneAnswer(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "FAULT-02")
	b := book(t, disk(t, t.TempDir()))
	a := ask(t, b, "s", "r", approval("1", "rm x"))
	var wg sync.WaitGroup
	tickets := make(chan Ticket, 16)
	for i := range cap(tickets) {
		wg.Go(func() {
			tk, err := b.Claim(context.Background(), a.ID, fmt.Sprint("phone ", i))
			if err == nil {
				tickets <- tk
			} else if codes.Of(err) != codes.InteractionAnswered {
				t.Errorf("a second answer: %v", err)
			}
		})
	}
	wg.Wait()
	if len(tickets) != 1 {
		t.Fatalf("%d answers, want 1", len(tickets))
	}
	tk := <-tickets
	if !b.Holds(tk) {
		t.Error("the winner's ticket does not hold")
	}
	if l := b.List("s", true); len(l) != 1 || !l[0].Answering {
		t.Errorf("while answering: %+v", l)
	}
	end, ended, err := b.Settle(t.Context(), tk, Answer{Outcome: runtime.OutcomeDispatched, Closure: runtime.ClosureAllowed})
	if err != nil || !ended || end.Closure != runtime.ClosureAllowed || end.By == "" {
		t.Errorf("settled = %+v %v %v", end, ended, err)
	}
	if _, ended, _ := b.Settle(t.Context(), tk, Answer{Outcome: runtime.OutcomeDispatched, Closure: runtime.ClosureDenied}); ended {
		t.Error("a ticket was used twice")
	}
	_, err = b.Claim(t.Context(), a.ID, "late")
	wantCode(t, err, codes.InteractionAnswered)
	_, _, err = b.Open(t.Context(), "s", "r", approval("1", "rm x"))
	wantCode(t, err, codes.InteractionNotPending) // an answered one is never asked again
}

func TestSettle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		answer  Answer
		closure runtime.Closure // unspecified: it still waits
		again   string          // code of the next claim
	}{
		{"taken", Answer{Outcome: runtime.OutcomeDispatched, Closure: runtime.ClosureDenied}, runtime.ClosureDenied, codes.InteractionAnswered},
		{"cancelled, the run has to stop first", Answer{Outcome: runtime.OutcomeDispatched}, 0, codes.InteractionAnswered},
		{"no longer asked", Answer{Outcome: runtime.OutcomeNotDispatched, Code: codes.InteractionNotPending}, runtime.ClosureExpired, codes.InteractionNotPending},
		{"did not arrive", Answer{Outcome: runtime.OutcomeNotDispatched, Code: codes.RuntimeUnavailable}, 0, ""},
		{"unknown", Answer{Outcome: runtime.OutcomeUnknown}, 0, codes.AnswerUnknown},
		{"an outcome of a newer version", Answer{Outcome: 99}, 0, codes.AnswerUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := book(t, newMemory())
			a := ask(t, b, "s", "r", approval("1", "x"))
			tk, err := b.Claim(t.Context(), a.ID, "p")
			if err != nil {
				t.Fatal(err)
			}
			end, ended, err := b.Settle(t.Context(), tk, c.answer)
			if err != nil || ended != (c.closure != 0) || end.Closure != c.closure {
				t.Errorf("settled = %v %v %v, want %v", end.Closure, ended, err, c.closure)
			}
			if got := len(b.List("", true)); (got == 0) != ended {
				t.Errorf("%d listed, ended %v", got, ended)
			}
			_, err = b.Claim(t.Context(), a.ID, "q")
			wantCode(t, err, c.again)
		})
	}
}

// Who comes while the end is being written is told the same as who comes after it.
func TestLateWhileItEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  func(*Book, Ticket) error
		code string
	}{
		{"answered", func(b *Book, tk Ticket) error {
			_, _, err := b.Settle(context.Background(), tk, Answer{Outcome: runtime.OutcomeDispatched, Closure: runtime.ClosureDenied})
			return err
		}, codes.InteractionAnswered},
		{"closed by the runtime", func(b *Book, _ Ticket) error {
			_, _, err := b.Close(context.Background(), "s", "1", runtime.ClosureExpired)
			return err
		}, codes.InteractionNotPending},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newMemory()
			b := book(t, m)
			a := ask(t, b, "s", "r", approval("1", "x"))
			tk, err := b.Claim(t.Context(), a.ID, "p")
			if err != nil {
				t.Fatal(err)
			}
			m.closing = func() {
				_, err := b.Claim(t.Context(), a.ID, "q")
				wantCode(t, err, c.code)
			}
			if err := c.end(b, tk); err != nil {
				t.Fatal(err)
			}
			_, err = b.Claim(t.Context(), a.ID, "q")
			wantCode(t, err, c.code)
		})
	}
}

func TestUnknownAnswerIsClearedByTheRuntime(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "FAULT-02")
	b := book(t, newMemory())
	for i, id := range []string{"applied", "waits", "gone"} {
		a := ask(t, b, "s", "r", approval(id, "x"))
		tk, err := b.Claim(t.Context(), a.ID, "p")
		if err != nil {
			t.Fatal(err)
		}
		if _, ended, err := b.Settle(t.Context(), tk, Answer{}); ended || err != nil {
			t.Fatal(i, ended, err)
		}
	}
	if end, ok, err := b.Close(t.Context(), "s", "applied", runtime.ClosureAllowed); !ok || err != nil || end.Closure != runtime.ClosureAllowed {
		t.Errorf("applied: %+v %v %v", end, ok, err)
	}
	opened, ended, refused := b.Reconcile(t.Context(), []Still{
		{"s", "r", approval("waits", "x")}, {"s", "r", approval("new", "x")}, {"s", "r", approval("applied", "x")},
	})
	if len(opened) != 1 || opened[0].NativeID != "new" {
		t.Errorf("opened %+v, want new", opened)
	}
	if len(ended) != 1 || ended[0].NativeID != "gone" || ended[0].Closure != runtime.ClosureExpired {
		t.Errorf("ended %+v, want gone", ended)
	}
	if len(refused) != 1 || codes.Of(refused["applied"]) != codes.InteractionNotPending {
		t.Errorf("refused %+v, want applied: what has ended is not asked again", refused)
	}
	if _, err := b.Claim(t.Context(), ID("s", "waits"), "p"); err != nil {
		t.Errorf("one that never got its answer cannot be answered: %v", err)
	}
}

func TestRuntimeEndsIt(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "CX-02")
	b := book(t, newMemory())
	a := ask(t, b, "s", "r", question("1"))
	tk, err := b.Claim(t.Context(), a.ID, "p")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := b.Close(t.Context(), "s", "1", runtime.ClosureExpired); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if b.Holds(tk) {
		t.Error("the ticket of an ended request holds")
	}
	if _, ended, err := b.Settle(t.Context(), tk, Answer{Outcome: runtime.OutcomeNotDispatched}); ended || err != nil {
		t.Errorf("settled an ended request: %v %v", ended, err)
	}
	for _, id := range []string{a.ID, "unknown"} {
		_, err = b.Claim(t.Context(), id, "p")
		wantCode(t, err, codes.InteractionNotPending)
	}
	if _, ok, err := b.Close(t.Context(), "s", "1", runtime.ClosureExpired); ok || err != nil {
		t.Errorf("ended twice: %v %v", ok, err)
	}
}

func TestAttentionFollows(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "SYNC-11")
	b := book(t, newMemory())
	var got []runtime.AttentionKind
	look := func() { got = append(got, b.Attention("s")) }
	look()
	ask(t, b, "s", "r", question("q"))
	ask(t, b, "other", "r", approval("a", "x"))
	look()
	ask(t, b, "s", "r", approval("a", "x"))
	look()
	_, _, _ = b.Close(t.Context(), "s", "a", runtime.ClosureExpired)
	look()
	_, _, _ = b.Close(t.Context(), "s", "q", runtime.ClosureExpired)
	look()
	want := []runtime.AttentionKind{0, runtime.AttentionKindInput, runtime.AttentionKindApproval, runtime.AttentionKindInput, 0}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("attention (-want +got):\n%s", d)
	}
}

func TestManyAtOnceInAnyOrder(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "FAULT-03")
	b := book(t, disk(t, t.TempDir()))
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() {
			in := approval(fmt.Sprint(i), "same command")
			if i == 4 {
				in.AgentName = "nested"
			}
			if _, fresh, err := b.Open(context.Background(), "s", "r", in); err != nil || !fresh {
				t.Errorf("open: %v %v", fresh, err)
			}
		})
	}
	wg.Wait()
	if l := b.List("s", true); len(l) != 5 {
		t.Fatalf("%d visible, want 5", len(l))
	}
	for _, i := range []int{3, 0, 4, 2, 1} {
		tk, err := b.Claim(t.Context(), ID("s", fmt.Sprint(i)), "p")
		if err != nil {
			t.Fatal(err)
		}
		_, ended, err := b.Settle(t.Context(), tk, Answer{Outcome: runtime.OutcomeDispatched, Closure: runtime.ClosureAllowed})
		if !ended || err != nil {
			t.Errorf("%d: %v %v", i, ended, err)
		}
	}
	if l := b.List("", true); len(l) != 0 {
		t.Errorf("left: %+v", l)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	b := book(t, newMemory())
	for i := range maxPerSession {
		ask(t, b, "s", "r", question(fmt.Sprint(i)))
	}
	_, _, err := b.Open(t.Context(), "s", "r", question("more"))
	wantCode(t, err, codes.InteractionsFull)
	if _, fresh, err := b.Open(t.Context(), "s", "r", question("3")); fresh || err != nil {
		t.Errorf("the same again: %v %v", fresh, err)
	}
	for i := range maxPerRuntime - maxPerSession {
		ask(t, b, fmt.Sprint("s", i), "r", question("0"))
	}
	_, _, err = b.Open(t.Context(), "new", "r", question("0"))
	wantCode(t, err, codes.InteractionsFull)
	_, _, _ = b.Close(t.Context(), "s", "3", runtime.ClosureExpired)
	ask(t, b, "new", "r", question("0"))

	for name, in := range map[string]runtime.Interaction{
		"no id": question(""), "no body": {InteractionID: "x"},
		"two bodies": {InteractionID: "x", Question: &runtime.Question{}, Approval: &runtime.Approval{}},
	} {
		_, _, err := b.Open(t.Context(), "x", "r", in)
		if codes.Of(err) != codes.AnswerInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
