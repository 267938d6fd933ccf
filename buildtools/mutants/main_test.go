package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, out string
		passed    bool
		want      string
	}{
		{"red", "--- FAIL: TestX (0.0s)\nFAIL", false, "caught"},
		{"hangs", "panic: test timed out after 2m0s", false, "caught"},
		{"green", "ok", true, "SURVIVED"},
		{"does not compile", "FAIL\tx [build failed]", false, "no build"},
		{"wrong name", "ok x [no tests to run]", true, "no test"},
		{"another test is red", "--- FAIL: TestY (0.0s)", false, "unclear"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := judge("TestX/case", []byte(c.out), c.passed); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Every mutant must still find its text, or make mutants would fail days later, in its turn of the rotation.
func TestTableApplies(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, m := range table {
		src, err := os.ReadFile(filepath.Join("../..", m.file))
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		if _, err := m.apply(src); err != nil {
			t.Errorf("%s: %s: %v", m.name, m.file, err)
		}
		if names[m.name] || m.old == m.new || m.test == "" || m.pkg == "" {
			t.Errorf("%s: the row is not complete or stands twice", m.name)
		}
		names[m.name] = true
	}
}
