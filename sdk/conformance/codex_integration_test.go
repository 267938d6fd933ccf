//go:build integration

package conformance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/openphone-host/openphone/sdk/conformance"
	"github.com/openphone-host/openphone/sdk/modeltest"
)

// codexScripts is what the fake model says, by a word of the prompt.
func codexScripts() []modeltest.Script {
	stream := func(n int, every time.Duration) []modeltest.Step {
		var steps []modeltest.Step
		for i := range n {
			steps = append(steps, modeltest.Text(fmt.Sprintf("piece %d%s", i, []string{" ", "  ", "\n", "\t"}[i%4])), modeltest.Delay(every))
		}
		return steps
	}
	escalated := modeltest.CallWith("exec_command", map[string]any{"cmd": "echo conform > /dev/null", "sandbox_permissions": "require_escalated", "justification": "To show a question of consent."})
	question := modeltest.CallWith("request_user_input", map[string]any{"questions": []any{
		map[string]any{"id": "colour", "header": "Colour", "question": "Which colour?", "options": []any{
			map[string]any{"label": "Red", "description": "Warm"}, map[string]any{"label": "Blue", "description": "Cold"},
		}},
	}})
	return []modeltest.Script{
		{Match: "conform-long", Steps: stream(120, 30*time.Millisecond)},
		{Match: "conform-flood", Steps: stream(20_000, 0)},
		{Match: "conform-tool", Steps: []modeltest.Step{modeltest.Text("Looking."), modeltest.CallWith("exec_command", map[string]any{"cmd": "true"}), modeltest.Text("Done.")}},
		{Match: "conform-approval", Steps: []modeltest.Step{escalated, modeltest.Text("Went on.")}},
		{Match: "conform-question", Steps: []modeltest.Step{question, modeltest.Text("Thanks.")}},
		{Steps: []modeltest.Step{modeltest.Text("Hello", " there.")}},
	}
}

// TestCodexPasses runs the kit on the Codex plugin with a real Codex and a fake model.
func TestCodexPasses(t *testing.T) {
	t.Parallel()
	command := os.Getenv("OPENPHONE_TEST_CODEX")
	if command == "" {
		t.Fatal("OPENPHONE_TEST_CODEX names no Codex executable: run make test, which installs one")
	}
	model := modeltest.New(modeltest.Options{Scripts: codexScripts()})
	t.Cleanup(model.Close)
	cache, err := os.UserCacheDir() // Codex behaves differently with a home under the system's temporary directory
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(cache, "openphone-test"), 0o700); err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp(filepath.Join(cache, "openphone-test"), "conform-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	project := filepath.Join(home, "project")
	if err := os.Mkdir(project, 0o700); err != nil {
		t.Fatal(err)
	}
	toml := fmt.Sprintf(`model = "gpt-5.5"
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
stream_idle_timeout_ms = 20000
`, model.URL())
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(toml), 0o600); err != nil {
		t.Fatal(err)
	}
	passes(t, conformance.Options{
		Path: build(t, "./plugins/codex"), Project: project, ReadOnly: filepath.Join(home, "sessions"), Pause: 5 * time.Second, CaseTimeout: 2 * time.Minute,
		// Codex runs commands in a login shell: nobody's profile has a say in a test (TEST-01).
		Env:    []string{"CODEX_HOME=" + home, "HOME=" + project},
		Config: fmt.Appendf(nil, `{"command":%q}`, command),
		Prompts: conformance.Prompts{
			Text: "Say hello.", Long: "conform-long", Flood: "conform-flood", Tool: "conform-tool",
			Approval: "conform-approval", Question: "conform-question", Steer: "conform-long",
		},
	})
}
