package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/golden"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// object is a JSON object.
type object = map[string]any

// fakeCodex is an app server whose answers a test decides. It answers the handshake and the catalog by itself.
type fakeCodex struct {
	t    *testing.T
	home string
	dir  string // the project

	version string

	mu      sync.Mutex
	answers map[string]func(params json.RawMessage) golden.Answer
	seen    []call
	more    chan struct{}
	out     io.Writer
	process *fakeProcess
}

func newFakeCodex(t *testing.T) *fakeCodex {
	return &fakeCodex{t: t, version: "0.171.0", home: t.TempDir(), dir: t.TempDir(), answers: map[string]func(json.RawMessage) golden.Answer{}, more: make(chan struct{})}
}

// on sets the answer to a method; nil means that none is ever given.
func (f *fakeCodex) on(method string, answer func(params json.RawMessage) golden.Answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[method] = answer
}

type fakeProcess struct {
	in     *io.PipeWriter
	out    *io.PipeReader
	inR    *io.PipeReader
	outW   *io.PipeWriter
	killed sync.Once
	served sync.WaitGroup
}

func (p *fakeProcess) Stdin() io.WriteCloser { return p.in }
func (p *fakeProcess) Stdout() io.Reader     { return p.out }
func (p *fakeProcess) Terminate()            { p.Kill() }
func (p *fakeProcess) Kill() {
	p.killed.Do(func() { _ = errors.Join(p.inR.Close(), p.outW.Close()) })
}
func (p *fakeProcess) Wait() error { p.served.Wait(); return nil }

// start is a StartFunc.
func (f *fakeCodex) start([]string, []string) (Process, error) {
	p := &fakeProcess{}
	p.inR, p.in = io.Pipe()
	p.out, p.outW = io.Pipe()
	f.mu.Lock()
	f.out, f.process = p.outW, p
	f.mu.Unlock()
	p.served.Go(func() {
		defer p.Kill()
		lines := bufio.NewScanner(p.inR)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			f.serve(append([]byte(nil), lines.Bytes()...))
		}
	})
	return p, nil
}

func (f *fakeCodex) serve(line []byte) {
	var m golden.Message
	if json.Unmarshal(line, &m) != nil {
		return
	}
	f.mu.Lock()
	name := m.Method
	if name == "" {
		name, m.Params = "answer", line
	}
	f.seen = append(f.seen, call{method: name, params: m.Params})
	answer, set := f.answers[m.Method]
	close(f.more)
	f.more = make(chan struct{})
	f.mu.Unlock()
	if !m.IsRequest() || set && answer == nil {
		return
	}
	var a golden.Answer
	switch {
	case set:
		a = answer(m.Params)
	case m.Method == "initialize":
		a.Result = object{"userAgent": "host/" + f.version + " (Linux; x86_64)", "codexHome": f.home}
	case m.Method == "model/list":
		a.Result = object{"data": []object{fakeModel("gpt-5.5", true), fakeModel("gpt-6-luna", false)}}
	case m.Method == "account/read":
		a.Result = object{"account": object{"type": "apiKey"}, "requiresOpenaiAuth": true}
	case m.Method == "config/read":
		a.Result = object{"config": object{"model": "gpt-5.5", "model_provider": nil}}
	case m.Method == "thread/start", m.Method == "thread/resume":
		a.Result = f.result("t1", ":workspace")
	case m.Method == "turn/start":
		a.Result = object{"turn": object{"id": "turn1", "status": "inProgress", "items": []object{}}}
	default:
		a.Result = object{}
	}
	if a.Code != 0 {
		f.write(object{"id": m.ID, "error": object{"code": a.Code, "message": a.Message}})
		return
	}
	f.write(object{"id": m.ID, "result": a.Result})
}

func fakeModel(id string, standard bool) object {
	return object{
		"id": id, "model": id, "displayName": id, "isDefault": standard, "defaultReasoningEffort": "medium",
		"supportedReasoningEfforts": []object{{"reasoningEffort": "medium"}, {"reasoningEffort": "high"}},
		"inputModalities":           []string{"text", "image"}, "serviceTiers": []object{{"id": fastTier}},
	}
}

// result is what thread/start and thread/resume answer.
func (f *fakeCodex) result(id, profile string) object {
	sandbox := object{"type": "workspaceWrite", "networkAccess": false}
	policy := "on-request"
	switch profile {
	case ":read-only":
		sandbox = object{"type": "readOnly", "networkAccess": false}
	case ":danger-full-access":
		sandbox, policy = object{"type": "dangerFullAccess"}, "never"
	}
	return object{
		"thread": f.thread(id), "model": "gpt-5.5", "modelProvider": "openai", "cwd": f.dir, "approvalPolicy": policy,
		"approvalsReviewer": "user", "sandbox": sandbox, "activePermissionProfile": object{"id": profile},
		"reasoningEffort": "medium",
	}
}

func (f *fakeCodex) thread(id string) object {
	return object{
		"id": id, "cwd": f.dir, "model": "gpt-5.5", "modelProvider": "openai", "status": object{"type": "idle"},
		"path": filepath.Join(f.home, "sessions", "rollout-"+id+".jsonl"),
	}
}

