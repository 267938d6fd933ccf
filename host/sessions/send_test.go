package sessions

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPromptWalks(t *testing.T) {
	r := newRig(t)
	key := r.create()
	r.clear()
	id := r.send(key, "hello", "k-1")
	r.emit(text(id, "p", "Hel"), text(id, "p", "lo"), ended(id))
	want := []UpdateKind{SessionChanged, RunStarted, RunStarted, TextChunk, TextChunk, RunFinished, SessionChanged}
	if diff := cmp.Diff(want, r.kinds()); diff != "" {
		t.Errorf("updates (-want +got):\n%s", diff)
	}
	end := r.seen(RunFinished)[0].End
	if end.Message == nil || end.Message.Parts[0].Text != "Hello" {
		t.Errorf("the reply is %+v", end.Message)
	}
	if diff := cmp.Diff([]string{id}, r.f.runs()); diff != "" {
		t.Errorf("dispatched (-want +got):\n%s", diff)
	}
	rows, err := r.List(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || rows[0].Title != "hello" || rows[0].HasActiveRun {
		t.Errorf("rows are %+v", rows)
	}
}
