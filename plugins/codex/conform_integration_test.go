//go:build integration

package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/openphone-host/openphone/sdk/conformance"
	"github.com/openphone-host/openphone/sdk/modeltest"
)

// long is a reply of three seconds in many pieces.
func long() (steps []modeltest.Step) {
	for i := range 400 {
		steps = append(steps, modeltest.Text(fmt.Sprintf("piece %d, ünï; ", i)), modeltest.Delay(8*time.Millisecond))
	}
	return steps
}

// flood is as much text as the model can say for ten seconds.
func flood() (steps []modeltest.Step) {
	for range 1000 {
		deltas := make([]string, 200)
		for i := range deltas {
			deltas[i] = fmt.Sprintf("x%04d ", i)
		}
		steps = append(steps, modeltest.Text(deltas...), modeltest.Delay(10*time.Millisecond))
	}
	return steps
}

// TestConformance runs the conformance kit against this plugin, the real Codex and a fake model.
func TestConformance(t *testing.T) {
	command := os.Getenv("OPENPHONE_TEST_CODEX")
	if command == "" {
		t.Fatal("OPENPHONE_TEST_CODEX names no Codex executable; make test sets it")
	}
	cache, err := os.UserCacheDir() // not the system's temporary directory, where Codex behaves differently
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(cache, "openphone-test")
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp(root, "conform-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	plugin := filepath.Join(home, "openphone-runtime-codex")
	if runtime.GOOS == "windows" {
		plugin += ".exe"
	}
	if out, err := exec.Command("go", "build", "-o", plugin, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}

	model := modeltest.New(modeltest.Options{Scripts: []modeltest.Script{
		{Match: "say hello", Steps: []modeltest.Step{modeltest.Text("Hello ", "there.")}},
		{Match: "be long", Steps: long()},
		{Match: "flood", Steps: flood()},
		{Match: "use a tool", Steps: []modeltest.Step{modeltest.Text("before"), modeltest.Call("exec_command", `{"cmd":"ls"}`), modeltest.Text("after")}},
		{Match: "need consent", Steps: []modeltest.Step{
			modeltest.Text("I will."),
			modeltest.Call("exec_command", `{"cmd":"touch made","sandbox_permissions":"require_escalated","justification":"to see"}`),
			modeltest.Text("Done."),
		}},
		{Match: "ask me", Steps: []modeltest.Step{modeltest.CallWith("request_user_input", map[string]any{"questions": []map[string]any{{
			"id": "scope", "header": "Scope", "question": "How far?",
			"options": []map[string]any{{"label": "Small", "description": "one"}, {"label": "Large", "description": "all"}},
		}}}), modeltest.Text("Thanks.")}},
		{Match: "steer me", Steps: []modeltest.Step{modeltest.Text("go "), modeltest.Delay(2500 * time.Millisecond), modeltest.Text("done")}},
		{Match: "fail", Steps: []modeltest.Step{modeltest.Error(http.StatusInternalServerError, `{}`)}},
	}})
	t.Cleanup(model.Close)
	config := fmt.Sprintf(`model = "gpt-5.5"
model_provider = "fake"
[features]
plugins = false
default_mode_request_user_input = true
[model_providers.fake]
name = "Fake"
base_url = "%s/v1"
wire_api = "responses"
requires_openai_auth = false
request_max_retries = 0
stream_max_retries = 0
stream_idle_timeout_ms = 60000
`, model.URL())
	codex, project := filepath.Join(home, "codex"), filepath.Join(home, "project")
	for _, dir := range []string{codex, project, filepath.Join(codex, "sessions")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(codex, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}

	summary, err := conformance.Run(t.Context(), conformance.Options{
		Path: plugin, Env: []string{"CODEX_HOME=" + codex}, Config: []byte(fmt.Sprintf(`{"command":%q}`, command)), Project: project,
		ReadOnly: filepath.Join(codex, "sessions"), Pause: 3 * time.Second,
		Prompts: conformance.Prompts{
			Text: "say hello", Long: "be long", Flood: "flood", Tool: "use a tool", Approval: "need consent", Question: "ask me", Steer: "steer me",
		},
	}, func(r conformance.Result) {
		if r.Status == conformance.Fail {
			t.Errorf("%s: %s", r.Name(), r.Detail)
		}
	})
	if err != nil || !summary.OK() {
		t.Errorf("%+v, %v", summary, err)
	}
	t.Logf("%d passed, %d skipped", summary.Passed, summary.Skipped)
}
