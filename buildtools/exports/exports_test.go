package exports

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/openphone-host/openphone/buildtools/tree"
	"github.com/openphone-host/openphone/internal/rules"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "TEST-03")
	tr, err := tree.Load(fstest.MapFS{
		"host/x/x.go": {Data: []byte(`package x
type Options struct{ Row Row }
type Row struct{}
type Lonely struct{ Next *Lonely }
func New(Options) {}
func Helper() {}
func private() {}
const Limit = 1
func (Row) Method() {}
`)},
		"host/x/x_test.go": {Data: []byte("package x_test\nimport \"" + tree.Module + "/host/x\"\nfunc f() { x.Helper() }\n")},
		"host/host.go":     {Data: []byte("package host\nimport \"" + tree.Module + "/host/x\"\nfunc f() { x.New(x.Options{}) }\n")},
		"sdk/s/s.go":       {Data: []byte("package s\nfunc ForOthers() {}\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(Check(tr), "\n")
	want := "host/x/x.go:4: Lonely is exported, and nothing outside host/x uses it\n" +
		"host/x/x.go:6: Helper is exported, and nothing outside host/x uses it\n" +
		"host/x/x.go:8: Limit is exported, and nothing outside host/x uses it"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
