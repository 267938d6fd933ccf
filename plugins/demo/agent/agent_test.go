package agent

import (
	"testing"

	"github.com/openphone-host/openphone/sdk/runtime"
	"github.com/openphone-host/openphone/sdk/serve/servetest"
)

func TestEchoKeepsEveryByte(t *testing.T) {
	t.Parallel()
	h := servetest.New(t, New(Options{}), nil)
	prompt := "  two  spaces\n\n\ttab and trailing "
	got, err := h.Send(runtime.SessionRef{SessionID: "s1"}, "run-1", prompt)
	if err != nil {
		t.Fatal(err)
	}
	if got.GetOutcome().Number() != 1 {
		t.Fatalf("outcome = %v, want dispatched", got.GetOutcome())
	}
	events := h.Until(servetest.Ended("run-1"))
	if text := servetest.Text(events, "run-1"); text != prompt {
		t.Errorf("reply = %q, want %q", text, prompt)
	}
	for i, e := range events {
		if e.Seq != uint64(i+1) {
			t.Fatalf("event %d has number %d", i, e.Seq)
		}
	}
}
