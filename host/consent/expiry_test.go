package consent

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

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
		time.Sleep(time.Nanosecond)
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
		time.Sleep(time.Nanosecond)
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
