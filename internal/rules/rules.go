// Package rules ties tests to the rules of docs/rules.md: a test that would fail without a behaviour names its id.
// buildtools/rulecheck reads the calls from the sources; at run time Covers only checks that the id exists. No state.
package rules

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

var text = sync.OnceValue(func() string {
	_, file, _, _ := runtime.Caller(0)
	b, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "../../docs/rules.md"))
	return string(b)
})

// Covers says that the calling test proves the rules with these ids, such as CX-02. Ids are literals, so that they can
// be found without running anything.
func Covers(tb testing.TB, ids ...string) {
	tb.Helper()
	for _, id := range ids {
		if t := text(); t != "" && !strings.Contains(t, "| "+id+" |") {
			tb.Fatalf("rule %s does not exist in docs/rules.md", id)
		}
	}
}
