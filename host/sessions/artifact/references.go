package artifact

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/openphone-host/openphone/protocol/jsonframe"
)

const (
	maxText       = 256_000 // UTF-16 units of a message that are looked at
	maxReferences = 64      // of one message
	maxTarget     = 2048    // UTF-16 units of one path

	// maxSteps bounds the search for the ends of links in a text made to be slow: bytes looked at.
	maxSteps = 1 << 20
)

// reference is a place in a text that names a file.
type reference struct {
	target     string // as written, without brackets, title and escapes
	start, end int    // what disappears when the file is delivered; equal: nothing does
}

// references finds the places of a text that may name a file: targets of Markdown links and images, lines "MEDIA: path"
// and inline code. What stands in fenced blocks is an example and never counts.
func references(text string) []reference {
	text = jsonframe.CutUnits(text, maxText)
	f := finder{steps: maxSteps}
	var fence byte
	var fenceLen int
	for at := 0; at < len(text) && len(f.found) < maxReferences; {
		line := text[at:]
		next := len(text)
		if i := strings.IndexByte(line, '\n'); i >= 0 {
			line, next = line[:i], at+i+1
		}
		mark, n, rest := fenceOf(line)
		switch {
		case fence != 0:
			if mark == fence && n >= fenceLen && strings.TrimSpace(rest) == "" {
				fence = 0
			}
		case mark != 0 && (mark == '~' || !strings.Contains(rest, "`")):
			fence, fenceLen = mark, n
		default:
			if !f.media(line, at, next) {
				f.inline(line, at)
			}
		}
		at = next
	}
	if len(f.found) > maxReferences {
		f.found = f.found[:maxReferences]
	}
	return f.found
}

// fenceOf reads the beginning of a line that may open or close a fenced block, also inside quotes and lists.
func fenceOf(line string) (mark byte, n int, rest string) {
	s := strings.TrimLeft(line, " \t>")
	if s == "" || (s[0] != '`' && s[0] != '~') {
		return 0, 0, ""
	}
	for n < len(s) && s[n] == s[0] {
		n++
	}
	if n < 3 {
		return 0, 0, ""
	}
	return s[0], n, s[n:]
}

type finder struct {
	found []reference
	steps int
}

func (f *finder) add(target string, start, end int) {
	target = strings.TrimSpace(target)
	if target != "" && jsonframe.Units(target) <= maxTarget && utf8.ValidString(target) {
		f.found = append(f.found, reference{target, start, end})
	}
}

// media takes a line "MEDIA: path"; the whole line disappears.
func (f *finder) media(line string, at, next int) bool {
	path, ok := strings.CutPrefix(strings.TrimSpace(line), "MEDIA:")
	if !ok {
		return false
	}
	path = strings.TrimSpace(path)
	for _, q := range []string{"``", "<>", `""`, "''"} {
		if n := len(path); n > 2 && path[0] == q[0] && path[n-1] == q[1] {
			path = path[1 : n-1]
			break
		}
	}
	f.add(path, at, next)
	return true
}

// inline finds code spans and links of one line, in one pass: every "]" knows its "[" from a stack, every run of
// backticks its closing run from a table, so that no text takes more than linear time.
func (f *finder) inline(line string, at int) {
	closing := codeSpans(line)
	var open []int
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '`':
			n := run(line, i)
			if end := closing[i]; end > 0 {
				f.add(line[i+n:end], at+i, at+i) // its text stays
				i = end
			}
			i += n - 1
		case '[':
			open = append(open, i)
		case ']':
			if len(open) == 0 {
				continue
			}
			start := open[len(open)-1]
			open = open[:len(open)-1]
			if i+1 == len(line) || line[i+1] != '(' {
				continue
			}
			target, end := f.destination(line, i+2)
			if end == 0 {
				continue
			}
			if start > 0 && line[start-1] == '!' {
				start--
			}
			f.add(target, at+start, at+end)
			i = end - 1
		}
	}
}

// codeSpans maps the position of each run of backticks to that of the next run of the same length.
func codeSpans(line string) map[int]int {
	var at, lengths []int
	for i := 0; i < len(line); i++ {
		if line[i] == '`' {
			n := run(line, i)
			at, lengths = append(at, i), append(lengths, n)
			i += n - 1
		}
	}
	closing, last := map[int]int{}, map[int]int{}
	for i := len(at) - 1; i >= 0; i-- {
		closing[at[i]] = last[lengths[i]]
		last[lengths[i]] = at[i]
	}
	return closing
}

func run(s string, i int) (n int) {
	for i+n < len(s) && s[i+n] == s[i] {
		n++
	}
	return n
}

var linkTitle = regexp.MustCompile(`[ \t]+(?:"[^"]*"|'[^']*'|\([^()]*\))[ \t]*$`)

// destination reads the target of a link from behind its opening parenthesis; end is behind the closing one, 0 when
// there is none.
func (f *finder) destination(line string, i int) (target string, end int) {
	angle := i < len(line) && line[i] == '<'
	from, depth := i, 0
	for ; i < len(line) && f.steps > 0; i++ {
		f.steps--
		switch c := line[i]; {
		case c == '\\':
			i++
		case angle && c == '>':
			angle = false // from here on only a title
		case angle:
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case c == ')':
			target = strings.TrimSpace(linkTitle.ReplaceAllString(line[from:i], ""))
			if n := len(target); n > 1 && target[0] == '<' && target[n-1] == '>' {
				target = target[1 : n-1]
			}
			return unescape(target), i + 1
		}
	}
	return "", 0
}

var escapes = strings.NewReplacer(`\(`, `(`, `\)`, `)`, `\[`, `[`, `\]`, `]`, `\<`, `<`, `\>`, `>`, `\_`, `_`, `\ `, ` `)

// unescape takes away the escapes of Markdown; other backslashes may be part of a path.
func unescape(s string) string { return escapes.Replace(s) }

var newlines = regexp.MustCompile(`\n{3,}`)

// without is the text without the given references, at most two line feeds in a row, trimmed.
func without(text string, cut []reference) string {
	var b strings.Builder
	at := 0
	for _, r := range merge(cut) {
		b.WriteString(text[at:r.start])
		at = r.end
	}
	b.WriteString(text[at:])
	return strings.TrimSpace(newlines.ReplaceAllString(b.String(), "\n\n"))
}

// merge orders spans and drops those that lie in others; spans are nested or apart.
func merge(list []reference) []reference {
	var out []reference
	for _, r := range list { // in order of their ends
		for len(out) > 0 && out[len(out)-1].start >= r.start {
			out = out[:len(out)-1]
		}
		out = append(out, r)
	}
	return out
}
