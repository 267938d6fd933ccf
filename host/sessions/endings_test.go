package sessions

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func TestPlaceOfAnEnding(t *testing.T) {
	t.Parallel()
	at := func(s string) (list []HistoryMessage) {
		for _, r := range s {
			m := HistoryMessage{}
			switch r {
			case '?': // no time recorded
			case 'R': // a row of the run
				m.RunID = "r"
			case 'N': // the runtime's own notice of it
				m.RunID, m.NoticeCode = "r", "x"
			default:
				m.CreatedAt = time.Unix(int64(r-'0'), 0)
			}
			list = append(list, m)
		}
		return list
	}
	for _, x := range []struct {
		name, page     string
		newest, oldest bool
		want           int // -1: not on this page
	}{
		{"between", "1379", true, true, 2},
		{"at the end of the newest page", "123", true, false, 3},
		{"at the end of an older page", "123", false, false, -1},
		{"before the oldest page", "789", true, true, 0},
		{"before another page", "789", true, false, -1},
		{"nothing was ever said", "", true, true, 0},
		{"without times", "???", true, false, 3},
		{"without times, older", "???", false, true, -1},
		{"after its own rows", "1R9", true, true, 2},
		{"after its own rows, whatever the times say", "R9", true, true, 1},
		{"told already", "1N9", true, true, -1},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			i, ok := ending{runID: "r", at: time.Unix(5, 0)}.place(at(x.page), x.newest, x.oldest)
			if !ok {
				i = -1
			}
			if i != x.want {
				t.Errorf("got %d, want %d", i, x.want)
			}
		})
	}
}

// What the runtime's record cannot show is shown by the host, once, until the conversation is begun anew.
func TestEndingsInHistory(t *testing.T) {
	r := newRig(t)
	key := r.create()
	r.page(key)
	r.f.onCommit = committing(runtime.OutcomeNotDispatched, codes.ModelMissing, nil)
	first := r.send(key, "x", "k-1")
	r.until("the end", func() bool { return len(r.seen(RunFinished)) == 1 })
	r.f.onCommit = nil
	second := r.send(key, "y", "k-2")
	failed := r.send2(key, second)
	r.Down(r.gen, codes.PluginCrashed)
	r.up(phase(runtime.RunPhaseUnspecified, nil))
	ids := func() (got []string) {
		for _, m := range r.page(key).Messages {
			got = append(got, m.MessageID+" "+m.NoticeCode)
		}
		return got
	}
	want := []string{"fake-turn-error:run:" + first + " " + codes.ModelMissing, "fake-turn-error:turn-" + failed + " " + codes.Interrupted}
	if diff := cmp.Diff(want, ids()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.restart()
	r.up()
	if diff := cmp.Diff(want, ids()); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
	if err := r.Reset(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if got := ids(); len(got) != 0 {
		t.Errorf("after a reset: %q", got)
	}
	r.restart()
	r.up()
	if got := ids(); len(got) != 0 {
		t.Errorf("after a reset and a restart: %q", got)
	}
}

// send2 ends one run as the runtime says, and begins another one that nobody will know the end of.
func (r *rig) send2(key, running string) string {
	r.emit(runtime.Event{RunID: running, RunEnded: &runtime.RunEnded{Reason: runtime.EndReasonFailed, Code: codes.ModelMissing}})
	return r.send(key, "z", "k-3")
}

// The runtime's row ties our run to its own name, and with it to the notice it has already.
func TestEndingTheRuntimeKnows(t *testing.T) {
	t.Parallel()
	page := []HistoryMessage{{Message: runtime.Message{RunID: "r", NativeRunID: "turn"}}, {Message: runtime.Message{NativeRunID: "turn", NoticeCode: "x"}}}
	if got := withEndings(page, []ending{{runID: "r", code: "y"}}, "fake", true, true); len(got) != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestEndingsAreBounded(t *testing.T) {
	t.Parallel()
	conv := newConversation("k")
	for i := range 2 * maxEndings {
		conv.addEnding(ending{runID: strings.Repeat("x", i)})
	}
	if n := len(conv.endings); n != maxEndings || len(conv.endings[0].runID) != maxEndings {
		t.Errorf("%d are kept, from %q", n, conv.endings[0].runID)
	}
}
