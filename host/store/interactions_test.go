package store

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/protocol/codes"
)

func TestInteractions(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	row := Interaction{
		Runtime: "codex", InteractionID: "i1", SessionID: "s", RunID: "r", Approval: true,
		SubjectHash: strings.Repeat("b", 64), State: Pending, OpenedAt: t0,
	}
	must(t, s.PutInteraction(t.Context(), row))
	wantCode(t, s.PutInteraction(t.Context(), row), codes.OperationConflict)

	var wg sync.WaitGroup
	won := make(chan string, 20)
	for i := range cap(won) {
		by := fmt.Sprint("phone ", i)
		wg.Go(func() {
			if ok, err := s.ClaimInteraction(context.Background(), "codex", "i1", by); err == nil && ok {
				won <- by
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%d phones may answer, want 1", len(won))
	}
	by := <-won
	if ok, err := s.ReleaseInteraction(t.Context(), "codex", "i1"); !ok || err != nil {
		t.Fatalf("release: %v %v", ok, err)
	}
	if ok, err := s.ClaimInteraction(t.Context(), "codex", "i1", by); !ok || err != nil {
		t.Fatalf("claim after release: %v %v", ok, err)
	}
	if ok, err := s.CloseInteraction(t.Context(), "codex", "i1", 1, "", t0.Add(1)); !ok || err != nil {
		t.Fatalf("close: %v %v", ok, err)
	}
	for name, try := range map[string]func() (bool, error){
		"close":   func() (bool, error) { return s.CloseInteraction(t.Context(), "codex", "i1", 2, "x", t0.Add(2)) },
		"claim":   func() (bool, error) { return s.ClaimInteraction(t.Context(), "codex", "i1", "x") },
		"release": func() (bool, error) { return s.ReleaseInteraction(t.Context(), "codex", "i1") },
		"unknown": func() (bool, error) { return s.ClaimInteraction(t.Context(), "codex", "none", "x") },
	} {
		if ok, err := try(); ok || err != nil {
			t.Errorf("%s of a closed one: %v %v, want false", name, ok, err)
		}
	}
	row.State, row.Closure, row.AnsweredBy, row.ClosedAt = Closed, 1, by, t0.Add(1)
	got, ok, err := s.Interaction(t.Context(), "codex", "i1")
	if d := cmp.Diff(row, got); d != "" || !ok || err != nil {
		t.Errorf("record (-want +got), %v %v:\n%s", ok, err, d)
	}
}

func TestLostInteractions(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	for _, id := range []string{"waits", "claimed", "closed"} {
		must(t, s.PutInteraction(t.Context(), Interaction{
			Runtime: "codex", InteractionID: id, SubjectHash: "h", State: Pending, OpenedAt: t0,
		}))
	}
	must(t, s.PutInteraction(t.Context(), Interaction{Runtime: "demo", InteractionID: "waits", State: Pending}))
	_, err := s.ClaimInteraction(t.Context(), "codex", "claimed", "p")
	must(t, err)
	_, err = s.CloseInteraction(t.Context(), "codex", "closed", 1, "", t0)
	must(t, err)

	lost, err := s.LoseInteractions(t.Context(), "codex", 4, t0)
	must(t, err)
	if len(lost) != 2 || lost[0].InteractionID != "waits" || lost[1].State != Answering {
		t.Errorf("lost = %+v", lost)
	}
	for id, want := range map[string]bool{"waits": true, "closed": false, "none": false} {
		if ok, err := s.ReopenInteraction(t.Context(), "codex", id, "other"); ok || err != nil {
			t.Errorf("%s reopened for something else: %v %v", id, ok, err)
		}
		if ok, err := s.ReopenInteraction(t.Context(), "codex", id, "h"); ok != want || err != nil {
			t.Errorf("%s reopened: %v %v, want %v", id, ok, err, want)
		}
	}
	open, err := s.Interactions(t.Context(), "codex", true)
	must(t, err)
	if len(open) != 1 || open[0].InteractionID != "waits" || open[0].State != Pending || !open[0].ClosedAt.IsZero() {
		t.Errorf("open = %+v", open)
	}
	if list, _ := s.Interactions(t.Context(), "demo", true); len(list) != 1 {
		t.Errorf("the other runtime has %+v", list)
	}
}

func TestClosedInteractionsAreBounded(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	must(t, s.exec(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO interactions (`+interactionColumns+`)
		SELECT 'codex', 'i' || i, 's', 'r', 1, '', 'closed', 1, '', i, i FROM n`, maxClosedInteractions))
	must(t, s.PutInteraction(t.Context(), Interaction{Runtime: "codex", InteractionID: "new", State: Pending, OpenedAt: t0}))
	must(t, s.PutInteraction(t.Context(), Interaction{Runtime: "codex", InteractionID: "open", State: Pending, OpenedAt: t0}))
	_, err := s.CloseInteraction(t.Context(), "codex", "new", 1, "", t0)
	must(t, err)
	all, err := s.Interactions(t.Context(), "codex", false)
	must(t, err)
	if len(all) != maxClosedInteractions+1 || all[0].InteractionID != "i2" {
		t.Errorf("%d records, oldest %s; want %d, i2", len(all), all[0].InteractionID, maxClosedInteractions+1)
	}
	pending, err := s.Interactions(t.Context(), "codex", true)
	must(t, err)
	if len(pending) != 1 || pending[0].InteractionID != "open" {
		t.Errorf("open ones: %+v", pending)
	}
}
