// Package protodoc checks that every RPC says in its comment, in this order, its deadline class, whether it may be
// repeated, what its outcome means, its errors and its first version. It reads .proto text and holds no state.
package protodoc

import (
	"fmt"
	"io/fs"
	"regexp"
	"sort"
	"strings"
)

var (
	rpcLine   = regexp.MustCompile(`^\s*rpc (\w+)\(`)
	code      = regexp.MustCompile(`\b[a-z]+(?:_[a-z]+)+\b`)
	sections  = []string{"Deadline:", "Idempotent:", "Outcome:", "Errors:", "Since:"}
	deadlines = []string{"fast", "io", "settings", "long"}
)

// Check names every RPC below proto/ whose comment lacks something. known tells whether the error registry has a code.
func Check(root fs.FS, known func(code string) bool) ([]string, error) {
	var bad []string
	err := fs.WalkDir(root, "proto", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".proto") {
			return err
		}
		src, err := fs.ReadFile(root, p)
		if err != nil {
			return err
		}
		var comment []string
		for i, line := range strings.Split(string(src), "\n") {
			text, isComment := strings.CutPrefix(strings.TrimSpace(line), "//")
			if isComment {
				comment = append(comment, strings.TrimSpace(text))
				continue
			}
			if m := rpcLine.FindStringSubmatch(line); m != nil {
				for _, why := range problems(comment, known) {
					bad = append(bad, fmt.Sprintf("%s:%d: rpc %s: %s", p, i+1, m[1], why))
				}
			}
			comment = nil
		}
		return nil
	})
	sort.Strings(bad)
	return bad, err
}

func problems(comment []string, known func(string) bool) []string {
	var bad []string
	at, body := 0, map[string]string{}
	current := ""
	for _, line := range comment {
		for i, s := range sections {
			if rest, ok := strings.CutPrefix(line, s); ok {
				if i < at {
					bad = append(bad, s+" stands in the wrong place")
				}
				at, current, line = i+1, s, strings.TrimSpace(rest)
			}
		}
		if current != "" {
			body[current] += " " + line
		}
	}
	if len(comment) == 0 || strings.HasPrefix(comment[0], sections[0]) {
		bad = append(bad, "does not say what it does")
	}
	for _, s := range sections {
		if strings.TrimSpace(body[s]) == "" {
			bad = append(bad, "has no "+s)
		}
	}
	first := strings.FieldsFunc(body["Deadline:"], func(r rune) bool { return r == ' ' || r == ';' || r == '.' || r == ',' })
	if len(first) > 0 && !has(deadlines, first[0]) {
		bad = append(bad, "has a deadline of no class: "+first[0])
	}
	for _, c := range code.FindAllString(body["Errors:"], -1) {
		if !known(c) && c != "max_age" {
			bad = append(bad, "names the error "+c+", which protocol/codes.json does not have")
		}
	}
	return bad
}

func has(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
