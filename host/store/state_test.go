package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func key(name string) runtime.StateKey { return runtime.StateKey{Name: name} }
func keyOf(session, name string) runtime.StateKey {
	return runtime.StateKey{SessionID: session, Name: name}
}
func rev(n uint64) *uint64 { return &n }

func TestState(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	put := func(k runtime.StateKey, v string, expected *uint64, want uint64) {
		t.Helper()
		got, err := s.PutState(t.Context(), "codex", k, []byte(v), expected)
		must(t, err)
		if got != want {
			t.Errorf("revision %d, want %d", got, want)
		}
	}
	put(key("a"), "1", rev(0), 1)
	put(key("a"), "2", rev(1), 2)
	put(key("a"), "3", nil, 3)
	put(keyOf("s", "a"), "", nil, 1)
	put(keyOf("s", "a/b"), "x", nil, 1)
	_, err := s.PutState(t.Context(), "codex", key("a"), nil, rev(2))
	wantCode(t, err, codes.RevisionConflict)
	_, err = s.PutState(t.Context(), "codex", key("new"), nil, rev(1))
	wantCode(t, err, codes.RevisionConflict)
	wantCode(t, s.DeleteState(t.Context(), "codex", key("a"), rev(2)), codes.RevisionConflict)
	wantCode(t, s.DeleteState(t.Context(), "codex", key("none"), rev(2)), codes.RevisionConflict)
	must(t, s.DeleteState(t.Context(), "codex", key("none"), rev(0)))
	must(t, s.DeleteState(t.Context(), "codex", key("none"), nil))
	must(t, s.DeleteState(t.Context(), "codex", key("a"), rev(3)))
	put(key("a"), "again", rev(0), 4) // 1 to 3 were used

	if e, err := s.GetState(t.Context(), "demo", key("a")); e != nil || err != nil {
		t.Errorf("another instance sees %+v, %v", e, err)
	}
	got, err := s.ListState(t.Context(), "codex", "s", "a/")
	must(t, err)
	if d := cmp.Diff([]runtime.StateEntry{{Key: keyOf("s", "a/b"), Value: []byte("x"), Revision: 1}}, got); d != "" {
		t.Errorf("list (-want +got):\n%s", d)
	}
	must(t, s.DeleteSession(t.Context(), "codex", "s"))
	if list, err := s.ListState(t.Context(), "codex", "s", ""); len(list) != 0 || err != nil {
		t.Errorf("after the conversation went: %+v, %v", list, err)
	}
	must(t, s.DeleteSession(t.Context(), "codex", "")) // names no conversation
	if e, err := s.GetState(t.Context(), "codex", key("a")); e == nil || string(e.Value) != "again" || err != nil {
		t.Errorf("the instance's own entry: %+v, %v", e, err)
	}
}

func TestStateLimits(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	for _, name := range []string{"", strings.Repeat("a", 201), "a b", "ä", "a\x00", "a%"} {
		_, err := s.PutState(t.Context(), "codex", key(name), nil, nil)
		wantCode(t, err, codes.StateKeyInvalid)
	}
	_, err := s.PutState(t.Context(), "codex", key(strings.Repeat("a", 200)), make([]byte, maxStateValue), nil)
	must(t, err)
	_, err = s.PutState(t.Context(), "codex", key("a"), make([]byte, maxStateValue+1), nil)
	wantCode(t, err, codes.StateTooLarge)

	// 127 more of the largest leave a little less than one.
	for i := range 127 {
		_, err := s.PutState(t.Context(), "codex", key(fmt.Sprint(i)), make([]byte, maxStateValue-1000), nil)
		must(t, err)
	}
	_, err = s.PutState(t.Context(), "codex", key("more"), make([]byte, maxStateValue), nil)
	wantCode(t, err, codes.StateFull)
	must(t, s.DeleteState(t.Context(), "codex", key("5"), nil))
	_, err = s.PutState(t.Context(), "codex", key("more"), make([]byte, maxStateValue), nil)
	must(t, err)
	_, err = s.PutState(t.Context(), "demo", key("more"), make([]byte, maxStateValue), nil)
	must(t, err)

	must(t, s.exec(t.Context(), `UPDATE state_totals SET entries = ?, bytes = 0 WHERE instance = 'codex'`, maxStateEntries))
	_, err = s.PutState(t.Context(), "codex", key("one-too-many"), nil, nil)
	wantCode(t, err, codes.StateFull)
	_, err = s.PutState(t.Context(), "codex", key("more"), nil, nil) // an old one may still change
	must(t, err)
}

// Revisions of a name only grow, whatever happens to it, and the totals stay what the entries add up to.
func TestStateRevisionsNeverComeBack(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		instance := fmt.Sprint("i", runs)
		last := map[runtime.StateKey]uint64{}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			k := keyOf(rapid.SampledFrom([]string{"", "s"}).Draw(rt, "session"), rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "name"))
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0:
				must(t, s.DeleteState(t.Context(), instance, k, nil))
			case 1:
				must(t, s.DeleteSession(t.Context(), instance, "s"))
			default:
				got, err := s.PutState(t.Context(), instance, k, make([]byte, rapid.IntRange(0, 9).Draw(rt, "size")), nil)
				must(t, err)
				if got <= last[k] {
					rt.Fatalf("%v got revision %d after %d", k, got, last[k])
				}
				last[k] = got
			}
		}
		var ok bool
		err := s.read.QueryRow(`SELECT coalesce((SELECT entries = (SELECT count(*) FROM state WHERE instance = ?1)
			AND bytes = (SELECT coalesce(sum(length(name) + length(value)), 0) FROM state WHERE instance = ?1)
			FROM state_totals WHERE instance = ?1), 1)`, instance).Scan(&ok)
		if err != nil || !ok {
			rt.Fatalf("totals are wrong (%v)", err)
		}
	})
}
