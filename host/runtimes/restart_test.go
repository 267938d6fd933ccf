package runtimes

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pgregory.net/rapid"
)

// widest makes the jitter visible: every wait is as long as it can be.
func widest(d time.Duration) time.Duration { return d }

func TestRestartWaits(t *testing.T) {
	now := time.Unix(0, 0)
	r := restarts{jitter: widest}
	var got []time.Duration
	for range 11 { // one exit every 20 s never fills the window of the breaker
		wait, open := r.exited(now, 10*time.Second)
		if open {
			t.Fatal("the breaker opened")
		}
		got = append(got, wait)
		now = now.Add(20 * time.Second)
	}
	ms := time.Millisecond
	want := []time.Duration{0, 250 * ms, 500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 8000 * ms, 16000 * ms, 30000 * ms, 30000 * ms, 30000 * ms}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if wait, _ := r.exited(now, healthyAfter); wait != 0 {
		t.Errorf("after a healthy minute: %v", wait)
	}
}

func TestBreakerRule(t *testing.T) {
	for _, c := range []struct {
		name  string
		every time.Duration
		exits int
		opens bool
	}{
		{"five within a minute", 14 * time.Second, 5, true},
		{"four within a minute", 14 * time.Second, 4, false},
		{"five, but slower", 16 * time.Second, 5, false},
		{"five at once", 0, 5, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			now, opened := time.Unix(0, 0), false
			r := restarts{jitter: widest}
			for range c.exits {
				wait, open := r.exited(now, time.Second)
				opened = opened || open
				if open && wait != breakerCloses {
					t.Errorf("open for %v", wait)
				}
				now = now.Add(c.every)
			}
			if opened != c.opens {
				t.Errorf("opened %v, want %v", opened, c.opens)
			}
			if opened {
				if wait, open := r.exited(now, 0); wait != 0 || open {
					t.Errorf("the try after the breaker waits %v, open %v", wait, open)
				}
			}
		})
	}
}

// TestRestartProperties: no wait is longer than its bound, and a plugin that exits all the time always meets the breaker.
func TestRestartProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r restarts
		now := time.Unix(0, 0)
		for range rapid.IntRange(1, 60).Draw(t, "exits") {
			up := time.Duration(rapid.Int64Range(0, int64(2*healthyAfter)).Draw(t, "up"))
			now = now.Add(up)
			wait, open := r.exited(now, up)
			if open != (wait == breakerCloses) || wait < 0 || !open && wait > backoffMost {
				t.Fatalf("wait %v, open %v", wait, open)
			}
			now = now.Add(wait)
		}
		for n := range breakerExits {
			if _, open := r.exited(now, 0); open {
				return
			} else if n == breakerExits-1 {
				t.Fatal("five exits in one instant did not open the breaker")
			}
		}
	})
}

// TestIdle: the breaker closes by itself after five minutes, or when a person asks.
func TestIdle(t *testing.T) {
	idle := func() *Instance {
		return newInstance(&Supervisor{log: slog.New(slog.DiscardHandler), metrics: newMetrics(nil)}, "test")
	}
	synctest.Test(t, func(t *testing.T) {
		i, began := idle(), time.Now()
		i.idle(t.Context(), breakerCloses)
		if took := time.Since(began); took != breakerCloses {
			t.Errorf("by itself after %v", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		i, began := idle(), time.Now()
		i.restarts.exits = []time.Time{began}
		done := make(chan struct{})
		go func() { i.idle(t.Context(), breakerCloses); close(done) }()
		time.Sleep(time.Second)
		i.commands <- &command{kind: commandRestart, ctx: t.Context(), reply: make(chan error, 1)}
		<-done
		if took := time.Since(began); took != time.Second || len(i.waiting) != 1 || len(i.restarts.exits) != 0 {
			t.Errorf("asked, after %v: %d wait, %v", took, len(i.waiting), i.restarts.exits)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		idle().idle(ctx, 0)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("the end of the host after %v", took)
		}
	})
}

// TestDoorPatience: a call waits for a start, but not for ever, and not at all when none is coming.
func TestDoorPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newInstance(&Supervisor{log: slog.New(slog.DiscardHandler), metrics: newMetrics(nil)}, "test")
		for _, c := range []struct {
			state State
			waits time.Duration
		}{{Starting, doorPatience}, {Waiting, 0}, {Paused, 0}, {Refused, 0}, {Disabled, 0}, {Stopped, 0}} {
			i.set(c.state, "", "", nil)
			began := time.Now()
			if _, err := i.ready(t.Context(), doorPatience); err == nil || time.Since(began) != c.waits {
				t.Errorf("%s: %v after %v", c.state, err, time.Since(began))
			}
		}
		i.shut()
		began := time.Now()
		if err := i.enter(t.Context()); err == nil || time.Since(began) != doorPatience {
			t.Errorf("closed door: %v after %v", err, time.Since(began))
		}
	})
}

// TestPreparedRunsAreForgotten: a prepared run holds an upgrade no longer than the plugin keeps it.
func TestPreparedRunsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newInstance(&Supervisor{log: slog.New(slog.DiscardHandler), metrics: newMetrics(nil)}, "test")
		i.prepared("r")
		time.Sleep(preparedFor)
		if n := i.busy(time.Now()); n != 1 {
			t.Errorf("%d", n)
		}
		time.Sleep(time.Millisecond)
		if n := i.busy(time.Now()); n != 0 {
			t.Errorf("%d", n)
		}
	})
}

// TestSilence: a stream that says nothing for its time ends with a missed deadline.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, q := newQuiet(t.Context())
		defer q.stop()
		time.Sleep(silence - 1)
		q.heard()
		time.Sleep(silence - 1)
		if ctx.Err() != nil {
			t.Error("ended although it spoke")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if context.Cause(ctx) != context.DeadlineExceeded {
			t.Errorf("%v", context.Cause(ctx))
		}
	})
}
