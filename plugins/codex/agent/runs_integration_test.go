//go:build integration

package agent

import (
	"encoding/base64"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/modeltest"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func TestTextAndReasoning(t *testing.T) {
	rules.Covers(t, "CX-29")
	b := newBench(t, "")
	b.model.Add(modeltest.Script{Match: "hello", Steps: []modeltest.Step{
		modeltest.Reasoning("**Looking** ", "at it"), modeltest.Text(" Zwei\n", "\n", "  Zeilen ✅"),
	}})
	id, _ := b.send(b.session("s1"), "hello")
	end := b.sink.ended(t, id)
	if end.Reason != runtime.EndReasonCompleted {
		t.Errorf("end: %+v", end)
	}
	if got := textOf(b.sink.all(), id); got != " Zwei\n\n  Zeilen ✅" {
		t.Errorf("text %q", got)
	}
	b.sink.wait(t, "prompt's row", func(e runtime.Event) bool {
		return e.RunID == id && e.RunStarted != nil && e.RunStarted.InputMessageID != ""
	})
	b.sink.wait(t, "thought", func(e runtime.Event) bool { return e.Thought != nil })
	if n := b.model.Count("hello"); n != 1 {
		t.Errorf("model asked %d times", n)
	}
}

func TestImage(t *testing.T) {
	b := newBench(t, "")
	png, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	if err != nil {
		t.Fatal(err)
	}
	id, _, err := b.prepare(b.session("s"), runtime.Part{Text: "look"}, runtime.Part{Data: png, ContentType: "image/png"})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := b.a.CommitRun(t.Context(), &runtime.CommitRunRequest{RunID: id}); err != nil || c.Outcome != runtime.OutcomeDispatched {
		t.Fatalf("commit %+v, %v", c, err)
	}
	if end := b.sink.ended(t, id); end.Reason != runtime.EndReasonCompleted {
		t.Errorf("end %+v", end)
	}
	_, _, err = b.prepare(b.session("s"), runtime.Part{Data: []byte("<svg/>"), ContentType: "image/svg+xml"})
	if codes.Of(err) != codes.AttachmentUnsupported {
		t.Errorf("svg: %v", err)
	}
}

func TestFailedTurns(t *testing.T) {
	rules.Covers(t, "CX-10")
	b := newBench(t, "")
	refusal := `{"detail":"The 'gpt-5.5' model is not supported when using Codex with a ChatGPT account."}`
	for _, tc := range []struct {
		name string
		step modeltest.Step
		code string
	}{
		{"401", modeltest.Error(http.StatusUnauthorized, `{"error":{"message":"key sk-secret is bad"}}`), codeAuth},
		{"429", modeltest.Error(http.StatusTooManyRequests, `{"error":{"message":"slow down"}}`), codeTurn},
		{"500", modeltest.Error(http.StatusInternalServerError, `{"error":{"message":"boom"}}`), codeTurn},
		{"400 model", modeltest.Error(http.StatusBadRequest, refusal), codeModel},
		{"cut", modeltest.Cut(), codeTurn},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b.model.Add(modeltest.Script{Match: "fail " + tc.name, Steps: []modeltest.Step{tc.step}})
			id, _ := b.send(b.session("s"), "fail "+tc.name)
			end := b.sink.ended(t, id)
			if end.Reason != runtime.EndReasonFailed || end.Code != tc.code || end.Message != nil {
				t.Errorf("end %+v", end)
			}
		})
	}
}

