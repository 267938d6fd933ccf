package artifact

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
)

func TestReferences(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "ART-01")
	for _, c := range []struct {
		name, text string
		targets    []string
		display    string // when all of them become files
	}{
		{"link", "See [the report](out/r.pdf).", []string{"out/r.pdf"}, "See ."},
		{"image", "![plot](p.png)\nDone", []string{"p.png"}, "Done"},
		{"angle brackets", "[a](<my report (1).pdf>)", []string{"my report (1).pdf"}, ""},
		{"parentheses and blanks", "[a](my report (1).pdf) x", []string{"my report (1).pdf"}, "x"},
		{"title", `[a](r.pdf "The (report)") [b](s.pdf 'x')`, []string{"r.pdf", "s.pdf"}, ""},
		{"escapes", `[a](r\(1\).pdf) \[b](c.pdf)`, []string{"r(1).pdf"}, `\[b](c.pdf)`},
		{"brackets in the label", "[a [b] c](r.pdf)", []string{"r.pdf"}, ""},
		{"an image that links", "[![x](p.png)](r.pdf) y", []string{"p.png", "r.pdf"}, "y"},
		{"media line", "Here:\n  MEDIA: /tmp/a b.png\nbye", []string{"/tmp/a b.png"}, "Here:\nbye"},
		{"quoted media line", "MEDIA: `a.png`", []string{"a.png"}, ""},
		{"media in the middle of a line", "see MEDIA: a.png", nil, "see MEDIA: a.png"},
		{"code span stays", "Wrote `out/r.pdf`.", []string{"out/r.pdf"}, "Wrote `out/r.pdf`."},
		{"code span of two", "``a`b.txt``", []string{"a`b.txt"}, "``a`b.txt``"},
		{"a link inside code is code", "`[a](r.pdf)`", []string{"[a](r.pdf)"}, "`[a](r.pdf)`"},
		{"an open backtick", "a ` [b](r.pdf)", []string{"r.pdf"}, "a `"},
		{"fences", "```\n[a](r.pdf)\n~~~\n```\n[b](s.pdf)", []string{"s.pdf"}, "```\n[a](r.pdf)\n~~~\n```"},
		{"a longer fence", "~~~~ md\n[a](r.pdf)\n~~~\n[b](s.pdf)\n~~~~~\n[c](t.pdf)", []string{"t.pdf"}, "~~~~ md\n[a](r.pdf)\n~~~\n[b](s.pdf)\n~~~~~"},
		{"a fence in a quote and a list", "> ```\n> [a](r.pdf)\n> ```\n   ```sh\n`s.pdf`\n   ```", nil, "> ```\n> [a](r.pdf)\n> ```\n   ```sh\n`s.pdf`\n   ```"},
		{"a fence nobody closes", "```\n[a](r.pdf)\nMEDIA: b.png", nil, "```\n[a](r.pdf)\nMEDIA: b.png"},
		{"three backticks inline are no fence", "```a.txt``` [b](s.pdf)", []string{"a.txt", "s.pdf"}, "```a.txt```"},
		{"line feeds", "a\n\n[x](r.pdf)\n\n[y](s.pdf)\n\nb", []string{"r.pdf", "s.pdf"}, "a\n\nb"},
		{"no target", "[a]() [b](<>) [c] (d.pdf) ](e.pdf)", nil, "[a]() [b](<>) [c] (d.pdf) ](e.pdf)"},
		{"too long", "[a](" + strings.Repeat("a", 2045) + ".pdf)", nil, "[a](" + strings.Repeat("a", 2045) + ".pdf)"},
		{"the longest", "[a](" + strings.Repeat("a", 2044) + ".pdf)", []string{strings.Repeat("a", 2044) + ".pdf"}, ""},
		{"beyond the text that counts", strings.Repeat("a", maxText) + "[a](r.pdf)", nil, strings.Repeat("a", maxText) + "[a](r.pdf)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found := references(c.text)
			var targets []string
			for _, r := range found {
				targets = append(targets, r.target)
			}
			if d := cmp.Diff(c.targets, targets); d != "" {
				t.Errorf("targets (-want +got):\n%s", d)
			}
			if d := cmp.Diff(c.display, without(c.text, found)); d != "" {
				t.Errorf("display (-want +got):\n%s", d)
			}
		})
	}
	if n := len(references(strings.Repeat("[a](b.pdf)\n", 100))); n != maxReferences {
		t.Errorf("%d references, want %d", n, maxReferences)
	}
}

func TestReferencesStayFast(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]string{
		"brackets": "[", "links": "[](", "backticks": "`a``", "closing": "](", "nested": "[a](((", "images": "![", "escapes": `\`,
	} {
		start := time.Now()
		references(strings.Repeat(s, maxText/len(s)))
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("%s took %v", name, d)
		}
	}
}

func FuzzReferences(f *testing.F) {
	for _, s := range []string{
		"[a](b.pdf)", "![x](<y z.png> \"t\")", "MEDIA: a.png\n", "```\n[a](b)\n```", "`a` ``b`c``", `\[a\](b\))`, "[![x](p.png)](r.pdf)", "\xff[\xff](\xff.pdf)",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found := references(text)
		if len(found) > maxReferences {
			t.Fatalf("%d references", len(found))
		}
		end := 0
		for _, r := range found {
			if r.target == "" || r.start < 0 || r.start > r.end || r.end > len(text) || r.end < end {
				t.Fatalf("%+v after %d in %q", r, end, text)
			}
			end = r.end
		}
		if got := without(text, found); len(got) > len(text) {
			t.Fatalf("%q grew to %q", text, got)
		}
		for _, r := range found {
			places(r.target, "/home/u", []string{"/p"})
		}
	})
}
