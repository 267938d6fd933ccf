package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// report is what a run prints.
type report struct {
	Machine string   `json:"machine"`
	Date    string   `json:"date"`
	Rounds  int      `json:"rounds"`
	Quick   bool     `json:"quick,omitempty"`
	Figures []result `json:"figures"`
}

// table is the report as Markdown.
func (r report) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Machine: %s. %s, median of %d rounds", r.Machine, r.Date, r.Rounds)
	if r.Rounds == 1 {
		b.WriteString(" (a single one decides nothing)")
	}
	b.WriteString(".\n\n| figure | what | measured | floor | counts | bound | within |\n|---|---|---|---|---|---|---|\n")
	for _, f := range r.Figures {
		within, bound := "yes", f.Bound
		switch {
		case bound == "":
			within, bound = "", "told only"
		case !f.Within:
			within = "**no**"
		}
		fmt.Fprintf(&b, "| %s | %s, %s | %s | %s | %s | %s | %s |\n",
			f.Name, f.What, f.Unit, short(f.Measured), short(f.Floor), short(f.Value), bound, within)
	}
	return b.String()
}

// short writes a number with three digits that mean something.
func short(v float64) string {
	switch a := max(v, -v); {
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// verdict says in one line what was missed.
func (r report) verdict() string {
	judged, missed := 0, []string(nil)
	for _, f := range r.Figures {
		if f.Bound == "" {
			continue
		}
		judged++
		if !f.Within {
			missed = append(missed, f.Name)
		}
	}
	s := fmt.Sprintf("bench %d/%d within their bounds", judged-len(missed), judged)
	if len(missed) > 0 {
		s += "; missed: " + strings.Join(missed, ", ")
	}
	if r.Quick {
		s += " (quick: the numbers decide nothing)"
	}
	return s
}

const (
	beginMark = "<!-- bench: written by make bench ARGS=-write -->\n"
	endMark   = "<!-- /bench -->\n"
)

// write puts the table between the marks of docs/performance.md.
func (r report) write(root string) error {
	path := filepath.Join(root, "docs", "performance.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	page, err = replace(page, r.table())
	if err != nil {
		return err
	}
	return os.WriteFile(path, page, 0o644)
}

func replace(page []byte, table string) ([]byte, error) {
	before, rest, ok := bytes.Cut(page, []byte(beginMark))
	_, after, ok2 := bytes.Cut(rest, []byte(endMark))
	if !ok || !ok2 {
		return nil, errors.New("docs/performance.md has lost the marks around its table")
	}
	return []byte(string(before) + beginMark + table + endMark + string(after)), nil
}
