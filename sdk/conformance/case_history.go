package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/protocol/codes"
)

// historyCases are about reading.
var historyCases = []testCase{
	{group: "history", name: "pages have no gaps and do not overlap", run: func(t *T) {
		p := t.start()
		ref := t.conversation(p, 3)
		whole := ids(t.history(p, ref, 1000))
		for _, size := range []uint32{1, 2, 3} {
			if got := ids(t.history(p, ref, size)); !slices.Equal(got, whole) {
				t.Errorf("pages of %d give %d messages in another order or number than one page of %d", size, len(got), len(whole))
			}
		}
		seen := map[string]bool{}
		for _, m := range whole {
			if m == "" || seen[m] {
				t.Errorf("message id %q is empty or comes twice", m)
			}
			seen[m] = true
		}
	}},
	{group: "history", name: "older pages stay while the conversation grows", run: func(t *T) {
		p := t.start()
		ref := t.conversation(p, 2)
		first, err := p.Conversations.ReadHistory(t.io(), &runtimev1.ReadHistoryRequest{Session: ref, MaxMessages: 1, MaxBytes: 7 << 20})
		t.must(err, "ReadHistory")
		whole := ids(t.history(p, ref, 1000))
		x := t.send(p, ref, t.o.Prompts.Text)
		x.end()
		got := ids(first.GetMessages())
		for cursor := first.GetNextCursor(); cursor != ""; {
			r, err := p.Conversations.ReadHistory(t.io(), &runtimev1.ReadHistoryRequest{Session: ref, Cursor: cursor, MaxMessages: 1, MaxBytes: 7 << 20})
			t.must(err, "ReadHistory")
			got = append(ids(r.GetMessages()), got...)
			cursor = r.GetNextCursor()
		}
		if !slices.Equal(got, whole) {
			t.Errorf("a scan that began before another turn gives %d messages, want the %d there were", len(got), len(whole))
		}
	}},
	{group: "history", name: "names stay the same after a restart", run: func(t *T) {
		dir := t.dataDir()
		p := t.startIn(dir)
		ref := t.conversation(p, 2)
		before := ids(t.history(p, ref, 1000))
		t.must(p.end(t.ctx), "Shutdown")
		q := t.startIn(dir)
		if after := ids(t.history(q, ref, 1000)); !slices.Equal(before, after) {
			t.Errorf("%d messages before the restart, %d after it, or other names", len(before), len(after))
		}
	}},
	{group: "history", name: "the prompt of a run is found by its name", run: func(t *T) {
		p := t.start()
		ref := t.session(p)
		x := t.send(p, ref, t.o.Prompts.Text)
		x.end()
		started := ""
		for _, e := range p.events.all() {
			if e.GetRunId() == x.run && e.GetRunStarted().GetInputMessageId() != "" {
				started = e.GetRunStarted().GetInputMessageId()
			}
		}
		proven := 0
		for _, m := range t.history(p, x.ref, 100) {
			if m.GetRole() == runtimev1.Role_ROLE_USER && m.GetRunId() == x.run {
				proven++
				if started != "" && m.GetMessageId() != started {
					t.Errorf("the prompt is row %q live and %q in history", started, m.GetMessageId())
				}
			}
		}
		if proven > 1 {
			t.Errorf("%d rows claim to be the prompt", proven)
		}
	}},
	{group: "history", name: "cursors of nobody", run: func(t *T) {
		p := t.start()
		ref := t.conversation(p, 1)
		for _, c := range []string{"nonsense", "1.zzzz", "999999999", "\x01", "null"} {
			_, err := p.Conversations.ReadHistory(t.io(), &runtimev1.ReadHistoryRequest{Session: ref, Cursor: c, MaxMessages: 10, MaxBytes: 1 << 20})
			t.wantCode("cursor "+c, err, codes.CursorInvalid)
		}
	}},
	{group: "history", name: "an untouched conversation is empty", run: func(t *T) {
		p := t.start()
		ref := t.session(p)
		if n := len(t.history(p, ref, 10)); n != 0 {
			t.Errorf("a conversation without a prompt has %d messages", n)
		}
	}},
	{group: "history", name: "what the runtime has lost is said", run: func(t *T) {
		p := t.start()
		_, err := p.Conversations.ReadHistory(t.io(), &runtimev1.ReadHistoryRequest{Session: &runtimev1.SessionRef{SessionId: id("conform-"), NativeId: id("lost-")}, MaxMessages: 10, MaxBytes: 1 << 20})
		t.wantCode("history of a lost conversation", err, codes.SessionLost)
		_, err = p.Conversations.PrepareRun(t.settings(), &runtimev1.PrepareRunRequest{Session: &runtimev1.SessionRef{SessionId: id("conform-"), NativeId: id("lost-"), ProjectPath: t.o.Project}, RunId: runID(), Input: prompt("Hello.")})
		t.wantCode("a prompt to a lost conversation", err, codes.SessionLost)
	}},
	{group: "history", name: "reading changes nothing native", run: func(t *T) {
		if t.o.ReadOnly == "" {
			t.skip("no native store was named (see --read-only)")
		}
		p := t.start()
		before := digest(t.o.ReadOnly)
		rows, _ := t.list(p, &runtimev1.ListSessionsRequest{Previews: 20})
		for _, r := range rows[:min(len(rows), 20)] {
			_, _ = p.Conversations.ReadHistory(t.io(), &runtimev1.ReadHistoryRequest{Session: r.GetRef(), MaxMessages: 50, MaxBytes: 7 << 20})
		}
		if digest(t.o.ReadOnly) != before {
			t.Errorf("%s changed while it was read", filepath.Base(t.o.ReadOnly))
		}
	}},
}

// conversation makes one with so many turns.
func (t *T) conversation(p *process, turns int) *runtimev1.SessionRef {
	ref := t.session(p)
	for range turns {
		x := t.send(p, ref, t.o.Prompts.Text)
		x.end()
	}
	return ref
}

func ids(list []*runtimev1.Message) []string {
	var out []string
	for _, m := range list {
		out = append(out, m.GetMessageId())
	}
	return out
}

// digest sums names and contents below a path.
func digest(root string) string {
	h := sha256.New()
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		b, _ := os.ReadFile(path)
		sum := sha256.Sum256(b)
		_, _ = h.Write([]byte(path + "\x00"))
		_, _ = h.Write(sum[:])
		return nil
	})
	return hex.EncodeToString(h.Sum(nil))
}
