package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// asked is a server request of turn1 in t1.
func askOf(more ...any) object {
	q := object{"threadId": "t1", "turnId": "turn1", "itemId": "i1"}
	for n := 0; n+1 < len(more); n += 2 {
		q[more[n].(string)] = more[n+1]
	}
	return q
}

func fields(secret bool) []object {
	return []object{
		{"id": "a", "header": "A", "question": "Which?", "isOther": false, "isSecret": secret, "options": []object{{"label": "x"}, {"label": "y"}}},
		{"id": "b", "header": "B", "question": "What?", "isOther": true, "options": nil},
	}
}

func form(properties object) object { return object{"type": "object", "properties": properties} }

// What can be asked, what a person sees and what Codex is told for each answer.
func TestAnswers(t *testing.T) {
	rules.Covers(t, "CX-02", "CX-15")
	allowIt := runtime.ResolveInteractionRequest{Decision: runtime.DecisionAllowOnce}
	denyIt := runtime.ResolveInteractionRequest{Decision: runtime.DecisionDeny}
	answers := func(kv ...string) runtime.ResolveInteractionRequest {
		a := &runtime.Answers{}
		for i := 0; i+1 < len(kv); i += 2 {
			a.Answers = append(a.Answers, runtime.Answer{FieldID: kv[i], Values: []string{kv[i+1]}})
		}
		return runtime.ResolveInteractionRequest{Answers: a}
	}
	command := askOf("command", "touch x", "cwd", "/p", "reason", "because")
	tool := askOf("serverName", "phone", "mode", "form", "requestedSchema", form(object{}),
		"_meta", object{"codex_approval_kind": "mcp_tool_call", "tool_name": "tap", "tool_params": object{"x": 1}})
	genuine := askOf("serverName", "phone", "mode", "form", "message", "Pick", "_meta", nil, "requestedSchema", form(object{
		"color": object{"type": "string", "enum": []string{"red", "blue"}}, "count": object{"type": "integer"}, "sure": object{"type": "boolean"},
	}))
	permissions := askOf("permissions", object{"network": object{"enabled": true}, "fileSystem": nil})

	for _, tc := range []struct {
		name    string
		method  string
		ask     object
		answer  runtime.ResolveInteractionRequest
		want    string // native answer
		closure runtime.Closure
	}{
		{"command allowed", "item/commandExecution/requestApproval", command, allowIt, `{"decision":"accept"}`, runtime.ClosureAllowed},
		{"command denied", "item/commandExecution/requestApproval", command, denyIt, `{"decision":"decline"}`, runtime.ClosureDenied},
		{"network allowed", "item/commandExecution/requestApproval", askOf("networkApprovalContext", object{"host": "example.org", "protocol": "https"}), allowIt, `{"decision":"accept"}`, runtime.ClosureAllowed},
		{"file allowed", "item/fileChange/requestApproval", askOf("itemId", "f1"), allowIt, `{"decision":"accept"}`, runtime.ClosureAllowed},
		{"file denied", "item/fileChange/requestApproval", askOf("itemId", "f1"), denyIt, `{"decision":"decline"}`, runtime.ClosureDenied},
		{"permissions allowed", "item/permissions/requestApproval", permissions, allowIt, `{"permissions":{"network":{"enabled":true}},"scope":"turn"}`, runtime.ClosureAllowed},
		{"permissions denied", "item/permissions/requestApproval", permissions, denyIt, `{"permissions":{},"scope":"turn"}`, runtime.ClosureDenied},
		{"tool allowed", "mcpServer/elicitation/request", tool, allowIt, `{"_meta":null,"action":"accept","content":null}`, runtime.ClosureAllowed},
		{"tool denied", "mcpServer/elicitation/request", tool, denyIt, `{"_meta":null,"action":"decline","content":null}`, runtime.ClosureDenied},
		{"question answered", "item/tool/requestUserInput", askOf("questions", fields(false)), answers("a", "x", "b", "own words"), `{"answers":{"a":{"answers":["x"]},"b":{"answers":["own words"]}}}`, runtime.ClosureAnswered},
		{"form answered", "mcpServer/elicitation/request", genuine, answers("color", "red", "count", "3", "sure", "true"), `{"_meta":null,"action":"accept","content":{"color":"red","count":3,"sure":true}}`, runtime.ClosureAnswered},
		{"form cancelled", "mcpServer/elicitation/request", genuine, runtime.ResolveInteractionRequest{Cancel: true}, `{"_meta":null,"action":"cancel","content":null}`, runtime.ClosureCancelled},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := newUnit(t)
			ref := u.begin("r1")
			u.notify("item/started", item("fileChange", "f1", "status", "inProgress", "changes", []object{{"path": "/p/a", "kind": object{"type": "update"}, "diff": "@@ -1 +1 @@\n-a\n+b\n"}}))
			u.ask(0, tc.method, tc.ask)
			opened := u.sink.opened(t, "r1")
			if a := opened.Approval; a != nil && (a.Subject == "" || a.Category == runtime.ApprovalCategoryFile && a.Subject != "update /p/a\n@@ -1 +1 @@\n-a\n+b\n") {
				t.Errorf("subject %q", a.Subject)
			}
			// The same request again, as after a resume, is the same interaction.
			u.ask(0, tc.method, tc.ask)
			tc.answer.Session, tc.answer.InteractionID = ref, opened.InteractionID
			r, err := u.a.ResolveInteraction(t.Context(), &tc.answer)
			if err != nil || r.Outcome != runtime.OutcomeDispatched {
				t.Fatalf("%+v, %v", r, err)
			}
			if r, _ := u.a.ResolveInteraction(t.Context(), &tc.answer); r.Outcome != runtime.OutcomeNotDispatched || r.Code != codes.InteractionNotPending {
				t.Errorf("again: %+v", r)
			}
			var native struct {
				ID     *int            `json:"id"`
				Result json.RawMessage `json:"result"`
			}
			if err := json.Unmarshal(u.wait("answer", 1), &native); err != nil || native.ID == nil || *native.ID != 0 {
				t.Fatalf("answer %s", u.wait("answer", 1))
			}
			if d := cmp.Diff(tc.want, string(native.Result)); d != "" {
				t.Error(d)
			}
			u.notify("serverRequest/resolved", object{"threadId": "t1", "requestId": 0})
			closed := u.sink.wait(t, "closing", func(e runtime.Event) bool { return e.InteractionClosed != nil }).InteractionClosed
			if closed.Closure != tc.closure || closed.InteractionID != opened.InteractionID {
				t.Errorf("closed %+v", closed)
			}
			n := 0
			for _, e := range u.sink.all() {
				if e.InteractionOpened != nil {
					n++
				}
			}
			if n != 1 || u.count("answer") != 1 {
				t.Errorf("%d interactions, %d answers", n, u.count("answer"))
			}
		})
	}
}

