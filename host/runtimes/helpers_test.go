package runtimes

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openphone-host/openphone/host/obs"
	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// built is the test plugin without a mode.
var built string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "op-plugin-")
	if err != nil {
		panic(err)
	}
	built = filepath.Join(dir, "plugin")
	out, err := exec.Command("go", "build", "-o", built, "./testdata/plugin").CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "building the test plugin: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// variant is the mode of a test plugin; see testdata/plugin.
type variant map[string]any

// install writes a variant of the test plugin into dir.
func install(t testing.TB, dir, id string, v variant) string {
	t.Helper()
	m := variant{"id": id, "version": "1.0.0"}
	for k, x := range v {
		m[k] = x
	}
	b, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, filePrefix+id)
	_ = os.Remove(path)
	if err := os.WriteFile(path, append(b, "@@mode:"+string(text)+"@@"...), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// pins trusts whatever was installed when it was asked first, and remembers.
type pins struct {
	mu  sync.Mutex
	sum map[string]string
}

func (p *pins) Pin(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sum[name]
}

func (p *pins) SetPin(_ context.Context, name, sum string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sum[name] = sum
	return nil
}

// recorder is an Observer that writes down what it is told.
type recorder struct {
	mu        sync.Mutex
	lines     []string
	events    []runtime.Event
	reconcile *runtime.ReconcileRequest
	refuse    error
	answer    *runtime.ReconcileResponse
	busy      int // calls in progress
	overlap   bool
	news      chan struct{}
}

func newRecorder() *recorder { return &recorder{news: make(chan struct{}, 4096)} }

func (r *recorder) enter() func() {
	r.mu.Lock()
	r.busy++
	r.overlap = r.overlap || r.busy > 1
	r.mu.Unlock()
	return func() {
		r.mu.Lock()
		r.busy--
		r.mu.Unlock()
		select {
		case r.news <- struct{}{}:
		default:
		}
	}
}

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
	r.mu.Unlock()
}

func (r *recorder) Started(ctx context.Context, n uint64, f ReconcileFunc) error {
	defer r.enter()()
	r.note("started %d", n)
	r.mu.Lock()
	req, refuse := r.reconcile, r.refuse
	r.mu.Unlock()
	if req != nil {
		resp, err := f(ctx, req)
		if err != nil {
			return err
		}
		r.mu.Lock()
		r.answer = resp
		r.mu.Unlock()
	}
	return refuse
}

func (r *recorder) Events(n uint64, events []runtime.Event) {
	defer r.enter()()
	r.note("events %d", n)
	r.mu.Lock()
	r.events = append(r.events, events...)
	r.mu.Unlock()
}

func (r *recorder) Down(n uint64, code string) {
	defer r.enter()()
	r.note("down %d %s", n, code)
}

func (r *recorder) Changed() { defer r.enter()() }

func (r *recorder) has(line string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.lines, line)
}

// rig is a supervisor with one plugin that runs until the test ends.
type rig struct {
	*Supervisor
	t      testing.TB
	dir    string // where plugins lie
	data   string
	pins   *pins
	rec    *recorder
	logs   *logBuffer
	mu     sync.Mutex
	set    Settings
	cancel context.CancelFunc
	done   chan error
}

type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newRig installs one plugin under the id test, trusts it and runs the supervisor. tune may change the options first.
func newRig(t testing.TB, v variant, tune func(*Options)) *rig {
	t.Helper()
	r := &rig{
		t: t, dir: t.TempDir(), data: t.TempDir(), pins: &pins{sum: map[string]string{}}, rec: newRecorder(),
		logs: &logBuffer{}, set: Settings{Enabled: true, InstanceSecret: obs.Redacted(strings.Repeat("s", 32))}, done: make(chan error, 1),
	}
	install(t, r.dir, "test", v)
	opt := Options{
		Dirs: []string{r.dir}, DataDir: r.data, Pins: r.pins, HealthEvery: time.Hour,
		Settings: func(string) Settings { r.mu.Lock(); defer r.mu.Unlock(); return r.set },
		Observer: func(*Instance) Observer { return r.rec },
		Log:      slog.New(slog.NewTextHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if tune != nil {
		tune(&opt)
	}
	r.Supervisor = New(opt)
	r.trust()
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() { r.done <- r.Run(ctx) }()
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Logf("log:\n%s", r.logs)
		}
		if r.rec.overlap {
			t.Error("the observer was called from two goroutines at once")
		}
	})
	return r
}

func (r *rig) stop() {
	r.cancel()
	select {
	case err := <-r.done:
		r.done <- err
		if err != nil {
			r.t.Errorf("Run: %v", err)
		}
	case <-time.After(20 * time.Second):
		r.t.Error("Run did not return")
	}
}

// trust pins what lies in the directory now.
func (r *rig) trust() {
	for id, path := range discover([]string{r.dir}) {
		sum, err := r.vault.checksum(path)
		if err != nil {
			r.t.Fatal(err)
		}
		_ = r.pins.SetPin(context.Background(), filePrefix+id, sum)
	}
}

func (r *rig) inst() *Instance {
	r.t.Helper()
	i, err := r.Instance("test")
	if err != nil {
		r.t.Fatal(err)
	}
	return i
}

// until waits for a state of the instance.
func (r *rig) until(want State) Snapshot {
	r.t.Helper()
	i := r.inst()
	return r.wait(string(want), func() bool { s, _ := i.State(); return s == want })
}

// wait waits for something to become true at one of the instance's changes.
func (r *rig) wait(what string, ok func() bool) Snapshot {
	r.t.Helper()
	i := r.inst()
	limit := time.After(30 * time.Second)
	for {
		i.mu.Lock()
		moved := i.moved
		i.mu.Unlock()
		if ok() {
			return i.Snapshot()
		}
		select {
		case <-moved:
		case <-r.rec.news:
		case <-limit:
			s := i.Snapshot()
			r.t.Fatalf("waiting for %s: it is %s %s (%s); observer saw %v", what, s.State, s.Reason, s.Detail, r.rec.lines)
		}
	}
}

// tell gives the plugin a word and returns its answer.
func (r *rig) tell(word string) string {
	r.t.Helper()
	out, err := r.try(word)
	if err != nil {
		r.t.Fatalf("%s: %v", word, err)
	}
	return out
}

func (r *rig) try(word string) (string, error) {
	b, _ := json.Marshal(word)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	resp, err := r.inst().Call(ctx, &runtime.CallRequest{Method: "test.run", Params: runtime.JSON(b)})
	if err != nil {
		return "", err
	}
	return string(resp.Result.Data), nil
}

func code(t testing.TB, err error, want string) {
	t.Helper()
	if got := codes.Of(err); got != want {
		t.Errorf("code %q, want %q (%v)", got, want, err)
	}
}

// say is a word for the test plugin as it travels.
func say(word string) *runtimev1.CallRequest {
	b, _ := json.Marshal(word)
	return &runtimev1.CallRequest{Method: "test.run", Params: &runtimev1.Payload{ContentType: "application/json", Data: b}}
}
