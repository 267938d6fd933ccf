package agent

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/golden"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func delta(text string) object {
	return object{"threadId": "t1", "turnId": "turn1", "itemId": "m1", "delta": text}
}

func item(kind, id string, more ...any) object {
	i := object{"id": id, "type": kind}
	for n := 0; n+1 < len(more); n += 2 {
		i[more[n].(string)] = more[n+1]
	}
	return object{"threadId": "t1", "turnId": "turn1", "item": i}
}

// A whole turn may be over before the answer to turn/start is read.
func TestTerminalBeforeTheAcknowledgement(t *testing.T) {
	rules.Covers(t, "CX-18")
	u := newUnit(t)
	u.on("turn/start", func(json.RawMessage) golden.Answer {
		u.notify("turn/completed", object{"threadId": "t1", "turn": object{"id": "older", "status": "completed"}})
		u.notify("turn/started", u.turn("turn1", "inProgress"))
		u.notify("item/agentMessage/delta", delta("fast"))
		u.notify("item/completed", item("agentMessage", "m1", "text", "fast"))
		u.notify("turn/completed", u.turn("turn1", "completed"))
		return golden.Answer{Result: object{"turn": object{"id": "turn1", "status": "inProgress"}}}
	})
	ref, err := u.prepare(u.ref(""), "r1")
	if err != nil {
		t.Fatal(err)
	}
	c, err := u.a.CommitRun(t.Context(), &runtime.CommitRunRequest{RunID: "r1"})
	if err != nil || c.Outcome != runtime.OutcomeDispatched || c.NativeRunID != "turn1" {
		t.Fatalf("commit %+v, %v", c, err)
	}
	if end := u.sink.ended(t, "r1"); end.Reason != runtime.EndReasonCompleted {
		t.Errorf("end %+v", end)
	}
	if got := textOf(u.sink.all(), "r1"); got != "fast" {
		t.Errorf("text %q", got)
	}
	ends := 0
	for _, e := range u.sink.all() {
		if e.RunEnded != nil {
			ends++
		}
	}
	if ends != 1 || u.count("turn/start") != 1 {
		t.Errorf("%d ends, %d dispatches", ends, u.count("turn/start"))
	}
	if _, err := u.prepare(ref, "r2"); err != nil {
		t.Errorf("the conversation stays busy: %v", err)
	}
}

// Without an answer the outcome is unknown; the user message with the run's own id names the turn.
func TestMissingAcknowledgement(t *testing.T) {
	rules.Covers(t, "CX-02", "CX-29")
	u := newUnit(t)
	u.on("turn/start", func(params json.RawMessage) golden.Answer {
		var p struct {
			ClientID string `json:"clientUserMessageId"`
		}
		if json.Unmarshal(params, &p) != nil || p.ClientID != "r1" {
			t.Errorf("turn/start %s", params)
		}
		u.notify("turn/started", u.turn("turn1", "inProgress"))
		u.notify("item/started", item("userMessage", "um", "clientId", "r1"))
		u.notify("item/agentMessage/delta", delta("there"))
		u.process.Kill() // the answer is never written
		return golden.Answer{Result: object{}}
	})
	u.on("thread/turns/list", func(json.RawMessage) golden.Answer {
		return golden.Answer{Result: object{"data": []object{{"id": "turn1", "status": "interrupted", "items": []object{}}}}}
	})
	if _, err := u.prepare(u.ref(""), "r1"); err != nil {
		t.Fatal(err)
	}
	c, err := u.a.CommitRun(t.Context(), &runtime.CommitRunRequest{RunID: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Outcome == runtime.OutcomeNotDispatched {
		t.Errorf("commit %+v", c)
	}
	if end := u.sink.ended(t, "r1"); end.Reason != runtime.EndReasonFailed || end.Code != codes.Interrupted {
		t.Errorf("end %+v", end)
	}
	if n := u.count("turn/start"); n != 1 {
		t.Errorf("%d dispatches", n)
	}
	u.sink.wait(t, "identity", func(e runtime.Event) bool { return e.RunStarted != nil && e.RunStarted.InputMessageID == "um" })
}

func TestCommitRefusals(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(u *unit)
		code string
	}{
		{"turn refused", func(u *unit) {
			u.on("turn/start", func(json.RawMessage) golden.Answer { return fail(-32600, "thread not found: t1") })
		}, codes.SessionLost},
		{"permissions changed meanwhile", func(u *unit) {
			u.notify("thread/settings/updated", u.settings("t1", ":danger-full-access"))
			u.sink.wait(u.t, "settings", func(e runtime.Event) bool { return e.SettingsChanged != nil })
		}, codes.PermissionsNotRestored},
		{"another turn began meanwhile", func(u *unit) {
			u.notify("turn/started", object{"threadId": "t1", "turn": object{"id": "other", "status": "inProgress"}})
			u.sink.wait(u.t, "foreign run", func(e runtime.Event) bool { return e.RunID == "codex:other" })
		}, codes.RunActive},
		{"state not writable", func(u *unit) {
			u.host.mu.Lock()
			defer u.host.mu.Unlock()
			u.host.fail = codes.New(codes.StateFull)
		}, codes.RunNotDispatched},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := newUnit(t)
			u.status(runtime.ConditionReady, "") // the catalog is known
			if _, err := u.prepare(u.ref(""), "r1"); err != nil {
				t.Fatal(err)
			}
			tc.do(u)
			c, err := u.a.CommitRun(t.Context(), &runtime.CommitRunRequest{RunID: "r1"})
			if err != nil || c.Outcome != runtime.OutcomeNotDispatched || c.Code != tc.code {
				t.Errorf("commit %+v, %v", c, err)
			}
			if tc.name != "turn refused" && u.count("turn/start") != 0 {
				t.Error("the prompt was sent")
			}
			for _, e := range u.sink.all() {
				if e.RunID == "r1" {
					t.Errorf("a run that was not dispatched has events: %v", kinds(u.sink.all()))
				}
			}
		})
	}
}

