//go:build integration

package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// rollouts hashes every native transcript below a Codex home.
func rollouts(t *testing.T, home string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".jsonl") || !strings.HasPrefix(d.Name(), "rollout-") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(raw)
		sums[d.Name()] = hex.EncodeToString(sum[:])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// TestReadsAndLettingGoChangeNothingNative proves that reading leaves the runtime's own records alone, byte for byte,
// and that a conversation a phone resets or deletes stays in the runtime.
func TestReadsAndLettingGoChangeNothingNative(t *testing.T) {
	rules.Covers(t, "STORE-01")
	b := newBench(t, "")
	run, ref := b.send(b.session("s"), "kept")
	b.sink.ended(t, run)
	before := rollouts(t, b.home)
	if len(before) != 1 {
		t.Fatalf("native records = %v, want one", before)
	}
	catalogOf(t, b.a, runtime.ListSessionsRequest{Previews: 5, Bound: []runtime.SessionRef{ref}})
	catalogOf(t, b.a, runtime.ListSessionsRequest{Archived: true})
	if _, err := b.a.ReadHistory(t.Context(), &runtime.ReadHistoryRequest{Session: ref, MaxMessages: 40}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.a.ListProjects(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.a.ListSkills(t.Context(), &runtime.ListSkillsRequest{Session: ref}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, rollouts(t, b.home)); diff != "" {
		t.Errorf("reads changed native records (-before +after):\n%s", diff)
	}
	if err := b.a.DetachSession(t.Context(), &runtime.DetachSessionRequest{Session: ref, Mode: runtime.DetachModeDelete}); err != nil {
		t.Fatal(err)
	}
	after := rollouts(t, b.home)
	for name := range before {
		if after[name] == "" {
			t.Errorf("%s is gone after a delete on the phone", name)
		}
	}
}
