package sessions

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func tool(run string, c runtime.ToolCall) runtime.Event {
	return runtime.Event{RunID: run, ToolCall: &c}
}

func TestTextBeforeItsTool(t *testing.T) {
	r := newRig(t)
	id := r.send(r.create(), "x", "k")
	r.clear()
	r.emit(text(id, "a", "I look."), tool(id, runtime.ToolCall{CallID: "c", Name: "exec", Input: runtime.JSON([]byte(`{"cmd":"ls"}`))}),
		tool(id, runtime.ToolCall{CallID: "c", Status: runtime.ToolStatusSucceeded, Output: runtime.JSON([]byte(`"ok"`))}),
		text(id, "b", "Seen."), ended(id))
	want := []UpdateKind{TextChunk, ToolCalled, ToolCalled, TextChunk, RunFinished, SessionChanged}
	if diff := cmp.Diff(want, r.kinds()); diff != "" {
		t.Errorf("updates (-want +got):\n%s", diff)
	}
	calls := r.seen(ToolCalled)
	if !calls[0].FirstOfCall || calls[1].FirstOfCall {
		t.Error("the first of a call is not told apart")
	}
	merged := runtime.ToolCall{
		CallID: "c", Name: "exec", Status: runtime.ToolStatusSucceeded,
		Input: runtime.JSON([]byte(`{"cmd":"ls"}`)), Output: runtime.JSON([]byte(`"ok"`)),
	}
	if diff := cmp.Diff(merged, *calls[1].Tool); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	if u := r.seen(TextChunk)[1]; !u.StartsPart || u.FullText != "I look.\n\nSeen." || u.Text != "Seen." {
		t.Errorf("chunk %+v", u)
	}
}

func TestToolCallsAreBounded(t *testing.T) {
	var calls toolCalls
	big := runtime.Payload{ContentType: "text/plain", Data: make([]byte, maxToolBytes/4)}
	for _, id := range []string{"1", "2", "3", "4", "5", "6", "7"} {
		calls.merge(&runtime.ToolCall{CallID: id, Name: "n" + id, Output: big})
	}
	if calls.bytes > maxToolBytes {
		t.Errorf("%d bytes are kept", calls.bytes)
	}
	m, first := calls.merge(&runtime.ToolCall{CallID: "1", Status: runtime.ToolStatusFailed})
	if first || m.Name != "n1" || m.Status != runtime.ToolStatusFailed {
		t.Errorf("merged %+v, %t", m, first)
	}
}

func TestIdentityOfARun(t *testing.T) {
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	r.clear()
	started := runtime.Event{RunID: id, RunStarted: &runtime.RunStarted{NativeRunID: "turn-9", InputMessageID: "m-1"}}
	r.emit(started, started, text(id, "a", "x"))
	if diff := cmp.Diff([]UpdateKind{RunStarted, TextChunk}, r.kinds()); diff != "" {
		t.Errorf("updates (-want +got):\n%s", diff)
	}
	for _, u := range append(r.seen(RunStarted), r.seen(TextChunk)...) {
		if u.SessionKey != key || u.RunID != id || u.NativeRunID != "turn-9" || u.InputMessageID != "m-1" || u.InputKey != "k" {
			t.Errorf("identity %+v", u)
		}
	}
	rec, _, err := r.db.Run(t.Context(), "fake", id)
	if err != nil || rec.NativeRunID != "turn-9" {
		t.Errorf("the record has %+v, %v", rec, err)
	}
}

