package modeltest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// maxLine bounds a line of a script file.
const maxLine = 8 << 20

// Parse reads scripts from text. A line "when TEXT" or "once TEXT" begins a script for prompts that contain TEXT (for
// every prompt without TEXT); the lines after it are its steps. Quoted strings are Go strings; # begins a comment line.
//
//	when list the files
//	  think "I should look."
//	  text "Looking" " …"
//	  break
//	  call exec_command {"cmd":"ls"}
//	  text "Two files.\n"
//	once please fail
//	  error 429 {"error":{"message":"slow down"}}
//
// Steps: text, think, break, call NAME JSON, custom NAME STRING, error STATUS BODY, failed CODE STRING, cut,
// delay DURATION, hang, gate NAME, raw STRING. NAME may be namespace/name.
func Parse(r io.Reader) ([]Script, error) {
	var scripts []Script
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		if word == "when" || word == "once" {
			scripts = append(scripts, Script{Match: rest, Once: word == "once"})
			continue
		}
		if len(scripts) == 0 {
			return nil, fmt.Errorf("line %d: a step before the first \"when\"", n)
		}
		st, err := parseStep(word, rest)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		last := &scripts[len(scripts)-1]
		last.Steps = append(last.Steps, st)
	}
	return scripts, lines.Err()
}

func parseStep(word, rest string) (Step, error) {
	first, second, _ := strings.Cut(rest, " ")
	second = strings.TrimSpace(second)
	switch word {
	case "text", "think":
		deltas, err := quoted(rest)
		if word == "think" {
			return Reasoning(deltas...), err
		}
		return Text(deltas...), err
	case "break":
		return Break(), nil
	case "call":
		if !json.Valid([]byte(second)) {
			return Step{}, fmt.Errorf("call %s wants JSON arguments", first)
		}
		return Call(first, second), nil
	case "custom":
		input, err := one(second)
		return Custom(first, input), err
	case "error":
		status, err := strconv.Atoi(first)
		if err != nil || status < 400 || status > 599 {
			return Step{}, fmt.Errorf("error wants a status from 400 to 599, not %q", first)
		}
		return Error(status, second), nil
	case "failed":
		message, err := one(second)
		return Failed(first, message), err
	case "cut":
		return Cut(), nil
	case "hang":
		return Hang(), nil
	case "delay":
		d, err := time.ParseDuration(rest)
		return Delay(d), err
	case "gate":
		return Gate(rest), nil
	case "raw":
		bytes, err := one(rest)
		return Raw(bytes), err
	}
	return Step{}, fmt.Errorf("unknown step %q", word)
}

// quoted reads one or more quoted strings.
func quoted(s string) ([]string, error) {
	var list []string
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		q, err := strconv.QuotedPrefix(s)
		if err != nil {
			return nil, fmt.Errorf("want quoted strings at %.40s", s)
		}
		text, err := strconv.Unquote(q)
		if err != nil {
			return nil, err
		}
		list, s = append(list, text), s[len(q):]
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("want a quoted string")
	}
	return list, nil
}

func one(s string) (string, error) {
	list, err := quoted(s)
	if err != nil {
		return "", err
	}
	if len(list) != 1 {
		return "", fmt.Errorf("want one quoted string, not %d", len(list))
	}
	return list[0], nil
}