// What cannot be shown whole is refused in the way that fails closed, and never shown.
func TestRefusedRequests(t *testing.T) {
	rules.Covers(t, "CX-02", "CX-15")
	many := make([]object, maxQuestions+1)
	for i := range many {
		many[i] = object{"id": string(rune('a' + i)), "question": "?"}
	}
	for _, tc := range []struct {
		name, method string
		ask          object
		want         string // in the native answer; "interrupt": the turn is stopped instead
		notice       string
	}{
		{"secret", "item/tool/requestUserInput", askOf("questions", fields(true)), "interrupt", codeSecret},
		{"too many questions", "item/tool/requestUserInput", askOf("questions", many), "interrupt", codeAsk},
		{"no questions", "item/tool/requestUserInput", askOf(), "interrupt", codeAsk},
		{"input to a process", "item/commandExecution/requestApproval", askOf("kind", "writeStdin", "command", "x"), `"decline"`, codeAsk},
		{"no command", "item/commandExecution/requestApproval", askOf(), `"decline"`, codeAsk},
		{"endless command", "item/commandExecution/requestApproval", askOf("command", strings.Repeat("x", maxSubject+1)), `"decline"`, codeAsk},
		{"unknown file change", "item/fileChange/requestApproval", askOf("itemId", "other"), `"decline"`, codeAsk},
		{"root of files", "item/fileChange/requestApproval", askOf("itemId", "f1", "grantRoot", "/"), `"decline"`, codeAsk},
		{"no permissions", "item/permissions/requestApproval", askOf(), `"permissions":{}`, codeAsk},
		{"web page", "mcpServer/elicitation/request", askOf("mode", "url", "message", "go"), `"decline"`, codeAsk},
		{"password", "mcpServer/elicitation/request", askOf("mode", "form", "requestedSchema", form(object{"p": object{"type": "string", "format": "password"}})), `"decline"`, codeAsk},
		{"nested form", "mcpServer/elicitation/request", askOf("mode", "form", "requestedSchema", form(object{"p": object{"type": "object"}})), `"decline"`, codeAsk},
		{"dynamic tool", "item/tool/call", askOf("tool", "x"), `-32601`, ""},
		{"login", "account/chatgptAuthTokens/refresh", object{}, `-32601`, ""},
		{"another thread", "item/commandExecution/requestApproval", object{"threadId": "other", "command": "x"}, `-32601`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := newUnit(t)
			u.begin("r1")
			u.notify("item/started", item("fileChange", "f1", "status", "inProgress", "changes", []object{{"path": "/p/a", "diff": "x"}}))
			u.ask(0, tc.method, tc.ask)
			if tc.want == "interrupt" {
				if p := string(u.wait("turn/interrupt", 1)); !strings.Contains(p, `"turn1"`) || u.count("answer") != 0 {
					t.Errorf("interrupt %s, %d answers", p, u.count("answer"))
				}
			} else if got := string(u.wait("answer", 1)); !strings.Contains(got, tc.want) || !strings.Contains(got, `"id":0`) {
				t.Errorf("answer %s", got)
			}
			if tc.notice != "" {
				u.sink.wait(t, "notice", func(e runtime.Event) bool { return e.Notice != nil && e.Notice.Code == tc.notice })
			}
			for _, e := range u.sink.all() {
				if e.InteractionOpened != nil {
					t.Error("it was shown")
				}
			}
		})
	}
}

