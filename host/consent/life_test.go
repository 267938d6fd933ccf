package consent

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func TestEndsOfRunAndSession(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "STORE-04")
	b := book(t, newMemory())
	ask(t, b, "s", "r1", question("1"))
	ask(t, b, "s", "r2", approval("2", "x"))
	ask(t, b, "s", "r1", approval("3", "x"))
	ask(t, b, "t", "r1", question("4"))
	ends, err := b.CloseRun(t.Context(), "s", "r1", runtime.ClosureExpired)
	if err != nil || len(ends) != 2 || ends[0].NativeID != "1" || ends[1].NativeID != "3" {
		t.Errorf("run: %+v %v", ends, err)
	}
	ends, err = b.CloseSession(t.Context(), "s", runtime.ClosureCancelled)
	if err != nil || len(ends) != 1 || ends[0].NativeID != "2" || ends[0].Closure != runtime.ClosureCancelled {
		t.Errorf("session: %+v %v", ends, err)
	}
	if len(b.List("", false)) != 1 {
		t.Error("another conversation was touched")
	}
}

func TestPluginCrash(t *testing.T) {
	t.Parallel()
	b := book(t, disk(t, t.TempDir()))
	a := ask(t, b, "s", "r", approval("1", "x"))
	ask(t, b, "s", "r", approval("2", "x"))
	ask(t, b, "s", "r", approval("3", "x"))
	old, err := b.Claim(t.Context(), a.ID, "p")
	if err != nil {
		t.Fatal(err)
	}
	ends, err := b.Lost(t.Context())
	if err != nil || len(ends) != 3 || ends[0].Closure != runtime.ClosureCancelled {
		t.Fatalf("lost: %+v %v", ends, err)
	}
	_, err = b.Claim(t.Context(), a.ID, "p")
	wantCode(t, err, codes.InteractionNotPending) // nobody consents for a dead caller
	opened, ended, refused := b.Reconcile(t.Context(), []Still{{"s", "r", approval("1", "x")}, {"s", "r", approval("2", "y")}})
	if len(opened) != 1 || len(ended) != 0 || len(refused) != 1 {
		t.Fatalf("reconciled: %+v %+v %+v; the first still asks, the second asks for something else", opened, ended, refused)
	}
	if b.Holds(old) {
		t.Error("a ticket outlived its process")
	}
	if _, ended, _ := b.Settle(t.Context(), old, Answer{Outcome: runtime.OutcomeDispatched, Closure: runtime.ClosureAllowed}); ended {
		t.Error("an answer to the former process ended the new request")
	}
	if _, err := b.Claim(t.Context(), a.ID, "p"); err != nil {
		t.Errorf("asked again: %v", err)
	}
}

func TestHostRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := disk(t, dir)
	b := book(t, s)
	a := ask(t, b, "s", "r", approval("1", "x"))
	ask(t, b, "s", "r", question("2"))
	if _, err := b.Claim(t.Context(), a.ID, "p"); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()

	b, left, err := New(t.Context(), Options{Runtime: "codex", Store: disk(t, dir)})
	if err != nil || len(left) != 2 || left[0].SessionID != "s" {
		t.Fatalf("left: %+v %v", left, err)
	}
	if l := b.List("", true); len(l) != 0 {
		t.Errorf("pending after a restart: %+v", l)
	}
	_, err = b.Claim(t.Context(), a.ID, "p")
	wantCode(t, err, codes.InteractionNotPending)
	if _, fresh, err := b.Open(t.Context(), "s", "r", approval("1", "x")); !fresh || err != nil {
		t.Errorf("the runtime still asks: %v %v", fresh, err)
	}
}

func TestStoreFails(t *testing.T) {
	t.Parallel()
	m := newMemory()
	b := book(t, m)
	m.fail = errors.New("disk")
	if _, _, err := b.Open(t.Context(), "s", "r", question("1")); err == nil {
		t.Error("opened without a record")
	}
	m.fail = nil
	a := ask(t, b, "s", "r", question("1"))
	m.fail = errors.New("disk")
	if _, err := b.Claim(t.Context(), a.ID, "p"); err == nil {
		t.Error("claimed without a record")
	}
	m.fail = nil
	tk, err := b.Claim(t.Context(), a.ID, "p")
	if err != nil {
		t.Fatalf("another try: %v", err)
	}
	m.fail = errors.New("disk")
	end, ended, err := b.Settle(t.Context(), tk, Answer{Outcome: runtime.OutcomeDispatched, Closure: runtime.ClosureAnswered})
	if !ended || err == nil || end.Closure != runtime.ClosureAnswered {
		t.Errorf("what the runtime took stays open: %+v %v %v", end, ended, err)
	}
}

// Whatever happens in whatever order: the runtime gets at most one answer that it might have taken for each time it
// says that it asks, and a request that has ended never comes back by itself.
func TestSingleConsumption(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "FAULT-02")
	rapid.Check(t, func(rt *rapid.T) {
		m := newMemory()
		b := book(t, m)
		id := ID("s", "1")
		sent := 0 // answers that may have reached the runtime since it last said that it asks
		var tickets []Ticket
		applied := false
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch rapid.IntRange(0, 6).Draw(rt, "what") {
			case 0:
				if _, fresh, err := b.Open(t.Context(), "s", "r", approval("1", "x")); err == nil && fresh {
					if applied {
						rt.Fatal("asked again after it was answered")
					}
					sent = 0
				}
			case 1:
				if tk, err := b.Claim(t.Context(), id, "p"); err == nil {
					if sent > 0 {
						rt.Fatal("a second answer was allowed")
					}
					tickets = append(tickets, tk)
				}
			case 2, 3:
				if len(tickets) == 0 {
					continue
				}
				tk := tickets[len(tickets)-1]
				if !b.Holds(tk) {
					continue
				}
				o := rapid.SampledFrom([]runtime.Outcome{runtime.OutcomeDispatched, runtime.OutcomeNotDispatched, runtime.OutcomeUnknown}).Draw(rt, "outcome")
				if o != runtime.OutcomeNotDispatched {
					sent++
				}
				_, ended, err := b.Settle(t.Context(), tk, Answer{Outcome: o, Closure: runtime.ClosureAllowed})
				if err != nil || ended != (o == runtime.OutcomeDispatched) {
					rt.Fatalf("settle %v: %v %v", o, ended, err)
				}
				applied = applied || o == runtime.OutcomeDispatched
			case 4:
				if _, err := b.Lost(t.Context()); err != nil {
					rt.Fatal(err)
				}
			case 5:
				b = book(t, m) // a restart of the host
			case 6:
				if _, open := b.Get(id); open && !applied {
					if _, _, refused := b.Reconcile(t.Context(), []Still{{"s", "r", approval("1", "x")}}); len(refused) != 0 {
						rt.Fatal(refused)
					}
					sent = 0 // it says that no answer has arrived
				}
			}
			if sent > 1 {
				rt.Fatalf("%d answers", sent)
			}
		}
	})
}
