package cli

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets scripts call openphone as a program of its own: the same code in a process of its own.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"openphone": func() { os.Exit(Main(os.Args[1:], Process())) },
	})
}

// TestScripts runs the command line where no host runs.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("OPENPHONE_HOME", e.WorkDir+"/home")
			return nil
		},
	})
}