// settings is the notification about effective settings.
func (f *fakeCodex) settings(id, profile string, more ...any) object {
	r := f.result(id, profile)
	s := object{
		"cwd": f.dir, "model": "gpt-5.5", "modelProvider": "openai", "approvalPolicy": r["approvalPolicy"],
		"approvalsReviewer": "user", "sandboxPolicy": r["sandbox"], "activePermissionProfile": r["activePermissionProfile"],
		"effort": "medium", "serviceTier": nil,
		"collaborationMode": object{"mode": "default", "settings": object{"model": "gpt-5.5", "reasoning_effort": "medium"}},
	}
	for i := 0; i+1 < len(more); i += 2 {
		s[more[i].(string)] = more[i+1]
	}
	return object{"threadId": id, "threadSettings": s}
}

func (f *fakeCodex) write(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		f.t.Error(err)
		return
	}
	f.mu.Lock()
	out := f.out
	f.mu.Unlock()
	_, _ = out.Write(append(b, '\n'))
}

func (f *fakeCodex) notify(method string, params object) {
	f.write(object{"method": method, "params": params})
}

func (f *fakeCodex) ask(id int, method string, params object) {
	f.write(object{"id": id, "method": method, "params": params})
}

// turn is a turn/completed notification.
func (f *fakeCodex) turn(id string, status any, more ...any) object {
	turn := object{"id": id, "status": status, "items": []object{}, "completedAt": 1}
	for i := 0; i+1 < len(more); i += 2 {
		turn[more[i].(string)] = more[i+1]
	}
	return object{"threadId": "t1", "turn": turn}
}

// wait gives the parameters of the nth call of a method, counted from 1.
func (f *fakeCodex) wait(method string, n int) json.RawMessage {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	for {
		f.mu.Lock()
		more, found := f.more, 0
		for _, c := range f.seen {
			if c.method == method {
				if found++; found == n {
					f.mu.Unlock()
					return c.params
				}
			}
		}
		f.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			f.t.Fatalf("no %s number %d", method, n)
		}
	}
}

func (f *fakeCodex) count(method string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.seen {
		if c.method == method {
			n++
		}
	}
	return n
}

// noOwner says what a test wants to be said about owners.
type noOwner struct{ Evidence }

func (o noOwner) Discover(context.Context, string, string) Evidence { return o.Evidence }

// unit is an agent over a fakeCodex.
type unit struct {
	*fakeCodex
	a    *Agent
	sink *recorder
	host *memoryHost
}

func newUnit(t *testing.T, change ...func(*Options)) *unit {
	t.Helper()
	return startUnit(t, newFakeCodex(t), change...)
}

func startUnit(t *testing.T, f *fakeCodex, change ...func(*Options)) *unit {
	t.Helper()
	u := &unit{fakeCodex: f, sink: newRecorder(), host: newMemoryHost()}
	o := Options{
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Start: u.start, Owner: noOwner{BrokerAbsent},
		Find: func(context.Context, string, []string) (appserver.Executable, string, error) {
			return appserver.Executable{Path: "codex"}, "0.171.0", nil
		},
	}
	for _, c := range change {
		c(&o)
	}
	u.a = New(o)
	if err := u.a.Watch(t.Context(), u.sink); err != nil {
		t.Fatal(err)
	}
	if err := u.a.Configure(t.Context(), &runtime.ConfigureRequest{InstanceID: "codex"}, u.host); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := u.a.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	return u
}

func (u *unit) ref(native string) runtime.SessionRef {
	return runtime.SessionRef{SessionID: "s", NativeID: native, ProjectPath: u.dir}
}

func (u *unit) prepare(ref runtime.SessionRef, id string) (runtime.SessionRef, error) {
	p, err := u.a.PrepareRun(u.t.Context(), &runtime.PrepareRunRequest{Session: ref, RunID: id, Input: []runtime.Part{{Text: "hi"}}})
	if err != nil {
		return ref, err
	}
	return p.Session, nil
}

// begin has a run going in turn1 of t1.
func (u *unit) begin(id string) runtime.SessionRef {
	u.t.Helper()
	ref, err := u.prepare(u.ref(""), id)
	if err != nil {
		u.t.Fatal(err)
	}
	c, err := u.a.CommitRun(u.t.Context(), &runtime.CommitRunRequest{RunID: id})
	if err != nil || c.Outcome != runtime.OutcomeDispatched {
		u.t.Fatalf("commit %+v, %v", c, err)
	}
	u.notify("turn/started", u.turn("turn1", "inProgress"))
	return ref
}

// remembered puts a record into the host's state.
func (u *unit) remembered(rec record) {
	u.t.Helper()
	b, err := json.Marshal(rec)
	if err != nil {
		u.t.Fatal(err)
	}
	if _, err := u.host.PutState(u.t.Context(), stateKey(u.ref("")), b, nil); err != nil {
		u.t.Fatal(err)
	}
}
