//go:build integration

package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/modeltest"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// escalated is a command the sandbox is asked to let out, which needs consent.
func escalated(cmd string) modeltest.Step {
	return modeltest.CallWith("exec_command", map[string]any{
		"cmd": cmd, "sandbox_permissions": "require_escalated", "justification": "outside the sandbox",
	})
}

func allow(id string) runtime.ResolveInteractionRequest {
	return runtime.ResolveInteractionRequest{InteractionID: id, Decision: runtime.DecisionAllowOnce}
}

func deny(id string) runtime.ResolveInteractionRequest {
	return runtime.ResolveInteractionRequest{InteractionID: id, Decision: runtime.DecisionDeny}
}

func TestCommandApproval(t *testing.T) {
	rules.Covers(t, "CX-02", "CX-15")
	b := newBench(t, "")
	for _, tc := range []struct {
		name   string
		allow  bool
		status runtime.ToolStatus
	}{{"allowed", true, runtime.ToolStatusSucceeded}, {"denied", false, runtime.ToolStatusFailed}} {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(b.project, tc.name)
			b.model.Add(modeltest.Script{Match: "please " + tc.name, Steps: []modeltest.Step{
				modeltest.Text("I will."), escalated("touch " + file), modeltest.Text("Done."),
			}})
			id, ref := b.send(b.session(tc.name), "please "+tc.name)
			ask := b.sink.opened(t, id)
			ap := ask.Approval
			if ap == nil || ap.Category != runtime.ApprovalCategoryCommand || !strings.Contains(ap.Subject, "touch "+file) ||
				ap.Reason != "outside the sandbox" || ap.CallID == "" {
				t.Errorf("approval %+v", ap)
			}
			if _, err := os.Stat(file); err == nil {
				t.Error("the command ran before it was allowed")
			}
			answer := deny(ask.InteractionID)
			want := runtime.ClosureDenied
			if tc.allow {
				answer, want = allow(ask.InteractionID), runtime.ClosureAllowed
			}
			if r := b.resolve(ref, answer); r.Outcome != runtime.OutcomeDispatched {
				t.Errorf("answer %+v", r)
			}
			if r := b.resolve(ref, answer); r.Outcome != runtime.OutcomeNotDispatched || r.Code != codes.InteractionNotPending {
				t.Errorf("second answer %+v", r)
			}
			if end := b.sink.ended(t, id); end.Reason != runtime.EndReasonCompleted {
				t.Errorf("end %+v", end)
			}
			closed := b.sink.wait(t, "closing", func(e runtime.Event) bool { return e.RunID == id && e.InteractionClosed != nil })
			if closed.InteractionClosed.Closure != want {
				t.Errorf("closed %v", closed.InteractionClosed.Closure)
			}
			b.sink.wait(t, "tool's end", func(e runtime.Event) bool {
				return e.RunID == id && e.ToolCall != nil && e.ToolCall.Kind == "command" && e.ToolCall.Status == tc.status
			})
			if _, err := os.Stat(file); (err == nil) != tc.allow {
				t.Errorf("file: %v", err)
			}
		})
	}
}

func TestFileApproval(t *testing.T) {
	b := newBench(t, "")
	outside := filepath.Join(b.home, "outside.txt")
	b.model.Add(modeltest.Script{Match: "patch", Steps: []modeltest.Step{
		modeltest.Custom("apply_patch", "*** Begin Patch\n*** Add File: "+outside+"\n+hi\n+there\n*** End Patch"),
		modeltest.Text("patched"),
	}})
	id, ref := b.send(b.session("s"), "patch")
	ask := b.sink.opened(t, id)
	want := "add " + outside + "\nhi\nthere\n"
	if ask.Approval == nil || ask.Approval.Category != runtime.ApprovalCategoryFile || ask.Approval.Subject != want {
		t.Errorf("approval %+v", ask.Approval)
	}
	b.resolve(ref, allow(ask.InteractionID))
	if end := b.sink.ended(t, id); end.Reason != runtime.EndReasonCompleted {
		t.Errorf("end %+v", end)
	}
	if got, err := os.ReadFile(outside); err != nil || string(got) != "hi\nthere\n" {
		t.Errorf("file %q, %v", got, err)
	}
}

