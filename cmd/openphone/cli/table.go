package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// maxCell is the longest text of a cell, in code points.
const maxCell = 60

// rows writes a table without lines; the first row is the heading.
func rows(w io.Writer, list [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range list {
		for i, c := range r {
			r[i] = cut(c)
		}
		fmt.Fprintln(t, strings.TrimRight(strings.Join(r, "\t"), "\t"))
	}
	_ = t.Flush()
}

func cut(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) > maxCell {
		return string([]rune(s)[:maxCell-1]) + "…"
	}
	return s
}

// when is a moment as a person says it: the time of today, else the day.
func when(t *timestamppb.Timestamp) string {
	if t == nil {
		return "never"
	}
	at, now := t.AsTime().Local(), time.Now()
	if at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return at.Format("15:04:05")
	}
	return at.Format("2006-01-02 15:04")
}

// first is the first text that is not empty.
func first(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}
