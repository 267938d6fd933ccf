package servetest

import (
	"testing"

	"github.com/openphone-host/openphone/sdk/runtime"
)

func TestTextJoinsAsTheHostDoes(t *testing.T) {
	t.Parallel()
	chunk := func(run, part, text string, replace bool) runtime.Event {
		return runtime.Event{RunID: run, Text: &runtime.TextChunk{PartID: part, Text: text, Replace: replace}}
	}
	for name, tc := range map[string]struct {
		events []runtime.Event
		want   string
	}{
		"in order":             {[]runtime.Event{chunk("r", "a", "one ", false), chunk("r", "a", "two", false)}, "one two"},
		"parts keep their row": {[]runtime.Event{chunk("r", "a", "1", false), chunk("r", "b", "2", false), chunk("r", "a", "1", false)}, "112"},
		"replaced":             {[]runtime.Event{chunk("r", "a", "wrong", false), chunk("r", "a", "right", true), chunk("r", "a", "!", false)}, "right!"},
		"taken away":           {[]runtime.Event{chunk("r", "a", "x", false), chunk("r", "b", "y", false), chunk("r", "a", "", true)}, "y"},
		"another run's":        {[]runtime.Event{chunk("q", "a", "x", false), {RunID: "r", Thought: &runtime.TextChunk{Text: "hm"}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Text(tc.events, "r"); got != tc.want {
				t.Errorf("Text = %q, want %q", got, tc.want)
			}
		})
	}
	if !Ended("r")(runtime.Event{RunID: "r", RunEnded: &runtime.RunEnded{}}) || Ended("r")(runtime.Event{RunID: "q", RunEnded: &runtime.RunEnded{}}) {
		t.Error("Ended accepts another run's end, or not its own")
	}
}
