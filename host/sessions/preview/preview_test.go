package preview

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/openphone-host/openphone/internal/rules"
)

func TestOf(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "SYNC-09")
	for _, c := range []struct {
		name, text string
		image      bool
		want       string
	}{
		{"heading, list, bold, code, link", "# Title\n\n- **one** `two`\n- [three](http://x)", false, "Title one two three"},
		{"only an image", "", true, "📷"},
		{"only white space", "   ", false, ""},
		{"only white space with an image", " \n", true, "📷"},
		{"nothing but markup", "![](a.png)", false, "![](a.png)"},
		{"nothing but markup with an image", "![](a.png)", true, "📷"},
		{"text beside an image", "look", true, "look"},
		{"emoji count once", strings.Repeat("😀", 200), false, strings.Repeat("😀", 160)},
		{"alternative text", "see ![a cat](cat.png)!", false, "see a cat!"},
		{"a linked image", "[![build](b.svg)](http://ci)", false, "build"},
		{"fences go, code stays", "Run:\n```sh\nmake test\n```\nthen\n~~~\nx\n~~~", false, "Run: make test then x"},
		{"quotes, numbers, nested markers", "> 1. first\n> - second\n12) third\n+ fourth", false, "first second third fourth"},
		{"struck and underlined", "~~no~~ __yes__ **a b**", false, "no yes a b"},
		{"what only looks like markup", "a ** b, 2 * 3, #tag, -x, 3.14, ~~", false, "a ** b, 2 * 3, #tag, -x, 3.14, ~~"},
		{"all white space", "a\u00a0\u2003b\t\r\n\ufeffc", false, "a b c"},
		{"not UTF-8", "a\xffb", false, "ab"},
		{"a very long text", strings.Repeat("ä", maxLooked), false, strings.Repeat("ä", 160)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := Of(c.text, c.image); got != c.want {
				t.Errorf("Of(%q, %v) = %q, want %q", c.text, c.image, got, c.want)
			}
		})
	}
}

func FuzzOf(f *testing.F) {
	for _, s := range []string{"# a\n> - **b** `c`", "![x](y)[z](w)", "```\n~~~\n", "\xff\xfe", "1. 2) - * + >>> #"} {
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, text string, image bool) {
		got := Of(text, image)
		if n := utf8.RuneCountInString(got); n > maxCharacters || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\t") {
			t.Errorf("Of(%q) = %q", text, got)
		}
		if image && got == "" {
			t.Errorf("an image shows nothing")
		}
	})
}
