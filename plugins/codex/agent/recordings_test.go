package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/golden"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// pretended is an app server that is a function.
type pretended struct {
	in     io.ReadCloser // what the client wrote
	out    io.WriteCloser
	stdin  io.WriteCloser
	stdout io.ReadCloser
	done   chan struct{}
}

func newPretended() *pretended {
	p := &pretended{done: make(chan struct{})}
	p.in, p.stdin = pipe()
	p.stdout, p.out = pipe()
	return p
}

func pipe() (io.ReadCloser, io.WriteCloser) { r, w := io.Pipe(); return r, w }

func (p *pretended) Stdin() io.WriteCloser { return p.stdin }
func (p *pretended) Stdout() io.Reader     { return p.stdout }
func (p *pretended) Terminate()            { _ = p.stdin.Close() }
func (p *pretended) Kill()                 { _ = p.stdin.Close(); _ = p.out.Close() }
func (p *pretended) Wait() error           { <-p.done; return nil }

// replay drives an agent with a recording.
type replay struct {
	t      *testing.T
	agent  *Agent
	events *recorder
	thread string
	dir    string
	frames []golden.Frame
	ref    runtime.SessionRef
	runs   []string
	seen   map[string]bool // interactions answered
	open   bool            // the recording ends before the run does
}

// usable is what the plugin itself takes part in: prompts, additions, stops and answers, from the first prompt on, with
// everything the server said. What the recorded client tried for its own sake, and got refused, is left out.
func usable(frames []golden.Frame) []golden.Frame {
	keep := map[string]bool{"turn/start": true, "turn/steer": true, "turn/interrupt": true}
	refused, asked := map[string]bool{}, map[string]bool{}
	for _, f := range frames {
		if m := f.Parse(); f.Dir == golden.ToClient && m.IsAnswer() && m.Error != nil {
			refused[string(m.ID)] = true
		}
	}
	var list []golden.Frame
	stopped := false
	for _, f := range frames {
		m := f.Parse()
		switch {
		case f.Dir == golden.ToServer && m.IsRequest():
			if !keep[m.Method] || refused[string(m.ID)] {
				continue
			}
			asked[string(m.ID)] = true
			stopped = stopped || m.Method == "turn/interrupt"
		case f.Dir == golden.ToServer && m.IsAnswer() && stopped:
			continue // a late answer, which nobody gives here
		case f.Dir == golden.ToClient && m.IsAnswer() && !asked[string(m.ID)]:
			continue
		}
		if len(asked) > 0 {
			list = append(list, f)
		}
		if f.Dir == golden.ToServer && m.Method == "turn/start" && !answered(frames, m.ID) {
			list = append(list, acknowledged(frames, m.ID))
		}
	}
	return list
}

// answered reports that the answer to a request was recorded.
func answered(frames []golden.Frame, id json.RawMessage) bool {
	return slices.ContainsFunc(frames, func(f golden.Frame) bool {
		m := f.Parse()
		return f.Dir == golden.ToClient && m.IsAnswer() && string(m.ID) == string(id)
	})
}

// acknowledged makes the answer to a prompt of a recording that was shortened to notifications.
func acknowledged(frames []golden.Frame, id json.RawMessage) golden.Frame {
	var started struct {
		Turn json.RawMessage `json:"turn"`
	}
	for _, f := range frames {
		if m := f.Parse(); m.Method == "turn/started" {
			_ = json.Unmarshal(m.Params, &started)
		}
	}
	b, _ := json.Marshal(obj{"id": id, "result": started})
	return golden.Frame{Dir: golden.ToClient, Msg: b}
}

func newReplay(t *testing.T, frames []golden.Frame) *replay {
	t.Helper()
	r := &replay{t: t, dir: t.TempDir(), frames: usable(frames), events: newRecorder(), seen: map[string]bool{}}
	if len(r.frames) == 0 {
		t.Fatal("the recording has no prompt")
	}
	r.thread = params[struct{ ThreadID string }](t, r.frames[0].Parse().Params).ThreadID
	return r
}

