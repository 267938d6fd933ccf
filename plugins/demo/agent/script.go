package agent

import (
	"strconv"
	"strings"
)

// step is one line of a prompt.
type step struct {
	name string            // command, or echo
	arg  string            // the rest of the line, with \n and \t for newline and tab
	opts map[string]string // name=value words of arg
}

// commands is the prompt language, in the order shown to people. README.md has the same table; a test compares them.
var commands = []struct{ name, args, help string }{
	{"say", "text", `Say text as one piece; \n and \t are newline and tab.`},
	{"stream", "n=100 rate=50 size=8", "Stream n pieces of size bytes, rate a second, with odd white space."},
	{"think", "text", "Think aloud."},
	{"part", "", "Begin a new part of the reply."},
	{"replace", "text", "Take back the current part and say text instead."},
	{"tool", "command", "Run a tool call that succeeds."},
	{"toolfail", "command", "Run a tool call that fails."},
	{"notice", "code", "Show a notice; without a code the demo's own."},
	{"ask", "question | option | option", "Ask a question and say the answer; without options a line of text."},
	{"form", "", "Ask a question of four fields: select, confirm, line and text."},
	{"approve", "command", "Ask for consent to a command and say the decision."},
	{"approvefile", "path", "Ask for consent to a file change with its diff."},
	{"approvenet", "address", "Ask for consent to a network address."},
	{"many", "n", "Ask for consent to n commands at once, one of them for a nested agent."},
	{"image", "", "Deliver a small picture with the reply."},
	{"file", "name size", "Deliver a file of size bytes, read as an attachment."},
	{"fill", "n", "Add n older pairs of messages to the history."},
	{"title", "text", "Rename the conversation, as a runtime does by itself."},
	{"wait", "ms", "Do nothing for a while."},
	{"steerwait", "ms", "Wait for a steering text, at most so long."},
	{"ignoresteer", "", "Give steering texts back unused."},
	{"stubborn", "ms", "When asked to stop, go on for a while first."},
	{"native", "text", "Begin a second run of the runtime's own after this one."},
	{"fail", "code", "End in failure; without a code demo.failed."},
	{"limit", "", "End at a limit."},
	{"refuse", "code", "Refuse to prepare the prompt; without a code demo.refused."},
	{"notdispatched", "", "Prepare, then do not dispatch."},
	{"unknown", "", "Answer the commit with an unknown outcome, then run anyway."},
	{"survive", "", "Outlive the plugin: a later process goes on with the run."},
	{"slow", "prepare|commit ms", "Answer that call late."},
	{"hang", "call", "Never answer that call any more (prepare, commit, stop, steer, resolve, health, list, history, settings, update, attachment, call, drain, shutdown); without one, never end the run."},
	{"crash", "point", "Kill the plugin here, or at a kill point of docs/faults.md."},
	{"exit", "status", "End the plugin process with a status."},
	{"panic", "prepare|commit", "Panic in that call."},
	{"print", "text", "Print to standard output, which belongs to nobody."},
}

// parse reads a prompt. What is no known command is echoed as it stands.
func parse(prompt string) []step {
	var list []step
	var text []string
	flush := func() {
		if len(text) > 0 {
			list = append(list, step{name: "echo", arg: strings.Join(text, "\n")})
			text = nil
		}
	}
	for line := range strings.SplitSeq(prompt, "\n") {
		name, arg, ok := command(line)
		if !ok {
			text = append(text, line)
			continue
		}
		flush()
		list = append(list, step{name: name, arg: unescape(arg), opts: options(arg)})
	}
	flush()
	return list
}

func command(line string) (name, arg string, ok bool) {
	rest, ok := strings.CutPrefix(line, "/")
	if !ok {
		return "", "", false
	}
	name, arg, _ = strings.Cut(rest, " ")
	for _, c := range commands {
		if c.name == name {
			return name, arg, true
		}
	}
	return "", "", false
}

func unescape(s string) string { return strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(s) }

func options(arg string) map[string]string {
	m := map[string]string{}
	for _, w := range strings.Fields(arg) {
		if k, v, ok := strings.Cut(w, "="); ok {
			m[k] = v
		}
	}
	return m
}

// number reads an option, or the whole argument when key is empty; a senseless one is the default.
func (s step) number(key string, def int) int {
	text := strings.TrimSpace(s.arg)
	if key != "" {
		text = s.opts[key]
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return def
	}
	return min(n, 1_000_000)
}

// find gives the first step of a name.
func find(list []step, name string) (step, bool) {
	for _, s := range list {
		if s.name == name {
			return s, true
		}
	}
	return step{}, false
}

// piece is number i of a stream: size bytes, never the same twice in a row, with the white space that careless code loses.
func piece(i, size int) string {
	ends := []string{" ", "  ", "\n", "\t", " \n\n", "    ", "\r\n", "\u00a0", ""}
	s := strconv.Itoa(i) + ends[i%len(ends)]
	if i%11 == 3 {
		s = " " + s
	}
	if pad := size - len(s); pad > 0 {
		s = strings.Repeat(string(rune('a'+i%26)), pad) + s
	}
	return s
}

// words cuts a text into pieces a model might stream: every word with the white space after it.
func words(text string) []string {
	var list []string
	start, gap := 0, false
	for i, r := range text {
		space := r == ' ' || r == '\n' || r == '\t' || r == '\r'
		if gap && !space {
			list = append(list, text[start:i])
			start = i
		}
		gap = space
	}
	if start < len(text) {
		list = append(list, text[start:])
	}
	return list
}
