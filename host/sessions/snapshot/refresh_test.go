package snapshot

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
)

func TestCallersShareARead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCatalog(t, title("a", "A"))
		c.before = func(ctx context.Context, _ int32) { wait(ctx, time.Second) }
		answers := make(chan answer, 8)
		first, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() { _, err := c.Sync(first, Request{}); left <- err }()
		for range cap(answers) {
			go func() {
				text, err := c.Sync(t.Context(), Request{})
				if err != nil {
					t.Error(err)
				}
				answers <- parse(t, text)
			}()
		}
		synctest.Wait()
		leave() // who began it goes; the others still get it
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who left: %v", err)
		}
		one := <-answers
		for range cap(answers) - 1 {
			if a := <-answers; a.Revision != one.Revision {
				t.Error("different revisions")
			}
		}
		if n := c.reads.Load(); n != 1 {
			t.Errorf("%d reads, want 1", n)
		}
		if _, err := c.Sync(t.Context(), Request{}); err != nil || c.reads.Load() != 2 {
			t.Errorf("a later caller: %v, %d reads", err, c.reads.Load())
		}
	})
}

func TestReadEndsWithItsLastCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCatalog(t, title("a", "A"))
		var ended atomic.Bool
		c.before = func(ctx context.Context, _ int32) { <-ctx.Done(); ended.Store(true) }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Sync(ctx, Request{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v", err)
		}
		synctest.Wait()
		if !ended.Load() {
			t.Error("nobody waits any more, but it still reads")
		}
	})
}

func TestChangeOvertakesTheRead(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "SYNC-04")
	synctest.Test(t, func(t *testing.T) {
		c := newCatalog(t, title("a", "old"))
		c.before = func(ctx context.Context, read int32) {
			if read == 1 {
				c.rows = []Row{title("a", "new")}
				c.generation.Add(1) // acknowledged while the old rows are already read
			}
			wait(ctx, time.Second)
		}
		late := make(chan answer, 1)
		go func() {
			time.Sleep(500 * time.Millisecond) // after the change, during the old read: must not join it
			text, err := c.Sync(t.Context(), Request{})
			if err != nil {
				t.Error(err)
			}
			late <- parse(t, text)
		}()
		a, _ := c.sync(t, Request{})
		if !strings.Contains(string(a.Sessions[0]), "new") || c.reads.Load() != 2 {
			t.Errorf("got %s after %d reads", a.Sessions[0], c.reads.Load())
		}
		if b := <-late; b.Revision != a.Revision || c.reads.Load() != 2 {
			t.Errorf("the late caller got another state, %d reads", c.reads.Load())
		}
	})
}

func TestEndlessChangesEndTheCall(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "SYNC-04")
	c := newCatalog(t, title("a", "A"))
	before, _ := c.sync(t, Request{})
	c.before = func(context.Context, int32) { c.generation.Add(1) }
	c.rows = nil
	_, err := c.Sync(t.Context(), Request{})
	wantCode(t, err, codes.CatalogChanged)
	if n := c.reads.Load(); n != 3 {
		t.Errorf("%d reads, want 1 and 2", n)
	}
	c.before, c.rows = nil, []Row{title("a", "A")}
	if a, _ := c.sync(t, base(before)); a.Kind != "unchanged" {
		t.Errorf("afterwards: %s", a.Kind)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	c := newCatalog(t, title("a", "A"))
	c.Close()
	_, err := c.Sync(t.Context(), Request{})
	wantCode(t, err, codes.Restarting)
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