func TestPermissionsApproval(t *testing.T) {
	b := newBench(t, "")
	b.model.Add(modeltest.Script{Match: "wider", Steps: []modeltest.Step{
		modeltest.Call("request_permissions", `{"reason":"Need network","permissions":{"network":{"enabled":true}}}`),
		modeltest.Text("thanks"),
	}})
	for _, allowed := range []bool{true, false} {
		id, ref := b.send(b.session("s"), "wider")
		ask := b.sink.opened(t, id)
		if ask.Approval == nil || ask.Approval.Category != runtime.ApprovalCategoryPermissions ||
			!strings.Contains(ask.Approval.Subject, `"enabled":true`) || ask.Approval.Reason != "Need network" {
			t.Errorf("approval %+v", ask.Approval)
		}
		if allowed {
			b.resolve(ref, allow(ask.InteractionID))
		} else {
			b.resolve(ref, deny(ask.InteractionID))
		}
		if end := b.sink.ended(t, id); end.Reason != runtime.EndReasonCompleted {
			t.Errorf("end %+v", end)
		}
	}
}

// askScope is a question with two fields, answered together.
func askScope(secret bool) modeltest.Step {
	return modeltest.CallWith("request_user_input", map[string]any{"questions": []map[string]any{
		{"id": "scope", "header": "Scope", "question": "How far?", "isSecret": secret, "options": []map[string]any{
			{"label": "Small", "description": "one file"}, {"label": "Large", "description": "all"},
		}},
		{"id": "name", "header": "Name", "question": "What name?", "options": []map[string]any{
			{"label": "Alpha", "description": "a"}, {"label": "Beta", "description": "b"},
		}},
	}})
}

func (b *bench) planMode(ref runtime.SessionRef) {
	b.t.Helper()
	if _, err := b.a.SetSettings(b.t.Context(), &runtime.SetSettingsRequest{Session: ref, Options: map[string]string{optMode: "plan"}}); err != nil {
		b.t.Fatalf("plan mode: %v", err)
	}
}

func TestQuestion(t *testing.T) {
	rules.Covers(t, "CX-15")
	b := newBench(t, "")
	b.model.Add(modeltest.Script{Match: "ask me", Steps: []modeltest.Step{askScope(false), modeltest.Text("thanks")}})
	ref := b.session("s")
	b.planMode(ref)

	id, ref := b.send(ref, "ask me")
	ask := b.sink.opened(t, id)
	q := ask.Question
	if q == nil || len(q.Fields) != 2 || q.Fields[0].FieldID != "scope" || q.Fields[1].FieldID != "name" ||
		len(q.Fields[0].Options) != 2 || !q.Fields[0].AllowCustom {
		t.Fatalf("question %+v", q)
	}
	half := &runtime.Answers{Answers: []runtime.Answer{{FieldID: "scope", Values: []string{"Small"}}}}
	if r := b.resolve(ref, runtime.ResolveInteractionRequest{InteractionID: ask.InteractionID, Answers: half}); r.Code != codes.AnswerInvalid {
		t.Errorf("half an answer: %+v", r)
	}
	whole := &runtime.Answers{Answers: append(half.Answers, runtime.Answer{FieldID: "name", Values: []string{"Gamma"}})}
	b.resolve(ref, runtime.ResolveInteractionRequest{InteractionID: ask.InteractionID, Answers: whole})
	if end := b.sink.ended(t, id); end.Reason != runtime.EndReasonCompleted {
		t.Errorf("end %+v", end)
	}
	requests := b.model.Requests()
	if last, _ := json.Marshal(requests[len(requests)-1]); !strings.Contains(string(last), "Gamma") {
		t.Error("the model did not get the answer")
	}

	id, ref = b.send(ref, "ask me again")
	ask = b.sink.opened(t, id)
	if r := b.resolve(ref, runtime.ResolveInteractionRequest{InteractionID: ask.InteractionID, Cancel: true}); r.Outcome != runtime.OutcomeDispatched {
		t.Errorf("cancel %+v", r)
	}
	if end := b.sink.ended(t, id); end.Reason != runtime.EndReasonCancelled {
		t.Errorf("end %+v", end)
	}
	closed := b.sink.wait(t, "closing", func(e runtime.Event) bool { return e.RunID == id && e.InteractionClosed != nil })
	if closed.InteractionClosed.Closure != runtime.ClosureCancelled {
		t.Errorf("closed %v", closed.InteractionClosed.Closure)
	}
}