// other answers what the recording does not have.
func (r *replay) other(method string, _ json.RawMessage) golden.Answer {
	switch method {
	case "initialize":
		return ok(obj{"userAgent": "codex/0.171.0 (Linux; x86_64) t (openphone_host; 1)", "codexHome": r.dir})
	case "model/list":
		return ok(obj{"data": []any{obj{"id": "gpt-5.5", "model": "gpt-5.5", "isDefault": true, "inputModalities": []string{"text", "image"}}}})
	case "account/read":
		return ok(obj{"account": nil, "requiresOpenaiAuth": false})
	case "config/read":
		return ok(obj{"config": obj{"model": "gpt-5.5", "model_provider": "fake"}})
	case "thread/start":
		return ok(obj{
			"thread": obj{"id": r.thread, "cwd": r.dir, "status": obj{"type": "idle"}, "modelProvider": "fake"}, "model": "gpt-5.5", "modelProvider": "fake",
			"cwd": r.dir, "approvalPolicy": "on-request", "approvalsReviewer": "user", "sandbox": obj{"type": "workspaceWrite"},
			"activePermissionProfile": obj{"id": ":workspace"},
		})
	}
	return fail(-32600, "not in the recording")
}

// run plays the recording and does what its client did.
func (r *replay) run() {
	steps := make(chan int, len(r.frames)+1)
	child := newPretended()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(child.done)
		defer child.out.Close()
		s := golden.Server{Other: r.other, Reached: func(i int) { steps <- i }}
		if err := s.Play(r.frames, child.in, child.out); err != nil && !errors.Is(err, io.ErrClosedPipe) {
			r.t.Errorf("recording: %v", err)
		}
	})
	first := true
	r.agent = New(Options{
		Find: func(context.Context, string, []string) (appserver.Executable, string, error) {
			return appserver.Executable{Path: "codex"}, "0.171.0", nil
		},
		Start: func([]string, []string) (Process, error) {
			if !first {
				return nil, errors.New("only one child")
			}
			first = false
			return child, nil
		},
		Owner: noBroker{},
	})
	if err := r.agent.Watch(r.t.Context(), r.events); err != nil {
		r.t.Fatal(err)
	}
	if err := r.agent.Configure(r.t.Context(), &runtime.ConfigureRequest{InstanceID: "codex", DataDir: r.dir}, newMemoryHost()); err != nil {
		r.t.Fatal(err)
	}
	defer wg.Wait()
	defer func() { _ = r.agent.Shutdown(context.Background()) }()
	r.ref = runtime.SessionRef{SessionID: "s", ProjectPath: r.dir}
	for i := range steps {
		if i == len(r.frames) {
			break
		}
		if f := r.frames[i]; f.Dir == golden.ToServer {
			r.act(f.Parse())
		}
	}
	for _, id := range r.runs {
		if !r.open {
			r.events.ended(r.t, id)
		}
	}
}

type noBroker struct{}

func (noBroker) Discover(context.Context, string, string) Evidence { return BrokerAbsent }

// act does what the recorded client did next.
func (r *replay) act(m golden.Message) {
	r.t.Helper()
	ctx := r.t.Context()
	switch {
	case m.Method == "turn/start":
		r.send()
	case m.Method == "turn/steer":
		a, err := r.agent.SteerRun(ctx, &runtime.SteerRunRequest{Session: r.ref, RunID: r.current(), Text: "more"})
		if err != nil || a.Outcome != runtime.OutcomeDispatched {
			r.t.Errorf("steer: %+v, %v", a, err)
		}
	case m.Method == "turn/interrupt":
		a, err := r.agent.StopRun(ctx, &runtime.StopRunRequest{Session: r.ref, RunID: r.current()})
		if err != nil || a.Outcome != runtime.OutcomeDispatched {
			r.t.Errorf("stop: %+v, %v", a, err)
		}
	case m.IsAnswer():
		r.answer(m.Result)
	}
}

func (r *replay) current() string { return r.runs[len(r.runs)-1] }

func (r *replay) send() {
	r.t.Helper()
	if len(r.runs) > 0 {
		r.events.ended(r.t, r.current())
	}
	id := fmt.Sprintf("00000000-0000-4000-8000-%012d", len(r.runs)+1)
	p, err := r.agent.PrepareRun(r.t.Context(), &runtime.PrepareRunRequest{Session: r.ref, RunID: id, Input: []runtime.Part{{Text: "prompt"}}})
	if err != nil {
		r.t.Fatalf("prepare: %v", err)
	}
	r.ref = p.Session
	r.runs = append(r.runs, id)
	c, err := r.agent.CommitRun(r.t.Context(), &runtime.CommitRunRequest{RunID: id})
	if err != nil || c.Outcome != runtime.OutcomeDispatched {
		r.t.Fatalf("commit: %+v, %v", c, err)
	}
}