func TestStop(t *testing.T) {
	rules.Covers(t, "CX-02")
	b := newBench(t, "")
	b.model.Add(
		modeltest.Script{Match: "talk", Steps: []modeltest.Step{modeltest.Text("one "), modeltest.Hang()}},
		modeltest.Script{Match: "work", Steps: []modeltest.Step{modeltest.Call("exec_command", `{"cmd":"sleep 60"}`)}},
	)
	for _, tc := range []struct{ prompt, kind string }{{"talk", ""}, {"work", "command"}} {
		t.Run(tc.prompt, func(t *testing.T) {
			id, ref := b.send(b.session(tc.prompt), tc.prompt)
			b.sink.wait(t, "progress", func(e runtime.Event) bool {
				return e.RunID == id && (tc.kind == "" && e.Text != nil || e.ToolCall != nil && e.ToolCall.Kind == tc.kind)
			})
			if r, err := b.a.StopRun(t.Context(), &runtime.StopRunRequest{Session: ref, RunID: id}); err != nil || r.Outcome != runtime.OutcomeDispatched {
				t.Errorf("stop %+v, %v", r, err)
			}
			if end := b.sink.ended(t, id); end.Reason != runtime.EndReasonCancelled {
				t.Errorf("end %+v", end)
			}
			r, err := b.a.StopRun(t.Context(), &runtime.StopRunRequest{Session: ref, RunID: id})
			if err != nil || r.Code != codes.RunNotActive {
				t.Errorf("stopped again: %+v, %v", r, err)
			}
		})
	}
}

func TestSteer(t *testing.T) {
	b := newBench(t, "")
	b.model.Add(
		modeltest.Script{Match: "and louder", Steps: []modeltest.Step{modeltest.Text("LOUD")}},
		modeltest.Script{Match: "sing", Steps: []modeltest.Step{modeltest.Text("la "), modeltest.Hang()}},
	)
	id, ref := b.send(b.session("s"), "sing")
	b.sink.wait(t, "text", func(e runtime.Event) bool { return e.Text != nil })
	if r, err := b.a.SteerRun(t.Context(), &runtime.SteerRunRequest{Session: ref, RunID: id, Text: "and louder"}); err != nil || r.Outcome != runtime.OutcomeDispatched {
		t.Fatalf("steer %+v, %v", r, err)
	}
	if end := b.sink.ended(t, id); end.Reason != runtime.EndReasonCompleted {
		t.Errorf("end %+v", end)
	}
	if got := textOf(b.sink.all(), id); got != "LOUD" {
		t.Errorf("the abandoned attempt is still shown: %q", got)
	}
	if r, err := b.a.SteerRun(t.Context(), &runtime.SteerRunRequest{Session: ref, RunID: id, Text: "more"}); err != nil || r.Code != codes.RunNotActive {
		t.Errorf("steering what is over: %+v, %v", r, err)
	}
}

func TestColdResume(t *testing.T) {
	rules.Covers(t, "CX-11", "CX-17", "CX-23")
	b := newBench(t, "")
	id, ref := b.send(b.session("s"), "first")
	b.sink.ended(t, id)
	b.restart()
	id, again := b.send(ref, "second")
	if again.NativeID != ref.NativeID {
		t.Errorf("thread %s became %s", ref.NativeID, again.NativeID)
	}
	if end := b.sink.ended(t, id); end.Reason != runtime.EndReasonCompleted {
		t.Errorf("end %+v", end)
	}

	// The same thread without the record that it was made here: nothing says that nobody else has it.
	b.restart()
	foreign := runtime.SessionRef{SessionID: "imported", NativeID: ref.NativeID, ProjectPath: b.project}
	if _, _, err := b.prepare(foreign, runtime.Part{Text: "third"}); codes.Of(err) != codes.OwnerUnknown {
		t.Errorf("imported thread: %v", err)
	}
	if n := b.model.Count("third"); n != 0 {
		t.Error("the model was asked")
	}
}

func TestAnotherWriter(t *testing.T) {
	rules.Covers(t, "CX-17")
	b := newBench(t, "")
	id, ref := b.send(b.session("s"), "first")
	b.sink.ended(t, id)
	first := b.a // keeps the thread loaded, idle
	b.start()
	if _, _, err := b.prepare(ref, runtime.Part{Text: "second"}); codes.Of(err) != codes.SessionInUse {
		t.Errorf("two writers: %v", err)
	}
	b.stop(first)
	id, _ = b.send(ref, "third")
	b.sink.ended(t, id)
}