// A caller that is gone before the prompt was handed over does not get it sent.
func TestCommitOfAnAbsentCaller(t *testing.T) {
	u := newUnit(t)
	if _, err := u.prepare(u.ref(""), "r1"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c, err := u.a.CommitRun(ctx, &runtime.CommitRunRequest{RunID: "r1"})
	if err != nil || c.Outcome != runtime.OutcomeNotDispatched {
		t.Errorf("commit %+v, %v", c, err)
	}
	if end := u.sink.ended(t, "r1"); end.Code != codes.RunNotDispatched || u.count("turn/start") != 0 {
		t.Errorf("end %+v, %d dispatches", end, u.count("turn/start"))
	}
}

// What Codex drops it takes back, what it corrects is corrected, and what never completes is closed at the end.
func TestStreamRepairs(t *testing.T) {
	u := newUnit(t)
	u.begin("r1")
	u.notify("item/started", item("agentMessage", "m0", "text", ""))
	u.notify("item/agentMessage/delta", object{"threadId": "t1", "turnId": "turn1", "itemId": "m0", "delta": "lost attempt"})
	u.notify("error", object{"threadId": "t1", "turnId": "turn1", "willRetry": true, "error": object{"message": "Reconnecting... 1/5"}})
	u.notify("error", object{"threadId": "t1", "turnId": "turn1", "willRetry": true, "error": object{"message": "Reconnecting... waiting for network"}})
	u.notify("item/started", item("agentMessage", "m1", "text", ""))
	u.notify("item/agentMessage/delta", delta(" a"))
	u.notify("item/agentMessage/delta", delta("\n "))
	u.notify("item/completed", item("agentMessage", "m1", "text", " a\n b"))
	u.notify("item/started", item("commandExecution", "c1", "status", "inProgress", "command", "x"))
	u.notify("item/commandExecution/outputDelta", object{"threadId": "t1", "turnId": "turn1", "itemId": "c1", "delta": "line 2\n"})
	u.notify("item/completed", item("commandExecution", "c1", "status", "completed", "command", "x", "exitCode", 0, "aggregatedOutput", "line 1\nline 2\n"))
	u.notify("item/started", item("commandExecution", "c2", "status", "inProgress", "command", "y"))
	u.notify("thread/status/changed", object{"threadId": "t1", "status": object{"type": "idle"}})
	u.notify("turn/completed", u.turn("turn1", "incomplete"))
	u.notify("turn/completed", u.turn("turn1", 7))
	u.notify("turn/completed", u.turn("turn1", "completed", "durationMs", "odd", "items", []any{object{"id": 5, "type": true}}))
	u.sink.ended(t, "r1")

	if got := textOf(u.sink.all(), "r1"); got != " a\n b" {
		t.Errorf("text %q", got)
	}
	var output string
	for _, e := range u.sink.all() {
		if e.ToolCall != nil && e.ToolCall.CallID == "c1" && e.ToolCall.Output.Data != nil {
			output = string(e.ToolCall.Output.Data)
		}
	}
	if output != "line 1\nline 2\n" {
		t.Errorf("output %q", output)
	}
	got := kinds(u.sink.all())
	want := []string{"notice:retrying", "notice:waiting_for_network", "tool:unknown", "ended:completed:"}
	var kept []string
	for _, k := range got {
		if strings.HasPrefix(k, "notice") || k == "tool:unknown" || strings.HasPrefix(k, "ended") {
			kept = append(kept, k)
		}
	}
	if d := cmp.Diff(want, kept); d != "" {
		t.Error(d)
	}
}

// Two turns of other programs or of Codex' own queue are runs of their own.
func TestForeignTurn(t *testing.T) {
	u := newUnit(t)
	ref := u.begin("r1")
	u.notify("turn/completed", u.turn("turn1", "completed"))
	u.sink.ended(t, "r1")
	u.notify("turn/started", object{"threadId": "t1", "turn": object{"id": "turn2", "status": "inProgress"}})
	u.sink.wait(t, "run", func(e runtime.Event) bool { return e.RunID == "codex:turn2" && e.RunStarted != nil })
	if _, err := u.prepare(ref, "r2"); codes.Of(err) != codes.RunActive {
		t.Errorf("prepare beside it: %v", err)
	}
	u.notify("turn/completed", object{"threadId": "t1", "turn": object{"id": "turn2", "status": "completed"}})
	u.sink.ended(t, "codex:turn2")
}

func TestStopBeforeTheTurnHasAName(t *testing.T) {
	u := newUnit(t)
	release := make(chan struct{})
	u.on("turn/start", func(json.RawMessage) golden.Answer {
		<-release
		return golden.Answer{Result: object{"turn": object{"id": "turn1", "status": "inProgress"}}}
	})
	ref, err := u.prepare(u.ref(""), "r1")
	if err != nil {
		t.Fatal(err)
	}
	committed := make(chan struct{})
	go func() {
		defer close(committed)
		_, _ = u.a.CommitRun(t.Context(), &runtime.CommitRunRequest{RunID: "r1"})
	}()
	u.wait("turn/start", 1)
	s, err := u.a.StopRun(t.Context(), &runtime.StopRunRequest{Session: ref, RunID: "r1"})
	if err != nil || s.Outcome != runtime.OutcomeDispatched {
		t.Errorf("stop %+v, %v", s, err)
	}
	close(release)
	<-committed
	if p := string(u.wait("turn/interrupt", 1)); !strings.Contains(p, `"turn1"`) {
		t.Errorf("interrupt %s", p)
	}
	if n := len(u.sink.all()); n > 0 && u.sink.all()[n-1].RunEnded != nil {
		t.Error("an acknowledged stop ended the run")
	}
	u.notify("turn/completed", u.turn("turn1", "interrupted"))
	if end := u.sink.ended(t, "r1"); end.Reason != runtime.EndReasonCancelled {
		t.Errorf("end %+v", end)
	}
}

func TestReconcileAnswers(t *testing.T) {
	u := newUnit(t)
	u.remembered(record{Thread: "t1", Created: true, HandedOver: []string{"acked", "written"}})
	u.on("thread/turns/list", func(json.RawMessage) golden.Answer {
		return golden.Answer{Result: object{"data": []object{
			{"id": "failed", "status": "failed", "error": object{"message": "x", "codexErrorInfo": "unauthorized"}},
			{"id": "stopped", "status": "interrupted", "completedAt": 5},
			{"id": "cut", "status": "interrupted"},
		}}}
	})
	type answer struct {
		Phase  runtime.RunPhase
		Reason runtime.EndReason
		Code   string
	}
	for _, tc := range []struct {
		name string
		run  runtime.OpenRun
		want answer
	}{
		{"never written", runtime.OpenRun{RunID: "never"}, answer{Phase: runtime.RunPhaseNeverSeen}},
		{"refused", runtime.OpenRun{RunID: "acked", Outcome: runtime.OutcomeNotDispatched}, answer{Phase: runtime.RunPhaseNeverSeen}},
		{"written, no trace", runtime.OpenRun{RunID: "written"}, answer{}},
		{"acknowledged, no trace", runtime.OpenRun{RunID: "acked", NativeRunID: "gone", Outcome: runtime.OutcomeDispatched}, answer{}},
		{"failed", runtime.OpenRun{RunID: "acked", NativeRunID: "failed"}, answer{runtime.RunPhaseEnded, runtime.EndReasonFailed, codeAuth}},
		{"ended with its process", runtime.OpenRun{RunID: "acked", NativeRunID: "stopped"}, answer{runtime.RunPhaseEnded, runtime.EndReasonFailed, codes.Interrupted}},
		{"cut", runtime.OpenRun{RunID: "acked", NativeRunID: "cut"}, answer{runtime.RunPhaseEnded, runtime.EndReasonFailed, codes.Interrupted}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.run.Session = u.ref("t1")
			r, err := u.a.Reconcile(t.Context(), &runtime.ReconcileRequest{Runs: []runtime.OpenRun{tc.run}})
			if err != nil {
				t.Fatal(err)
			}
			got := answer{Phase: r.Runs[0].Phase}
			if e := r.Runs[0].End; e != nil {
				got.Reason, got.Code = e.Reason, e.Code
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
	if n := u.count("thread/resume") + u.count("turn/start"); n != 0 {
		t.Error("something was started")
	}
}

// A conversation whose only prompt left no trace anywhere is empty again; in every doubt it keeps its thread.
func TestForgottenThread(t *testing.T) {
	rules.Covers(t, "CX-04")
	for _, tc := range []struct {
		name    string
		prompts []string // handed over
		read    golden.Answer
		file    bool
		code    string
	}{
		{"no record", []string{"r1"}, fail(-32600, "thread not loaded: t0"), false, ""},
		{"a prompt before it", []string{"r0", "r1"}, fail(-32600, "thread not loaded: t0"), false, codes.SessionLost},
		{"a file of its name", []string{"r1"}, fail(-32600, "thread not loaded: t0"), true, codes.SessionLost},
		{"no clear answer", []string{"r1"}, fail(-32603, "busy"), false, codes.RuntimeUnavailable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := newUnit(t)
			u.remembered(record{Thread: "t0", Created: true, HandedOver: tc.prompts, Model: "gpt-6-luna"})
			if tc.file {
				u.rollout("{}\n")
				dir := filepath.Join(u.home, "sessions")
				if err := os.Rename(filepath.Join(dir, "rollout-t1.jsonl"), filepath.Join(dir, "rollout-t0.jsonl")); err != nil {
					t.Fatal(err)
				}
			}
			u.on("thread/turns/list", func(json.RawMessage) golden.Answer { return fail(-32600, "no rollout found for thread id t0") })
			u.on("thread/read", func(json.RawMessage) golden.Answer { return tc.read })
			open := runtime.OpenRun{Session: u.ref("t0"), RunID: "r1", NativeRunID: "x", Outcome: runtime.OutcomeDispatched}
			r, err := u.a.Reconcile(t.Context(), &runtime.ReconcileRequest{Runs: []runtime.OpenRun{open}})
			if err != nil || r.Runs[0].Phase != runtime.RunPhaseUnspecified {
				t.Errorf("%+v, %v", r, err)
			}
			ref, err := u.prepare(u.ref("t0"), "r2")
			if codes.Of(err) != tc.code {
				t.Fatalf("%v", err)
			}
			if tc.code == "" && (ref.NativeID != "t1" || !strings.Contains(string(u.wait("thread/start", 1)), "gpt-6-luna")) {
				t.Errorf("thread %s, %s", ref.NativeID, u.wait("thread/start", 1))
			}
			if tc.code != "" && u.count("thread/start") != 0 {
				t.Error("a new thread took its place")
			}
		})
	}
}

func TestDrain(t *testing.T) {
	u := newUnit(t)
	u.begin("r1")
	d, err := u.a.Drain(t.Context(), &runtime.DrainRequest{})
	if err != nil || len(d.RunIds) != 1 {
		t.Fatalf("drain %+v, %v", d, err)
	}
	if _, err := u.prepare(u.ref("t1"), "r2"); codes.Of(err) != codes.Draining {
		t.Errorf("prepare: %v", err)
	}
	u.notify("turn/completed", u.turn("turn1", "completed"))
	u.sink.ended(t, "r1")
	if d, _ = u.a.Drain(t.Context(), &runtime.DrainRequest{}); len(d.RunIds) != 0 {
		t.Errorf("drain %+v", d)
	}
}

func TestPrompt(t *testing.T) {
	image := runtime.Part{Data: []byte{1}, ContentType: "image/png"}
	for _, tc := range []struct {
		name  string
		parts []runtime.Part
		code  string
	}{
		{"text and image", []runtime.Part{{Text: "x"}, image}, ""},
		{"nothing", nil, codes.PromptEmpty},
		{"too long", []runtime.Part{{Text: strings.Repeat("x", maxTextUnits+1)}}, codes.PromptTooLong},
		{"not an image", []runtime.Part{{Data: []byte{1}, ContentType: "image/svg+xml"}}, codes.AttachmentUnsupported},
		{"empty image", []runtime.Part{{Data: []byte{}, ContentType: "image/png"}}, codes.AttachmentMalformed},
		{"seven", []runtime.Part{image, image, image, image, image, image, image}, codes.AttachmentsTooMany},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := prompt(tc.parts); codes.Of(err) != tc.code {
				t.Errorf("%v", err)
			}
		})
	}
}