// answer gives the recorded decision or answers to the newest interaction, unless the plugin refuses such requests.
func (r *replay) answer(result json.RawMessage) {
	var a struct {
		Decision    json.RawMessage
		Action      string
		Permissions map[string]any
		Answers     map[string]struct{ Answers []string }
	}
	if json.Unmarshal(result, &a) != nil || a.Decision == nil && a.Action == "" && a.Permissions == nil && a.Answers == nil {
		return // an answer only a program gives
	}
	e := r.events.wait(r.t, "interaction", func(e runtime.Event) bool {
		return e.InteractionOpened != nil && !r.seen[e.InteractionOpened.InteractionID]
	}).InteractionOpened
	r.seen[e.InteractionID] = true
	q := &runtime.ResolveInteractionRequest{Session: r.ref, InteractionID: e.InteractionID, Decision: runtime.DecisionDeny}
	switch {
	case e.Question != nil:
		q.Decision, q.Answers = 0, &runtime.Answers{}
		for _, f := range e.Question.Fields {
			value := append(slices.Clone(a.Answers[f.FieldID].Answers), "red")[:1]
			q.Answers.Answers = append(q.Answers.Answers, runtime.Answer{FieldID: f.FieldID, Values: value})
		}
	case a.Action == "accept", len(a.Permissions) > 0, strings.HasPrefix(string(a.Decision), `"accept`):
		q.Decision = runtime.DecisionAllowOnce
	}
	got, err := r.agent.ResolveInteraction(r.t.Context(), q)
	if err != nil || got.Outcome != runtime.OutcomeDispatched {
		r.t.Errorf("answer: %+v, %v", got, err)
	}
}

// story is what a phone was told, in few words.
func (r *replay) story() []string {
	lines := []string{}
	status := map[string]string{}
	var tools []string
	thoughts := 0
	for _, e := range r.events.all() {
		switch {
		case e.ToolCall != nil:
			if _, known := status[e.ToolCall.CallID]; !known {
				tools = append(tools, e.ToolCall.CallID)
			}
			status[e.ToolCall.CallID] = e.ToolCall.Name + " " + e.ToolCall.Status.String()
		case e.Thought != nil:
			thoughts++
		case e.InteractionOpened != nil && e.InteractionOpened.Approval != nil:
			lines = append(lines, "asks "+e.InteractionOpened.Approval.Category.String())
		case e.InteractionOpened != nil:
			lines = append(lines, fmt.Sprintf("asks %d fields", len(e.InteractionOpened.Question.Fields)))
		case e.InteractionClosed != nil:
			lines = append(lines, "closed "+e.InteractionClosed.Closure.String())
		case e.RunEnded != nil:
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("end %s %s", e.RunEnded.Reason, e.RunEnded.Code)))
		}
	}
	for _, id := range tools {
		lines = append(lines, "tool "+status[id])
	}
	if thoughts > 0 {
		lines = append(lines, "thoughts")
	}
	for _, id := range r.runs {
		if s := textOf(r.events.all(), id); s != "" {
			lines = append(lines, fmt.Sprintf("text %q", s))
		}
	}
	return lines
}

func TestRecordingsDriveThePlugin(t *testing.T) {
	rules.Covers(t, "CX-02", "CX-10", "CX-15")
	for _, tt := range recordings {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			frames, err := golden.Load("../testdata/" + tt.file + ".jsonl")
			if err != nil {
				t.Fatal(err)
			}
			if tt.scenario != "" {
				frames = golden.Scenario(frames, tt.scenario)
			}
			r := newReplay(t, frames)
			r.open = tt.scenario == "connection-refused"
			r.run()
			if diff := cmp.Diff(tt.want, r.story()); diff != "" {
				t.Errorf("story (-want +got):\n%s", diff)
			}
			for _, e := range r.events.all() {
				if b, _ := json.Marshal(e); strings.Contains(string(b), "127.0.0.1") || strings.Contains(string(b), "sk-") {
					t.Errorf("an address or a key is told: %s", b)
				}
			}
		})
	}
}

// A resumed thread asks again what it still wants to know, under the same id; that is the same question.
func TestARepeatedRequestIsOneQuestion(t *testing.T) {
	rules.Covers(t, "CX-02", "CX-15")
	frames, err := golden.Load("../testdata/08-approval-exec-accept.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(frames, func(f golden.Frame) bool { return f.Dir == golden.ToClient && f.Parse().IsRequest() })
	r := newReplay(t, slices.Insert(frames, i, frames[i]))
	r.run()
	asked := 0
	for _, line := range r.story() {
		if line == "asks command" {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times: %q", asked, r.story())
	}
}

type recording struct {
	file     string
	scenario string
	want     []string
}