func TestEmptyThreadIsMadeAgain(t *testing.T) {
	rules.Covers(t, "CX-04", "CX-05")
	b := newBench(t, "")
	ref := b.session("s")
	model := "gpt-5.6-luna"
	s, err := b.a.SetSettings(t.Context(), &runtime.SetSettingsRequest{
		Session: ref, ModelID: &model, Options: map[string]string{optThinking: "high", optPermissions: permReadOnly},
	})
	if err != nil {
		t.Fatal(err)
	}
	check := func(s *runtime.Settings) {
		t.Helper()
		values := map[string]string{}
		for _, o := range s.Options {
			if o.Value != nil {
				values[o.OptionID] = *o.Value
			}
		}
		if s.ModelID != model || values[optThinking] != "high" || values[optPermissions] != permReadOnly {
			t.Errorf("settings %s %v", s.ModelID, values)
		}
	}
	check(s)
	title := "A title"
	if _, err := b.a.UpdateSession(t.Context(), &runtime.UpdateSessionRequest{Session: ref, Title: &title}); err != nil {
		t.Fatal(err)
	}
	made := b.sink.wait(t, "thread", func(e runtime.Event) bool { return e.SessionChanged != nil }).SessionChanged.Ref
	if files, _ := filepath.Glob(filepath.Join(b.home, "sessions", "*", "*", "*", "*.jsonl")); len(files) != 0 {
		t.Errorf("a record was made: %v", files)
	}
	b.restart()
	s, err = b.a.GetSettings(t.Context(), &runtime.GetSettingsRequest{Session: made})
	if err != nil {
		t.Fatal(err)
	}
	check(s)
	id, now := b.send(made, "hello")
	if now.NativeID == made.NativeID {
		t.Error("the lost thread was used again")
	}
	b.sink.ended(t, id)
	s, err = b.a.GetSettings(t.Context(), &runtime.GetSettingsRequest{Session: now})
	if err != nil {
		t.Fatal(err)
	}
	check(s)
	b.sink.wait(t, "name", func(e runtime.Event) bool { return e.SessionChanged != nil && e.SessionChanged.Title == title })
	if e, err := b.host.GetState(t.Context(), stateKey(ref)); err != nil || e == nil || strings.Contains(string(e.Value), "hello") {
		t.Error("the record holds text of the prompt")
	}
}

func TestChildKilledInAReply(t *testing.T) {
	b := newBench(t, "")
	b.model.Add(modeltest.Script{Match: "long", Steps: []modeltest.Step{modeltest.Text("one "), modeltest.Hang()}})
	id, ref := b.send(b.session("s"), "long")
	b.sink.wait(t, "text", func(e runtime.Event) bool { return e.Text != nil })
	b.killChild()
	end := b.sink.ended(t, id)
	if end.Reason != runtime.EndReasonFailed || end.Code != codes.Interrupted {
		t.Errorf("end %+v", end)
	}
	id, _ = b.send(ref, "after")
	if end := b.sink.ended(t, id); end.Reason != runtime.EndReasonCompleted {
		t.Errorf("end %+v", end)
	}
	if n := b.model.Count("long"); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestReconcileAfterACrash(t *testing.T) {
	b := newBench(t, "")
	b.model.Add(modeltest.Script{Match: "long", Steps: []modeltest.Step{modeltest.Text("one "), modeltest.Hang()}})
	done, ref := b.send(b.session("s"), "short")
	b.sink.ended(t, done)
	long, ref := b.send(ref, "long")
	b.sink.wait(t, "text", func(e runtime.Event) bool { return e.RunID == long && e.Text != nil })
	never, _, err := b.prepare(b.session("other"), runtime.Part{Text: "never"})
	if err != nil {
		t.Fatal(err)
	}
	b.killChild()
	b.restart()
	r, err := b.a.Reconcile(t.Context(), &runtime.ReconcileRequest{Runs: []runtime.OpenRun{
		{Session: ref, RunID: done}, {Session: ref, RunID: long}, {Session: b.session("other"), RunID: never},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Runs[0]; s.Phase != runtime.RunPhaseEnded || s.End.Reason != runtime.EndReasonCompleted || s.End.Message == nil {
		t.Errorf("finished run: %+v", s)
	}
	if s := r.Runs[1]; s.Phase != runtime.RunPhaseEnded || s.End.Code != codes.Interrupted {
		t.Errorf("cut run: %+v", s)
	}
	if s := r.Runs[2]; s.Phase != runtime.RunPhaseNeverSeen {
		t.Errorf("prepared run: %+v", s)
	}
}
