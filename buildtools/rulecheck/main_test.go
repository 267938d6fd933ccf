package main

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/openphone-host/openphone/buildtools/tree"
)

func TestReport(t *testing.T) {
	t.Parallel()
	tr, err := tree.Load(fstest.MapFS{
		"a_test.go": {Data: []byte("package a\nfunc f() { rules.Covers(t, \"CX-01\", \"CX-99\") }\n")},
		"a.go":      {Data: []byte("package a\nfunc f() { rules.Covers(t, \"CX-02\") }\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	doc := "| id | rule |\n| CX-01 | a |\n| CX-02 | b, see CX-03 |\n| CX-09 | c |\n| RELAY-01 | d |\n| UPD-01 | e |\n"
	got := compare(ids(doc), covered(tr), func(folder string) bool { return folder == "host/relay" }, "").String()
	want := "rules covered 1/4\nmissing: CX-02 RELAY-01 UPD-01\nplanned with plugins/codex/desktop: CX-09\nno such rule: CX-99 at a_test.go:2\n"
	if got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
	if got := compare(ids(doc), covered(tr), func(string) bool { return true }, "UPD").String(); !strings.HasPrefix(got, "rules covered 0/1\nmissing: UPD-01\n") {
		t.Errorf("with a prefix: %s", got)
	}
}
