//go:build integration

package cli

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestHostScripts runs the built program with the built demo plugin: what a person types, from up to Ctrl-C.
func TestHostScripts(t *testing.T) {
	t.Parallel()
	bin, err := filepath.Abs("../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/host",
		Setup: func(e *testscript.Env) error {
			e.Setenv("OPENPHONE_HOME", e.WorkDir+"/home")
			e.Setenv("PATH", bin+string(filepath.ListSeparator)+e.Getenv("PATH"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"ready": until("status", `"ready":true`), "running": until("session list", `"active":true`)},
	})
}

// until makes a command that waits until the answer of openphone, as JSON, has a text.
func until(command, text string) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, _ []string) {
		deadline := time.Now().Add(30 * time.Second)
		for time.Now().Before(deadline) {
			err := ts.Exec("openphone", append(strings.Fields(command), "--json")...)
			if err == nil && strings.Contains(ts.ReadFile("stdout"), text) {
				return
			}
			<-time.After(50 * time.Millisecond)
		}
		ts.Fatalf("openphone %s never said %s", command, text)
	}
}
