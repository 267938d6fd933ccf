// Package contractmap checks docs/contract-map.md: every phone method and every need of a runtime has a row, and every
// symbol a row names exists in the protos. It reads text only and holds no state.
package contractmap

import (
	"fmt"
	"io/fs"
	"regexp"
	"sort"
	"strings"
)

// Doc is the page that is checked.
const Doc = "docs/contract-map.md"

var (
	block  = regexp.MustCompile(`^\s*(message|enum|service|oneof) (\w+) \{`)
	field  = regexp.MustCompile(`^\s*(?:repeated |optional )?(?:map<[^>]+>|[\w.]+) (\w+) = \d+`)
	value  = regexp.MustCompile(`^\s*([A-Z][A-Z0-9_]+) = \d+`)
	rpc    = regexp.MustCompile(`^\s*rpc (\w+)\(`)
	symbol = regexp.MustCompile("`([^`]+)`")
)

// Symbols lists every name of the protos: Message, Message.field, Service.Rpc, Enum, ENUM_VALUE.
func Symbols(root fs.FS) (map[string]bool, error) {
	all := map[string]bool{}
	err := fs.WalkDir(root, "proto", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".proto") {
			return err
		}
		src, err := fs.ReadFile(root, p)
		if err != nil {
			return err
		}
		var in []string // open blocks; a oneof adds no name of its own
		for _, line := range strings.Split(string(src), "\n") {
			line, _, _ = strings.Cut(line, "//")
			if m := block.FindStringSubmatch(line); m != nil {
				name := m[2]
				if m[1] == "oneof" {
					name = ""
				} else {
					all[join(in, name)] = true
				}
				if !strings.Contains(line, "}") {
					in = append(in, name)
				}
				continue
			}
			for _, r := range []*regexp.Regexp{rpc, field} {
				if m := r.FindStringSubmatch(line); m != nil {
					all[join(in, m[1])] = true
				}
			}
			if m := value.FindStringSubmatch(line); m != nil {
				all[m[1]] = true
			}
			if strings.TrimSpace(line) == "}" && len(in) > 0 {
				in = in[:len(in)-1]
			}
		}
		return nil
	})
	return all, err
}

func join(in []string, name string) string {
	for i := len(in) - 1; i >= 0; i-- {
		if in[i] != "" {
			name = in[i] + "." + name
		}
	}
	return name
}

// Check reads the page. A row is | need | `symbol`, `symbol` | remark |; a need the host meets alone says "host" instead
// of a symbol.
func Check(root fs.FS) ([]string, error) {
	src, err := fs.ReadFile(root, Doc)
	if err != nil {
		return nil, err
	}
	known, err := Symbols(root)
	if err != nil {
		return nil, err
	}
	var bad []string
	rows := map[string]bool{}
	section := ""
	for i, line := range strings.Split(string(src), "\n") {
		if s, ok := strings.CutPrefix(line, "## "); ok {
			section, _, _ = strings.Cut(s, " ")
		}
		cells := strings.Split(line, "|")
		if len(cells) < 4 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[1]) == "need" {
			continue
		}
		rows[section+" "+strings.Trim(strings.TrimSpace(cells[1]), "`")] = true
		names := symbol.FindAllStringSubmatch(cells[2], -1)
		if len(names) == 0 && !strings.HasPrefix(strings.TrimSpace(cells[2]), "host") {
			bad = append(bad, fmt.Sprintf("%s:%d: no symbol carries this", Doc, i+1))
		}
		for _, n := range names {
			if !known[n[1]] {
				bad = append(bad, fmt.Sprintf("%s:%d: the protos have no %s", Doc, i+1, n[1]))
			}
		}
	}
	for _, want := range required {
		if !rows[want] {
			bad = append(bad, fmt.Sprintf("%s: no row for %s", Doc, want))
		}
	}
	sort.Strings(bad)
	return bad, nil
}
