//go:build integration

package conformance_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/openphone-host/openphone/sdk/conformance"
)

// root is the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func build(t *testing.T, pkg string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), filepath.Base(pkg))
	cmd := exec.Command("go", "build", "-o", out, pkg)
	cmd.Dir = root(t)
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, b)
	}
	return out
}

func prompts(t *testing.T, file string) conformance.Prompts {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root(t), file))
	if err != nil {
		t.Fatal(err)
	}
	var p conformance.Prompts
	if err := json.Unmarshal(b, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// passes runs the kit and reports what failed. skips are the groups in which a case may be skipped.
func passes(t *testing.T, o conformance.Options) conformance.Summary {
	t.Helper()
	sum, err := conformance.Run(t.Context(), o, func(r conformance.Result) {
		t.Logf("%s %s %.1fs %s", r.Status, r.Name(), r.Elapsed.Seconds(), r.Detail)
		if r.Status == conformance.Fail {
			t.Errorf("%s: %s", r.Name(), r.Detail)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if !sum.OK() {
		t.Errorf("summary: %+v", sum)
	}
	return sum
}

func TestDemoPasses(t *testing.T) {
	t.Parallel()
	sum := passes(t, conformance.Options{Path: build(t, "./plugins/demo"), Prompts: prompts(t, "plugins/demo/conform.json"), Pause: 5 * time.Second})
	if sum.Passed < 90 {
		t.Errorf("only %d cases passed: the demo is the reference and advertises nearly everything", sum.Passed)
	}
}

func TestRawChannelPluginPasses(t *testing.T) {
	t.Parallel()
	sum := passes(t, conformance.Options{Path: build(t, "./docs/examples/rawchannel"), Pause: time.Second})
	if sum.Passed < 25 {
		t.Errorf("only %d cases passed", sum.Passed)
	}
}

// TestNodePluginPasses installs the example's two dependencies with npm.
func TestNodePluginPasses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, f := range []string{"package.json", "plugin.js", "goplugin.js"} {
		b, err := os.ReadFile(filepath.Join(root(t), "docs/examples/node", f))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f), b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--omit=dev")
	cmd.Dir = dir
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm install: %v\n%s", err, b)
	}
	passes(t, conformance.Options{
		Path: filepath.Join(dir, "plugin.js"), Prompts: prompts(t, "docs/examples/node/conform.json"),
		Env: []string{"OPENPHONE_PROTO=" + filepath.Join(root(t), "proto")}, Pause: 3 * time.Second,
	})
}

// TestKitFindsFaults shows that the kit is no rubber stamp: a plugin with one fault each fails in the group that looks for
// it, and says so with exit status 1.
func TestKitFindsFaults(t *testing.T) {
	t.Parallel()
	faulty := build(t, "./sdk/conformance/testdata/faulty")
	for fault, group := range map[string]string{
		"trim":        "send",
		"two-ends":    "send",
		"eager":       "send",
		"stay":        "start",
		"side-effect": "start",
		"ghost":       "describe",
		"no-cancel":   "cancel",
		"amnesia":     "crash",
		"any-cursor":  "history",
		"overlap":     "history",
		"crash":       "bad input",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			var failed []string
			sum, err := conformance.Run(t.Context(), conformance.Options{
				Path: faulty, Args: []string{fault}, Groups: []string{group}, CaseTimeout: 30 * time.Second,
				Prompts: conformance.Prompts{Long: "/stream n=60 rate=60"},
			}, func(r conformance.Result) {
				if r.Status == conformance.Fail {
					failed = append(failed, r.Name()+": "+r.Detail)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if sum.OK() || len(failed) == 0 {
				t.Errorf("the fault %q was not found: %+v", fault, sum)
			}
		})
	}
}
