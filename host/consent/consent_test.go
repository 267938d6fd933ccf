package consent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openphone-host/openphone/host/store"
	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// memory is a Store without a disk, for tests with many steps or a fake clock.
type memory struct {
	mu   sync.Mutex
	rows map[string]*store.Interaction
	fail error
}

func newMemory() *memory { return &memory{rows: map[string]*store.Interaction{}} }

func (m *memory) change(id string, from []string, do func(*store.Interaction)) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return false, m.fail
	}
	r := m.rows[id]
	for _, s := range from {
		if r != nil && r.State == s {
			do(r)
			return true, nil
		}
	}
	return false, nil
}

func (m *memory) PutInteraction(_ context.Context, v store.Interaction) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail == nil {
		m.rows[v.InteractionID] = &v
	}
	return m.fail
}

func (m *memory) Interaction(_ context.Context, _, id string) (store.Interaction, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.rows[id]; r != nil {
		return *r, true, nil
	}
	return store.Interaction{}, false, nil
}

func (m *memory) ClaimInteraction(_ context.Context, _, id, by string) (bool, error) {
	return m.change(id, []string{store.Pending}, func(r *store.Interaction) { r.State, r.AnsweredBy = store.Answering, by })
}

func (m *memory) ReleaseInteraction(_ context.Context, _, id string) (bool, error) {
	return m.change(id, []string{store.Answering}, func(r *store.Interaction) { r.State = store.Pending })
}

func (m *memory) CloseInteraction(_ context.Context, _, id string, c int32, _ string, _ time.Time) (bool, error) {
	return m.change(id, []string{store.Pending, store.Answering, store.Lost}, func(r *store.Interaction) {
		r.State, r.Closure = store.Closed, c
	})
}

func (m *memory) LoseInteractions(_ context.Context, _ string, c int32, _ time.Time) ([]store.Interaction, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []store.Interaction
	for _, r := range m.rows {
		if r.State == store.Pending || r.State == store.Answering {
			list = append(list, *r)
			r.State, r.Closure = store.Lost, c
		}
	}
	return list, m.fail
}

func (m *memory) ReopenInteraction(_ context.Context, _, id, hash string) (bool, error) {
	m.mu.Lock()
	same := m.rows[id] != nil && m.rows[id].SubjectHash == hash
	m.mu.Unlock()
	if !same {
		return false, nil
	}
	return m.change(id, []string{store.Lost}, func(r *store.Interaction) { r.State, r.Closure = store.Pending, 0 })
}

type clock struct{ start time.Time }

func (c clock) Wall() time.Time     { return time.Now() }
func (c clock) Mono() time.Duration { return time.Since(c.start) + time.Hour }

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

func TestExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &skewed{start: time.Now()}
		b, _, err := New(t.Context(), Options{Runtime: "codex", Store: newMemory(), Clock: c})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var ended []string
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = b.Run(ctx, func(e Ended) {
				mu.Lock()
				defer mu.Unlock()
				ended = append(ended, e.NativeID)
			})
		})
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if d := cmp.Diff(want, ended); d != "" {
				t.Errorf("at %v expired (-want +got):\n%s", time.Since(c.start), d)
			}
			ended = nil
		}
		until := func(id string, d time.Duration) runtime.Interaction {
			in := approval(id, "x")
			in.ExpiresAt = c.Wall().Add(d)
			return in
		}
		ask(t, b, "s", "r", until("later", 10*time.Minute))
		ask(t, b, "s", "r", until("soon", 20*time.Second))
		ask(t, b, "s", "r", approval("never", "x"))
		ask(t, b, "s", "r", until("answered", 20*time.Second))
		if _, err := b.Claim(t.Context(), ID("s", "answered"), "p"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20*time.Second - 1)
		expect()
		time.Sleep(1)
		expect("soon")
		c.set(48 * time.Hour) // somebody sets the wall clock
		time.Sleep(time.Minute)
		expect()
		c.sleep(9 * time.Minute) // the computer was closed; timers stood still
		_, err = b.Claim(t.Context(), ID("s", "later"), "p")
		wantCode(t, err, codes.InteractionNotPending) // even before Run has noticed
		time.Sleep(recheck)
		expect("later")
		ask(t, b, "s", "r", until("past", -time.Hour))
		time.Sleep(1)
		expect("past")
		if l := b.List("s", true); len(l) != 2 {
			t.Errorf("left: %+v, want never and answered", l)
		}
		cancel()
		wg.Wait()
	})
}

// skewed is a clock whose readings move apart.
type skewed struct {
	start       time.Time
	mu          sync.Mutex
	wall, slept time.Duration
}

func (c *skewed) Wall() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.wall)
}

func (c *skewed) Mono() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Hour + time.Since(c.start) + c.slept
}

func (c *skewed) set(d time.Duration) { c.mu.Lock(); c.wall += d; c.mu.Unlock() }

func (c *skewed) sleep(d time.Duration) { c.mu.Lock(); c.wall += d; c.slept += d; c.mu.Unlock() }

func TestSystemClock(t *testing.T) {
	t.Parallel()
	var c systemClock
	a := c.Mono()
	if b := c.Mono(); a <= 0 || b < a {
		t.Errorf("readings %v, %v", a, b)
	}
	if d := time.Since(c.Wall()); d < 0 || d > time.Minute {
		t.Errorf("wall clock is off by %v", d)
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