// A run begun at the computer appears like any other, with no receipt.
func TestRunBegunElsewhere(t *testing.T) {
	r := newRig(t)
	r.f.rows = []runtime.Session{{Ref: runtime.SessionRef{NativeID: "n1"}, Title: "native"}}
	if _, err := r.List(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	r.clear()
	r.emit(runtime.Event{NativeID: "n1", RunID: "desktop:7", RunStarted: &runtime.RunStarted{NativeRunID: "7"}},
		text("desktop:7", "a", "hi"), ended("desktop:7"),
		runtime.Event{NativeID: "n1", RunID: "desktop:7", RunStarted: &runtime.RunStarted{NativeRunID: "7"}}, text("desktop:7", "a", "late"))
	want := []UpdateKind{SessionChanged, RunStarted, TextChunk, RunFinished, SessionChanged}
	if diff := cmp.Diff(want, r.kinds()); diff != "" {
		t.Errorf("updates (-want +got):\n%s", diff)
	}
	key := hashedKey("n1")
	if u := r.seen(RunStarted)[0]; u.SessionKey != key || u.InputKey != "" {
		t.Errorf("started %+v", u)
	}
	if recs, _ := r.db.OpenRuns(t.Context(), "fake"); len(recs) != 0 {
		t.Errorf("it has a receipt: %+v", recs)
	}
}

func TestEventsOfNobody(t *testing.T) {
	r := newRig(t)
	r.clear()
	r.emit(text("nobody", "a", "x"), ended("nobody"), tool("nobody", runtime.ToolCall{CallID: "c"}),
		runtime.Event{SessionID: "gone", RunID: "x", RunStarted: &runtime.RunStarted{}}, runtime.Event{})
	if k := r.kinds(); len(k) != 0 {
		t.Errorf("updates %v", k)
	}
}

// What a dead process still said comes too late.
func TestGenerationFence(t *testing.T) {
	r := newRig(t)
	id := r.send(r.create(), "x", "k")
	old := r.gen
	r.Down(old, codes.PluginCrashed)
	r.up(func(q *runtime.ReconcileRequest) *runtime.ReconcileResponse {
		return &runtime.ReconcileResponse{Runs: []runtime.RunState{{RunID: id, Phase: runtime.RunPhaseRunning}}}
	})
	r.clear()
	r.Events(old, []runtime.Event{text(id, "a", "from the grave"), ended(id)})
	r.Down(old, codes.PluginCrashed)
	if k := r.kinds(); len(k) != 0 {
		t.Errorf("updates %v", k)
	}
	r.emit(ended(id))
	if len(r.seen(RunFinished)) != 1 {
		t.Error("the living process is not heard")
	}
}

func TestNotices(t *testing.T) {
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	r.clear()
	r.emit(runtime.Event{RunID: id, Notice: &runtime.Notice{
		Severity: runtime.SeverityWarning, Code: codes.RuntimeTooOld,
		Parameters: map[string]string{"found": "1", "needed": "2"},
	}},
		runtime.Event{SessionID: key, Notice: &runtime.Notice{Text: "from an extension"}}, runtime.Event{CatalogChanged: &runtime.CatalogChanged{}})
	n := r.seen(NoticeRaised)
	if len(n) != 2 || n[0].RunID != id || n[0].Notice.Text != "The agent program is too old. Found 1, needed 2." ||
		n[1].SessionKey != key || n[1].RunID != "" || n[1].Notice.Text != "from an extension" {
		t.Errorf("notices %+v", n)
	}
	if len(r.seen(CatalogInvalidated)) != 1 || len(r.seen(RunFinished)) != 0 {
		t.Error("a notice ended something, or the list stays")
	}
}

// Updates reach each subscriber in one order, from one goroutine at a time, and none after cancel.
func TestSubscribers(t *testing.T) {
	r := newRig(t)
	id := r.send(r.create(), "x", "k")
	var got []string
	var inside, after bool
	cancelled := false
	cancel := r.Subscribe(func(u Update) {
		if inside {
			t.Error("two calls at once")
		}
		inside = true
		if cancelled {
			after = true
		}
		if u.Kind == TextChunk {
			got = append(got, u.Text)
		}
		inside = false
	})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { r.Changed() })
	}
	for _, s := range []string{"1", "2", "3", "4", "5"} {
		r.emit(text(id, "a", s))
	}
	wg.Wait()
	r.until("delivery", func() bool { return len(r.seen(TextChunk)) == 5 })
	cancel()
	cancelled = true
	r.emit(text(id, "a", "6"))
	if diff := cmp.Diff([]string{"1", "2", "3", "4", "5"}, got); diff != "" || after {
		t.Errorf("late: %t, (-want +got):\n%s", after, diff)
	}
}
