package chat

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/openphone-host/openphone/protocol/clawket"
)

// maxToolLine is how much of a tool's input is shown on its line, in code points.
const maxToolLine = 100

// Styles of a colour terminal; without colours they are empty.
const (
	plain = ""
	dim   = "\x1b[2m"
	bold  = "\x1b[1m"
	red   = "\x1b[31m"
	green = "\x1b[32m"
	cyan  = "\x1b[36m"
	reset = "\x1b[0m"
)

type block int

const (
	noBlock block = iota
	textBlock
	thoughtBlock
)

// screen writes a conversation as it comes: text as it is, thoughts and everything else on marked lines.
type screen struct {
	w      io.Writer
	colour bool
	block  block
	start  bool // at the start of a line
	shown  string
}

func newScreen(w io.Writer, colour bool) *screen { return &screen{w: w, colour: colour, start: true} }

func (s *screen) write(style, text string) {
	if text == "" {
		return
	}
	if s.colour && style != plain {
		fmt.Fprint(s.w, style, text, reset)
	} else {
		fmt.Fprint(s.w, text)
	}
	s.start = strings.HasSuffix(text, "\n")
}

// line ends what is being written and puts one line of its own below it.
func (s *screen) line(style, format string, a ...any) {
	s.end()
	s.write(style, fmt.Sprintf(format, a...))
	s.write(plain, "\n")
}

// end finishes an open block.
func (s *screen) end() {
	if !s.start {
		s.write(plain, "\n")
	}
	s.block = noBlock
}

func (s *screen) enter(b block) {
	if s.block != b {
		s.end()
		s.block = b
	}
}

// begin forgets the text of the run before.
func (s *screen) begin() { s.shown = "" }

// chunk shows text of the reply. A snapshot that does not continue what is shown is written anew below it.
func (s *screen) chunk(text, mode string) {
	if mode == clawket.TextDelta {
		s.shown += text
		s.enter(textBlock)
		s.write(plain, text)
		return
	}
	more, continues := strings.CutPrefix(text, s.shown)
	if !continues {
		if strings.HasPrefix(s.shown, text) {
			return // an older snapshot
		}
		s.line(dim, "(rewritten)")
		more = text
	}
	s.shown = text
	if more == "" {
		return
	}
	if s.block != textBlock {
		more = strings.TrimPrefix(more, "\n\n") // what separates it from the part before a tool
	}
	s.enter(textBlock)
	s.write(plain, more)
}

func (s *screen) thought(text string) {
	s.enter(thoughtBlock)
	for _, line := range strings.SplitAfter(text, "\n") {
		if line == "" {
			continue
		}
		if s.start {
			line = "· " + line
		}
		s.write(dim, line)
	}
}

var marks = map[string]string{"success": "✓", "error": "✗", "": "→", "running": "→"}

func (s *screen) tool(u clawket.Update, name string) {
	switch {
	case u.Type == clawket.UpdateToolCall:
		s.line(cyan, "%s %s %s", marks[""], u.Title, oneLine(u.RawInput))
	case u.Status == "success" || u.Status == "error":
		style, took := green, ""
		if u.Status == "error" {
			style = red
		}
		if u.DurationMS != nil && *u.DurationMS >= 1000 {
			took = fmt.Sprintf(" (%.1f s)", float64(*u.DurationMS)/1000)
		}
		s.line(style, "%s %s%s", marks[u.Status], name, took)
	}
}

// finished shows how a run ended. It says whether it went well.
func (s *screen) finished(u clawket.Update) bool {
	var m clawket.FinalMessage
	_ = json.Unmarshal(u.Message, &m)
	text := m.Content
	if m.ArtifactDisplayText != nil {
		text = *m.ArtifactDisplayText
	}
	if text != "" && !strings.HasSuffix(s.shown, m.Content) && m.Content != s.shown {
		s.enter(textBlock)
		s.write(plain, text)
	}
	for _, a := range m.Attachments {
		s.line(cyan, "📎 %s (%s)", a.Name, a.MIMEType)
	}
	if u.UnappliedInput != "" {
		s.line(dim, "(not taken: %s)", u.UnappliedInput)
	}
	switch u.StopReason {
	case clawket.StopEndTurn:
		s.end()
		return true
	case clawket.StopCancelled:
		s.line(dim, "(stopped)")
		return true
	case clawket.StopMaxTokens:
		s.line(red, "(cut: the model reached its limit)")
		return true
	}
	why := "The reply failed."
	if u.TerminalMessage != nil && u.TerminalMessage.Text != "" {
		why = u.TerminalMessage.Text
	}
	s.line(red, "! %s", why)
	return false
}

// approval shows what consent is asked for, whole.
func (s *screen) approval(a clawket.Approval) {
	what := map[string]string{
		"command": "The agent wants to run a command", "file": "The agent wants to change files",
		"network": "The agent wants to use the network", "permissions": "The agent wants more permissions",
	}[a.Category]
	if what == "" {
		what = "The agent wants to act"
	}
	if a.Reason != "" {
		what += ": " + a.Reason
	}
	s.line(bold, "? %s", what)
	for _, l := range subject(a.Command) {
		style := plain
		switch {
		case strings.HasPrefix(l, "+"):
			style = green
		case strings.HasPrefix(l, "-"):
			style = red
		}
		s.line(style, "  %s", l)
	}
	if a.Host != "" {
		s.line(dim, "  host %s", a.Host)
	}
	if a.Cwd != "" {
		s.line(dim, "  in %s", a.Cwd)
	}
}

// change is one file of a file approval, as Codex and Claude write it.
type change struct {
	Path string          `json:"path"`
	Diff string          `json:"diff"`
	Kind json.RawMessage `json:"kind"`
}

// subject breaks the text of an approval into lines; file changes in JSON become diffs.
func subject(text string) []string {
	var list []change
	raw := []byte(text)
	if json.Unmarshal(raw, &list) != nil {
		var byPath map[string]change
		if json.Unmarshal(raw, &byPath) == nil {
			for path, c := range byPath {
				c.Path = path
				list = append(list, c)
			}
		}
	}
	var lines []string
	for _, c := range list {
		if c.Path == "" || c.Diff == "" {
			lines = nil
			break
		}
		lines = append(lines, c.Path)
		lines = append(lines, strings.Split(strings.TrimRight(c.Diff, "\n"), "\n")...)
	}
	if lines == nil {
		lines = strings.Split(strings.TrimRight(text, "\n"), "\n")
	}
	return lines
}

// oneLine is the input of a tool, short: a command as it is typed, other things as JSON.
func oneLine(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	text := string(raw)
	var s string
	var o map[string]json.RawMessage
	switch {
	case json.Unmarshal(raw, &s) == nil:
		text = s
	case json.Unmarshal(raw, &o) == nil:
		for _, name := range []string{"command", "cmd", "path", "query", "url"} {
			if json.Unmarshal(o[name], &s) == nil && s != "" {
				text = s
				break
			}
		}
	}
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) > maxToolLine {
		text = string([]rune(text)[:maxToolLine-1]) + "…"
	}
	return text
}
