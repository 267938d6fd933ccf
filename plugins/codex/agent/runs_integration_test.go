//go:build integration

package agent

import (
	"testing"

	"github.com/openphone-host/openphone/sdk/modeltest"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func TestTextAndReasoning(t *testing.T) {
	b := newBench(t, "")
	b.model.Add(modeltest.Script{Match: "hello", Steps: []modeltest.Step{
		modeltest.Reasoning("**Looking** ", "at it"), modeltest.Text(" Zwei\n", "\n", "  Zeilen ✅"),
	}})
	id, _ := b.send(b.session("s1"), "hello")
	end := b.sink.ended(t, id)
	if end.Reason != runtime.EndReasonCompleted {
		t.Errorf("end: %+v", end)
	}
	if got := textOf(b.sink.all(), id); got != " Zwei\n\n  Zeilen ✅" {
		t.Errorf("text %q", got)
	}
	b.sink.wait(t, "prompt's row", func(e runtime.Event) bool { return e.RunStarted != nil && e.RunStarted.InputMessageID != "" })
	b.sink.wait(t, "thought", func(e runtime.Event) bool { return e.Thought != nil })
	if n := b.model.Count("hello"); n != 1 {
		t.Errorf("model asked %d times", n)
	}
}