// Dismissal of a question is no answer: the turn is stopped, and the question stays until the turn is over.
func TestCancelledQuestion(t *testing.T) {
	rules.Covers(t, "CX-15")
	u := newUnit(t)
	ref := u.begin("r1")
	u.ask(0, "item/tool/requestUserInput", askOf("questions", fields(false)))
	opened := u.sink.opened(t, "r1")
	bad := &runtime.Answers{Answers: []runtime.Answer{{FieldID: "a", Values: []string{"not listed"}}, {FieldID: "b", Values: []string{"x"}}}}
	r, err := u.a.ResolveInteraction(t.Context(), &runtime.ResolveInteractionRequest{Session: ref, InteractionID: opened.InteractionID, Answers: bad})
	if err != nil || r.Code != codes.AnswerInvalid {
		t.Errorf("unlisted answer %+v, %v", r, err)
	}
	r, err = u.a.ResolveInteraction(t.Context(), &runtime.ResolveInteractionRequest{Session: ref, InteractionID: opened.InteractionID, Cancel: true})
	if err != nil || r.Outcome != runtime.OutcomeDispatched {
		t.Fatalf("%+v, %v", r, err)
	}
	u.wait("turn/interrupt", 1)
	if n := u.count("answer"); n != 0 {
		t.Errorf("%d answers were given", n)
	}
	rec, err := u.a.Reconcile(t.Context(), &runtime.ReconcileRequest{})
	if err != nil || len(rec.Interactions) != 1 {
		t.Errorf("it is no longer open: %+v, %v", rec, err)
	}
	u.notify("turn/completed", u.turn("turn1", "interrupted"))
	u.sink.ended(t, "r1")
	got := kinds(u.sink.all())
	if d := cmp.Diff([]string{"closed:cancelled", "ended:cancelled:"}, got[len(got)-2:]); d != "" {
		t.Error(d)
	}
}

// The end of a turn, and of the child, retires what it asked, before the run ends.
func TestAsksEndWithTheirTurn(t *testing.T) {
	rules.Covers(t, "CX-02")
	u := newUnit(t)
	ref := u.begin("r1")
	for id := range 3 {
		u.ask(id, "item/commandExecution/requestApproval", askOf("command", "x"))
	}
	u.sink.wait(t, "third", func(e runtime.Event) bool {
		return e.InteractionOpened != nil && strings.HasSuffix(e.InteractionOpened.InteractionID, ":2")
	})
	u.notify("turn/completed", u.turn("turn1", "interrupted"))
	u.sink.ended(t, "r1")
	got := kinds(u.sink.all())
	if d := cmp.Diff([]string{"closed:expired", "closed:expired", "closed:expired", "ended:cancelled:"}, got[len(got)-4:]); d != "" {
		t.Error(d)
	}
	r, err := u.a.ResolveInteraction(t.Context(), &runtime.ResolveInteractionRequest{
		Session: ref, InteractionID: "turn1:0", Decision: runtime.DecisionAllowOnce,
	})
	if err != nil || r.Code != codes.InteractionNotPending || u.count("answer") != 0 {
		t.Errorf("late consent %+v, %v", r, err)
	}
}

func TestTooManyAsks(t *testing.T) {
	u := newUnit(t)
	u.begin("r1")
	for id := range maxConcurrent + 1 {
		u.ask(id, "item/commandExecution/requestApproval", askOf("command", "x"))
	}
	if got := string(u.wait("answer", 1)); !strings.Contains(got, `"decline"`) || !strings.Contains(got, `"id":32`) {
		t.Errorf("answer %s", got)
	}
}
