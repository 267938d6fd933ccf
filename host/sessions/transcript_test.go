package sessions

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/jsonframe"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func chunk(part, s string, replace bool) *runtime.TextChunk {
	return &runtime.TextChunk{PartID: part, Text: s, Replace: replace}
}

func TestTranscript(t *testing.T) {
	for _, x := range []struct {
		name    string
		chunks  []*runtime.TextChunk
		full    string
		appends string // per chunk: a appends, n appends and starts a part, r replaces, - nothing changed
	}{
		{"one part", []*runtime.TextChunk{chunk("a", "x", false), chunk("a", " y\n", false)}, "x y\n", "aa"},
		{"white space counts", []*runtime.TextChunk{chunk("a", " ", false), chunk("a", "\n\n", false)}, " \n\n", "aa"},
		{"parts", []*runtime.TextChunk{chunk("a", "x", false), chunk("b", "y", false), chunk("b", "z", false)}, "x\n\nyz", "ana"},
		{"an earlier part grows", []*runtime.TextChunk{chunk("a", "x", false), chunk("b", "y", false), chunk("a", "!", false)}, "x!\n\ny", "anr"},
		{"replaced", []*runtime.TextChunk{chunk("a", "x", false), chunk("a", "z", true)}, "z", "ar"},
		{"taken away", []*runtime.TextChunk{chunk("a", "x", false), chunk("b", "y", false), chunk("a", "", true)}, "y", "anr"},
		{"said again", []*runtime.TextChunk{chunk("a", "xy", false), chunk("a", "xy", true)}, "xy", "a-"},
		{"said again with more", []*runtime.TextChunk{chunk("a", "xy", false), chunk("a", "xyz", true)}, "xyz", "aa"},
		{"a first replacement appends", []*runtime.TextChunk{chunk("a", "x", true)}, "x", "a"},
		{"nothing", []*runtime.TextChunk{chunk("a", "", false), chunk("a", "", true)}, "", "--"},
	} {
		t.Run(x.name, func(t *testing.T) {
			var tr transcript
			var appends strings.Builder
			for _, c := range x.chunks {
				ch, changed := tr.apply(c)
				switch {
				case !changed:
					appends.WriteByte('-')
				case ch.startsPart:
					appends.WriteByte('n')
				case ch.appends:
					appends.WriteByte('a')
				default:
					appends.WriteByte('r')
				}
			}
			if tr.full() != x.full || tr.reply() != x.full || appends.String() != x.appends {
				t.Errorf("got %q (%s), want %q (%s)", tr.full(), appends.String(), x.full, x.appends)
			}
		})
	}
}

// A phone is shown the last 128,000 characters; the reply itself is whole.
func TestTranscriptIsBounded(t *testing.T) {
	var tr transcript
	emoji := strings.Repeat("😀", 40_000)
	for range 4 {
		tr.apply(chunk("a", emoji, false))
	}
	tr.apply(chunk("a", "end", false))
	if n := jsonframe.Units(tr.full()); n > maxLiveUnits || n < maxLiveUnits-1 || !strings.HasSuffix(tr.full(), "😀end") {
		t.Errorf("%d units are shown", n)
	}
	if tr.reply() != strings.Repeat(emoji, 4)+"end" {
		t.Error("the reply is not whole")
	}
	for range 40 {
		tr.apply(chunk("a", emoji, false))
		tr.apply(chunk("b", emoji, false))
	}
	if tr.bytes > maxReplyBytes || len(tr.reply()) > maxReplyBytes+len(separator) {
		t.Errorf("%d bytes are kept", tr.bytes)
	}
	if !strings.HasSuffix(tr.full(), "😀") || !strings.HasSuffix(tr.reply(), tr.full()) {
		t.Error("what is shown is not the end of the reply")
	}
}

// A new process says the text again, under the old names or new ones; no text is doubled and none is lost.
func TestTranscriptSaidAgain(t *testing.T) {
	for _, part := range []string{"a", "other"} {
		var tr transcript
		tr.apply(chunk("a", "half of", false))
		tr.restart()
		if tr.full() != "half of" {
			t.Errorf("the text went away with the process: %q", tr.full())
		}
		tr.apply(chunk(part, "half of it", true))
		tr.apply(chunk(part, " all", false))
		if tr.full() != "half of it all" {
			t.Errorf("part %s: got %q", part, tr.full())
		}
	}
}

// Whatever is appended arrives byte for byte, for readers of snapshots and for readers of deltas alike (STORE-06).
func TestTranscriptProperty(t *testing.T) {
	rules.Covers(t, "STORE-06")
	rapid.Check(t, func(t *rapid.T) {
		type piece struct {
			part, text string
			replace    bool
		}
		list := rapid.SliceOf(rapid.Custom(func(t *rapid.T) piece {
			return piece{
				rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "part"), rapid.String().Draw(t, "text"),
				rapid.IntRange(0, 9).Draw(t, "replace") == 0,
			}
		})).Draw(t, "pieces")
		var tr transcript
		want := map[string]string{}
		var order []string
		shown := ""
		for _, p := range list {
			if _, ok := want[p.part]; !ok {
				order = append(order, p.part)
			}
			if p.replace {
				want[p.part] = p.text
			} else {
				want[p.part] += p.text
			}
			ch, changed := tr.apply(chunk(p.part, p.text, p.replace))
			switch {
			case !changed:
			case !ch.appends:
				shown = tr.full()
			case ch.startsPart:
				shown += separator + ch.text
			default:
				shown += ch.text
			}
		}
		var parts []string
		for _, id := range order {
			if want[id] != "" {
				parts = append(parts, want[id])
			}
		}
		whole := strings.Join(parts, separator)
		if tr.reply() != whole || tr.full() != whole || shown != whole {
			t.Fatalf("reply %q, full %q, appended %q, want %q", tr.reply(), tr.full(), shown, whole)
		}
	})
}
