package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/openphone-host/openphone/sdk/modeltest"
)

// patience is how long anything may take that takes a moment.
const patience = 30 * time.Second

// computer is one person's computer: a home with Codex and the host's data directory, a project, and a fake model.
type computer struct {
	*ground
	name    string
	dir     string
	home    string // data directory of the host
	codexAt string // CODEX_HOME
	project string
	bin     string
	kill    string // file that names the plugin's kill point
	model   *modeltest.Server
	planted string // a credential in the environment

	host *hostProcess
}

// newComputer prepares everything and starts nothing but the model.
func (g *ground) newComputer(name, bin string) (*computer, error) {
	dir := filepath.Join(g.dir, name)
	c := &computer{
		ground: g, name: name, dir: dir, home: filepath.Join(dir, "openphone"), codexAt: filepath.Join(dir, "home", ".codex"),
		project: filepath.Join(dir, "home", "project"), bin: bin, kill: filepath.Join(dir, "kill"), planted: g.plant("Credential"),
	}
	for _, d := range []string{c.home, c.codexAt, c.project} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	c.model = modeltest.New(modeltest.Options{})
	codexConfig := fmt.Sprintf(`model = "gpt-5.5"
model_provider = "fake"
[features]
plugins = false
request_permissions_tool = true
default_mode_request_user_input = true
[model_providers.fake]
name = "Fake"
base_url = "%s/v1"
wire_api = "responses"
requires_openai_auth = false
request_max_retries = 0
stream_max_retries = 0
stream_idle_timeout_ms = 60000
`, c.model.URL())
	if err := os.WriteFile(filepath.Join(c.codexAt, "config.toml"), []byte(codexConfig), 0o600); err != nil {
		return nil, err
	}
	saved := fmt.Sprintf(`{"electron-saved-workspace-roots":[%q]}`, c.project)
	if err := os.WriteFile(filepath.Join(c.codexAt, ".codex-global-state.json"), []byte(saved), 0o600); err != nil {
		return nil, err
	}
	hostConfig := fmt.Sprintf("[runtimes.codex]\nenabled = true\nsettings = { command = %q }\nenvironment = { OPENPHONE_KILL_FILE = %q }\n"+
		"[runtimes.demo]\nenabled = true\nenvironment = { OPENPHONE_KILL_FILE = %q }\n", c.codex, c.kill, c.kill)
	if err := os.WriteFile(filepath.Join(c.home, "config.toml"), []byte(hostConfig), 0o600); err != nil {
		return nil, err
	}
	g.searchHome(c.home)
	g.searchHome(filepath.Join(dir, "printed"))
	return c, nil
}

func (c *computer) env(more ...string) []string {
	env := []string{
		"OPENPHONE_HOME=" + c.home, "HOME=" + filepath.Join(c.dir, "home"), "CODEX_HOME=" + c.codexAt,
		"OPENAI_API_KEY=" + c.planted, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8",
	}
	return append(env, more...)
}

// hostProcess is one running host.
type hostProcess struct {
	cmd     *exec.Cmd
	ready   chan readyLine
	done    chan struct{} // closed when it has ended
	out     *os.File
	reading sync.WaitGroup

	mu    sync.Mutex
	lines []string
}

type readyLine struct {
	Ready    bool
	Listen   string
	PID      int
	Runtimes []struct{ ID, State, Reason string }
}

// up starts the host and waits for its ready line.
func (c *computer) up(ctx context.Context, env ...string) (readyLine, error) {
	if err := os.MkdirAll(filepath.Join(c.dir, "printed"), 0o700); err != nil {
		return readyLine{}, err
	}
	printed, err := os.OpenFile(filepath.Join(c.dir, "printed", "host"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return readyLine{}, err
	}
	h := &hostProcess{ready: make(chan readyLine, 1), done: make(chan struct{}), out: printed}
	h.cmd = exec.Command(filepath.Join(c.bin, exe("openphone")), "up", "--json")
	h.cmd.Env, h.cmd.Stderr = c.env(env...), printed
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return readyLine{}, err
	}
	if err := h.cmd.Start(); err != nil {
		return readyLine{}, err
	}
	c.host = h
	h.reading.Go(func() { h.read(out) })
	select {
	case r := <-h.ready:
		return r, nil
	case <-h.done:
		return readyLine{}, fmt.Errorf("the host ended before it was ready: %s", h.tail())
	case <-ctx.Done():
		return readyLine{}, ctx.Err()
	case <-time.After(patience):
		return readyLine{}, fmt.Errorf("the host is not ready after %v: %s", patience, h.tail())
	}
}

// read keeps what the host prints until it ends.
func (h *hostProcess) read(out io.Reader) {
	defer close(h.done)
	defer h.out.Close()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fmt.Fprintln(h.out, lines.Text())
		h.mu.Lock()
		h.lines = append(h.lines, lines.Text())
		h.mu.Unlock()
		var r readyLine
		if json.Unmarshal(lines.Bytes(), &r) == nil && r.Ready {
			h.ready <- r
		}
	}
	_ = h.cmd.Wait()
}

func (h *hostProcess) tail() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.lines[max(0, len(h.lines)-3):], " | ")
}

// down asks the host to end and checks that it does so in good order.
func (c *computer) down() error {
	h := c.host
	if h == nil {
		return nil
	}
	c.host = nil
	if err := h.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-h.done:
	case <-time.After(patience):
		_ = h.cmd.Process.Kill()
		<-h.done
		return errors.New("the host did not end when asked")
	}
	if code := h.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the host ended with status %d", code)
	}
	return nil
}

// killed kills the host and waits until it is gone.
func (c *computer) killed() error {
	if err := c.host.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return c.gone()
}

// gone waits until the host has ended by itself.
func (c *computer) gone() error {
	select {
	case <-c.host.done:
		c.host = nil
		return nil
	case <-time.After(patience):
		return errors.New("the host lives on")
	}
}

// close ends everything of this computer.
func (c *computer) close() error {
	err := c.down()
	c.model.Close()
	return err
}

// cli runs a command against the running host and reads its JSON.
func (c *computer) cli(ctx context.Context, result any, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, exe("openphone")), append(args, "--json")...)
	cmd.Env = c.env()
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("openphone %s: %w: %s%s", strings.Join(args, " "), err, problem.String(), out.String())
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(out.Bytes(), result)
}

// pairing is what a phone needs.
type pairing struct {
	PhoneID  string `json:"phone_id"`
	Backends []struct{ Backend, URL, Token string }
}

// pair makes a token for one more phone; it is a secret like any other.
func (c *computer) pair(ctx context.Context) (*pairing, error) {
	var p pairing
	if err := c.cli(ctx, &p, "pair", "--direct"); err != nil {
		return nil, err
	}
	for _, b := range p.Backends {
		c.keepSecret(b.Token)
	}
	return &p, nil
}

// runtimeStatus is what the host knows about one runtime.
type runtimeStatus struct {
	ID, State, Condition string
	PID                  int
	Generation           int
	Checksum             string
	PluginVersion        string `json:"plugin_version"`
}

func (c *computer) status(ctx context.Context, id string) (runtimeStatus, error) {
	var s struct{ Runtimes []runtimeStatus }
	if err := c.cli(ctx, &s, "status"); err != nil {
		return runtimeStatus{}, err
	}
	for _, r := range s.Runtimes {
		if r.ID == id {
			return r, nil
		}
	}
	return runtimeStatus{}, fmt.Errorf("no runtime %s", id)
}
