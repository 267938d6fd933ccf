//go:build integration

package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/openphone-host/openphone/sdk/modeltest"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// bench is an agent over a real Codex, named by $OPENPHONE_TEST_CODEX, and a fake model, in a home of its own.
type bench struct {
	t       *testing.T
	model   *modeltest.Server
	home    string
	project string
	host    *memoryHost
	a       *Agent
	sink    *recorder
	child   atomic.Pointer[Process]
}

// killChild ends the app server without warning and waits until it is gone.
func (b *bench) killChild() {
	b.t.Helper()
	b.a.mu.Lock()
	l := b.a.link
	b.a.mu.Unlock()
	(*b.child.Load()).Kill()
	<-l.client.Done()
}

var prompts atomic.Int64

// newBench starts everything. config is added to Codex' configuration.
func newBench(t *testing.T, config string) *bench {
	t.Helper()
	command := os.Getenv("OPENPHONE_TEST_CODEX")
	if command == "" {
		t.Fatal("OPENPHONE_TEST_CODEX names no Codex executable: run make test, which installs one")
	}
	cache, err := os.UserCacheDir() // Codex behaves differently with a home under the system's temporary directory
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(cache, "openphone-test")
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp(root, "codex-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	project := filepath.Join(home, "project")
	if err := os.MkdirAll(project, 0o700); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, model: modeltest.New(modeltest.Options{}), home: home, project: project, host: newMemoryHost()}
	t.Cleanup(b.model.Close)
	toml := fmt.Sprintf(`model = "gpt-5.5"
model_provider = "fake"
%s
[features]
plugins = false
request_permissions_tool = true
[model_providers.fake]
name = "Fake"
base_url = "%s/v1"
wire_api = "responses"
requires_openai_auth = false
request_max_retries = 0
stream_max_retries = 0
stream_idle_timeout_ms = 20000
`, config, b.model.URL())
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(toml), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CODEX_HOME", home)
	// Codex runs commands in a login shell: nobody's profile has a say in a test (TEST-01).
	t.Setenv("HOME", project)
	b.start()
	return b
}

// start begins a plugin process' worth of agent over the same home and state.
func (b *bench) start() {
	b.t.Helper()
	b.sink = newRecorder()
	b.a = New(Options{Log: slog.New(slog.NewTextHandler(b.t.Output(), nil)), Start: func(command, env []string) (Process, error) {
		p, err := startProcess(command, env)
		b.child.Store(&p)
		return p, err
	}})
	ctx := b.t.Context()
	if err := b.a.Watch(ctx, b.sink); err != nil {
		b.t.Fatal(err)
	}
	config := runtime.JSON([]byte(fmt.Sprintf(`{"command":%q}`, os.Getenv("OPENPHONE_TEST_CODEX"))))
	if err := b.a.Configure(ctx, &runtime.ConfigureRequest{InstanceID: "codex", Config: config, DataDir: b.home}, b.host); err != nil {
		b.t.Fatal(err)
	}
	a := b.a
	b.t.Cleanup(func() { b.stop(a) })
}

func (b *bench) stop(a *Agent) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := a.Shutdown(ctx); err != nil {
		b.t.Errorf("shutdown: %v", err)
	}
}

// restart ends the agent and its child and begins another one.
func (b *bench) restart() {
	b.t.Helper()
	b.stop(b.a)
	b.start()
}

func (b *bench) session(name string) runtime.SessionRef {
	return runtime.SessionRef{SessionID: name, ProjectPath: b.project}
}

func runID() string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", prompts.Add(1)) }

// prepare makes a prompt ready.
func (b *bench) prepare(ref runtime.SessionRef, parts ...runtime.Part) (string, runtime.SessionRef, error) {
	b.t.Helper()
	id := runID()
	p, err := b.a.PrepareRun(b.t.Context(), &runtime.PrepareRunRequest{Session: ref, RunID: id, Input: parts})
	if err != nil {
		return id, ref, err
	}
	return id, p.Session, nil
}

// send sends a prompt and gives its run and the conversation with its thread.
func (b *bench) send(ref runtime.SessionRef, text string) (string, runtime.SessionRef) {
	b.t.Helper()
	id, ref, err := b.prepare(ref, runtime.Part{Text: text})
	if err != nil {
		b.t.Fatalf("prepare: %v", err)
	}
	c, err := b.a.CommitRun(b.t.Context(), &runtime.CommitRunRequest{RunID: id})
	if err != nil || c.Outcome != runtime.OutcomeDispatched {
		b.t.Fatalf("commit: %+v, %v", c, err)
	}
	return id, ref
}

// resolve answers an interaction.
func (b *bench) resolve(ref runtime.SessionRef, r runtime.ResolveInteractionRequest) *runtime.ResolveInteractionResponse {
	b.t.Helper()
	r.Session = ref
	resp, err := b.a.ResolveInteraction(b.t.Context(), &r)
	if err != nil {
		b.t.Fatalf("resolve: %v", err)
	}
	return resp
}
