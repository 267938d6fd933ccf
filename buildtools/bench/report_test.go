package main

import (
	"strings"
	"testing"
)

func TestReplace(t *testing.T) {
	got, err := replace([]byte("a\n"+beginMark+"old\n"+endMark+"b\n"), "new\n")
	if want := "a\n" + beginMark + "new\n" + endMark + "b\n"; err != nil || string(got) != want {
		t.Errorf("%q %v, want %q", got, err, want)
	}
	if _, err := replace([]byte("a\n"), "new\n"); err == nil {
		t.Error("a page without marks was taken")
	}
}

func TestReportSaysWhatWasMissed(t *testing.T) {
	r := report{Rounds: 5, Figures: []result{
		{Name: "B4", Bound: "≤ 500 ms", Within: true}, {Name: "B5.one", Bound: "≤ 80 ms", Value: 81}, {Name: "B3.p50", Within: true},
	}}
	if got, want := r.verdict(), "bench 1/2 within their bounds; missed: B5.one"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if table := r.table(); strings.Count(table, "**no**") != 1 || strings.Count(table, "told only") != 1 {
		t.Errorf("table:\n%s", table)
	}
}

func TestFiguresHaveABenchmark(t *testing.T) {
	for _, f := range figures {
		name, _, _ := strings.Cut(f.name, ".")
		if list, err := choose(name); err != nil || len(list) != 1 {
			t.Errorf("%s: %v %v", f.name, list, err)
		}
	}
}
