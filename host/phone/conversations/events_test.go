package conversations

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openphone-host/openphone/host/sessions"
	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// run is an update about a run that has all identity there is.
func run(kind sessions.UpdateKind) sessions.Update {
	return sessions.Update{Kind: kind, SessionKey: "s", RunID: "r", NativeRunID: "turn", InputMessageID: "u", InputKey: "k", At: noon}
}

func interaction(kind sessions.UpdateKind, i runtime.Interaction) sessions.Update {
	u := run(kind)
	u.Interaction = &sessions.OpenInteraction{SessionKey: "s", RunID: "r", Request: i}
	return u
}

var (
	anApproval = runtime.Interaction{InteractionID: "a1", Approval: &runtime.Approval{Category: runtime.ApprovalCategoryCommand, Subject: "rm -r build", Reason: "clean", WorkingDirectory: "/w"}}
	aQuestion  = runtime.Interaction{InteractionID: "q1", Question: &runtime.Question{Title: "Which?", Fields: []runtime.Field{{FieldID: "f", Kind: runtime.FieldKindSelect, Title: "Pick", Options: []runtime.FieldOption{{Label: "x", Description: "d"}, {Label: "y"}}}}}}
)

func TestEventsOfEachBackend(t *testing.T) {
	chunk := run(sessions.TextChunk)
	chunk.Text, chunk.Appends, chunk.FullText = " b\n", true, "a b\n"
	part := chunk
	part.StartsPart = true
	replaced := chunk
	replaced.Appends = false
	thought := run(sessions.ThoughtChunk)
	thought.Text, thought.Appends = "hm", true
	tool := run(sessions.ToolCalled)
	tool.FirstOfCall = true
	tool.Tool = &runtime.ToolCall{CallID: "c1", Name: "exec", Kind: "command", Input: runtime.JSON([]byte(`{"cmd":"ls"}`)), StartedAt: noon}
	result := run(sessions.ToolCalled)
	result.Tool = &runtime.ToolCall{CallID: "c1", Name: "exec", Status: runtime.ToolStatusSucceeded, Output: runtime.Payload{ContentType: "text/plain", Data: []byte("out\n")}, StartedAt: noon, FinishedAt: noon.Add(time.Second), Duration: time.Second}
	atOnce := result
	atOnce.FirstOfCall = true
	end := run(sessions.RunFinished)
	end.End = &sessions.RunEnd{Reason: runtime.EndReasonCompleted, UnappliedInput: "more", Message: &sessions.HistoryMessage{
		Message: runtime.Message{Parts: []runtime.Part{{Text: "Hello"}}, ModelID: "m", CreatedAt: noon}, Files: []sessions.ArtifactRef{{ID: "file_1", MIME: "text/plain", Name: "f"}}, Converted: true, DisplayText: "Hel",
	}}
	failed := run(sessions.RunFinished)
	failed.End = &sessions.RunEnd{Reason: runtime.EndReasonFailed, Code: codes.RunFailed, NoticeText: "It failed."}
	lost := failed
	lost.NativeRunID = ""
	lost.End = &sessions.RunEnd{Code: codes.OutcomeUnknown}
	cancelled := run(sessions.RunFinished)
	cancelled.End = &sessions.RunEnd{Reason: runtime.EndReasonCancelled}
	cut := run(sessions.RunFinished)
	cut.End = &sessions.RunEnd{Reason: runtime.EndReasonLimitReached}
	notice := func(s runtime.Severity, code, text string) sessions.Update {
		u := run(sessions.NoticeRaised)
		u.Notice = &sessions.Notice{Severity: s, Code: code, Text: text}
		return u
	}
	attention := run(sessions.AttentionChanged)
	attention.Attention = runtime.AttentionKindInput
	none := run(sessions.AttentionChanged)
	allowed, denied, gone := interaction(sessions.InteractionClosed, anApproval), interaction(sessions.InteractionClosed, anApproval), interaction(sessions.InteractionClosed, anApproval)
	allowed.Closure, denied.Closure, gone.Closure = runtime.ClosureAllowed, runtime.ClosureDenied, runtime.ClosureExpired
	unknown := codes.Lookup(codes.OutcomeUnknown).Message
	const theApproval = `{"kind":"exec","id":"a1","command":"rm -r build","category":"command","reason":"clean","cwd":"/w","decisions":["allow-once","deny"],"expiresAtMs":null}`
	const theForm = `{"id":"q1","kind":"form","title":"Which?","expiresAtMs":null,"fields":[{"id":"f","title":"Pick","options":[{"label":"x","description":"d"},{"label":"y"}],"allowCustom":false}]}`

	for _, c := range []struct {
		name   string
		update sessions.Update
		codex  string // events, one a line
		claude string
		pi     string
	}{
		{
			"start", run(sessions.RunStarted),
			`{"type":"run_started","sessionKey":"s","runId":"r","turnId":"turn","inputMessageId":"u","inputMessageKey":"k"}`,
			`{"type":"run_started","sessionKey":"s","runId":"r"}`, `=`,
		},
		{
			"text", chunk,
			`{"type":"agent_message_chunk","sessionKey":"s","runId":"r","turnId":"turn","inputMessageId":"u","inputMessageKey":"k","text":"a b\n","textMode":"snapshot","timestampMs":1700000000000}`,
			`{"type":"agent_message_chunk","sessionKey":"s","runId":"r","text":" b\n","textMode":"delta","timestampMs":1700000000000}`, `=`,
		},
		{
			"text of a new part", part,
			`{"type":"agent_message_chunk","sessionKey":"s","runId":"r","turnId":"turn","inputMessageId":"u","inputMessageKey":"k","text":"a b\n","textMode":"snapshot","timestampMs":1700000000000}`,
			`{"type":"agent_message_chunk","sessionKey":"s","runId":"r","text":"\n\n b\n","textMode":"delta","timestampMs":1700000000000}`, `=`,
		},
		{
			"replaced text", replaced,
			`{"type":"agent_message_chunk","sessionKey":"s","runId":"r","turnId":"turn","inputMessageId":"u","inputMessageKey":"k","text":"a b\n","textMode":"snapshot","timestampMs":1700000000000}`,
			``, `=`,
		},
		{
			"thought", thought, `{"type":"agent_thought_chunk","sessionKey":"s","runId":"r","turnId":"turn","text":"hm"}`,
			`{"type":"agent_thought_chunk","sessionKey":"s","runId":"r","text":"hm"}`, `=`,
		},
		{
			"tool", tool,
			`{"type":"tool_call","sessionKey":"s","runId":"r","turnId":"turn","toolCallId":"c1","title":"exec","kind":"command","rawInput":{"cmd":"ls"},"startedAtMs":1700000000000}`,
			`{"type":"tool_call","sessionKey":"s","runId":"r","toolCallId":"c1","title":"exec","kind":"command","rawInput":{"cmd":"ls"},"startedAtMs":1700000000000}`, `=`,
		},
		{
			"result", result,
			`{"type":"tool_call_update","sessionKey":"s","runId":"r","turnId":"turn","toolCallId":"c1","status":"success","rawOutput":"out\n","startedAtMs":1700000000000,"finishedAtMs":1700000001000,"durationMs":1000}`,
			`{"type":"tool_call_update","sessionKey":"s","runId":"r","toolCallId":"c1","status":"success","rawOutput":"out\n","startedAtMs":1700000000000,"finishedAtMs":1700000001000,"durationMs":1000}`, `=`,
		},
		{
			"tool heard of when it is over", atOnce,
			`{"type":"tool_call","sessionKey":"s","runId":"r","turnId":"turn","toolCallId":"c1","title":"exec","startedAtMs":1700000000000}
{"type":"tool_call_update","sessionKey":"s","runId":"r","turnId":"turn","toolCallId":"c1","status":"success","rawOutput":"out\n","startedAtMs":1700000000000,"finishedAtMs":1700000001000,"durationMs":1000}`,
			`{"type":"tool_call","sessionKey":"s","runId":"r","toolCallId":"c1","title":"exec","startedAtMs":1700000000000}
{"type":"tool_call_update","sessionKey":"s","runId":"r","toolCallId":"c1","status":"success","rawOutput":"out\n","startedAtMs":1700000000000,"finishedAtMs":1700000001000,"durationMs":1000}`, `=`,
		},
		{
			"end", end,
			`{"type":"run_finished","sessionKey":"s","runId":"r","turnId":"turn","stopReason":"end_turn","unappliedInput":"more","message":{"role":"assistant","content":"Hello","attachments":[{"type":"file","mimeType":"text/plain","name":"f","artifactId":"file_1"}],"artifactDisplayText":"Hel","model":"m","timestampMs":1700000000000}}`,
			`{"type":"run_finished","sessionKey":"s","runId":"r","stopReason":"end_turn","unappliedInput":"more","message":{"role":"assistant","content":"Hello","attachments":[{"type":"file","mimeType":"text/plain","name":"f","artifactId":"file_1"}],"artifactDisplayText":"Hel","model":"m","timestampMs":1700000000000}}`, `=`,
		},
		{
			"failed turn", failed,
			`{"type":"run_finished","sessionKey":"s","runId":"r","turnId":"turn","stopReason":"error","terminalMessage":{"id":"codex-turn-error:turn","role":"system","text":"It failed.","timestampMs":1700000000000}}`,
			`{"type":"error","sessionKey":"s","runId":"r","code":"server","message":"It failed."}
{"type":"run_finished","sessionKey":"s","runId":"r","stopReason":"error"}`, `=`,
		},
		{
			"end nobody knows", lost,
			`{"type":"run_finished","sessionKey":"s","runId":"r","stopReason":"error","terminalMessage":{"id":"codex-turn-error:run:r","role":"system","text":"` + unknown + `","timestampMs":1700000000000}}`,
			`{"type":"error","sessionKey":"s","runId":"r","code":"timeout","message":"` + unknown + `"}
{"type":"run_finished","sessionKey":"s","runId":"r","stopReason":"error"}`, `=`,
		},
		{
			"stopped", cancelled, `{"type":"run_finished","sessionKey":"s","runId":"r","turnId":"turn","stopReason":"cancelled"}`,
			`{"type":"run_finished","sessionKey":"s","runId":"r","stopReason":"cancelled"}`, `=`,
		},
		{
			"cut", cut, `{"type":"run_finished","sessionKey":"s","runId":"r","turnId":"turn","stopReason":"max_tokens"}`,
			`{"type":"run_finished","sessionKey":"s","runId":"r","stopReason":"max_tokens"}`, `=`,
		},
		{
			"approval", interaction(sessions.InteractionOpened, anApproval),
			`{"type":"approval_requested","sessionKey":"s","approval":` + theApproval + `}`, `=`, `=`,
		},
		{
			"approval allowed", allowed, `{"type":"approval_resolved","sessionKey":"s","approvalId":"a1","decision":"allow-once"}`,
			`{"type":"approval_resolved","sessionKey":"s","approvalId":"a1","decision":"allow-once","kind":"exec"}`, ``,
		},
		{
			"approval denied", denied, `{"type":"approval_resolved","sessionKey":"s","approvalId":"a1","decision":"deny"}`,
			`{"type":"approval_resolved","sessionKey":"s","approvalId":"a1","decision":"deny","kind":"exec"}`, ``,
		},
		{
			"Case25 approval answered elsewhere", gone, `{"type":"approval_resolved","sessionKey":"s","approvalId":"a1","decision":"expired"}`,
			`{"type":"approval_resolved","sessionKey":"s","approvalId":"a1","decision":"deny","kind":"exec"}`, ``,
		},
		{
			"question", interaction(sessions.InteractionOpened, aQuestion),
			`{"type":"question_requested","sessionKey":"s","question":` + theForm + `}`, `=`,
			`{"type":"question_requested","sessionKey":"s","question":{"id":"q1","kind":"select","title":"Which?","options":["x","y"],"expiresAtMs":null}}`,
		},
		{
			"question gone", interaction(sessions.InteractionClosed, aQuestion),
			`{"type":"question_resolved","sessionKey":"s","questionId":"q1"}`, `=`, `=`,
		},
		{"attention", attention, `{"type":"session_info_update","session":{"key":"s","attention":"input"}}`, `=`, `=`},
		{"no attention", none, `{"type":"session_info_update","session":{"key":"s","attention":null}}`, `=`, `=`},
		{
			"error notice", notice(runtime.SeverityError, codes.OutcomeUnknown, ""),
			`{"type":"error","sessionKey":"s","runId":"r","code":"timeout","message":"` + unknown + `"}`, `=`, `=`,
		},
		{
			"note of an extension", notice(runtime.SeverityInfo, "", "Saved."), ``, ``,
			`{"type":"system_event","sessionKey":"s","kind":"info","text":"Saved.","timestampMs":1700000000000}`,
		},
		{
			"note that would log out", notice(runtime.SeverityError, codes.RunFailed, "Permission denied: /x"),
			`{"type":"error","sessionKey":"s","runId":"r","code":"server","message":"` + codes.Lookup(codes.RunFailed).Message + `"}`, `=`, `=`,
		},
		{"compaction", notice(runtime.SeverityInfo, "compaction_started", ""), ``, ``, `{"type":"compaction","sessionKey":"s","phase":"start"}`},
		{"end of compaction", notice(runtime.SeverityInfo, "compaction_ended", ""), ``, ``, `{"type":"compaction","sessionKey":"s","phase":"end"}`},
		{"catalog", sessions.Update{Kind: sessions.CatalogInvalidated}, ``, ``, ``},
	} {
		if c.claude == "=" {
			c.claude = c.codex
		}
		if c.pi == "=" {
			c.pi = c.claude
		}
		for backend, want := range map[string]string{"codex": c.codex, "claude-code": c.claude, "pi": c.pi} {
			if backend == "pi" && want == "" && strings.HasPrefix(c.name, "approval") || backend == "pi" && strings.HasPrefix(c.name, "Case25") {
				continue // there are none
			}
			t.Run(c.name+" "+backend, func(t *testing.T) {
				w := begin(t, backend)
				w.f.deliver(c.update)
				got := w.p.take(t)
				var wanted []string
				if want != "" {
					wanted = strings.Split(want, "\n")
				}
				if len(got) != len(wanted) {
					t.Fatalf("got %d events, want %d: %v", len(got), len(wanted), got)
				}
				for i := range got {
					same(t, got[i], wanted[i])
				}
			})
		}
	}
}

func TestEventFrame(t *testing.T) {
	w := begin(t, "claude-code")
	w.f.deliver(run(sessions.RunStarted))
	same(t, w.p.frames[0], `{"type":"event","event":"claude-code.update","payload":{"type":"run_started","sessionKey":"s","runId":"r"}}`)
}

// A whole row goes out after each change, with the same fields as in the catalog.
func TestSessionChanged(t *testing.T) {
	w := begin(t, "codex")
	row := sessions.Row{Key: "s", Title: "T", HasActiveRun: true}
	w.f.rows = []sessions.Row{row}
	w.f.deliver(sessions.Update{Kind: sessions.SessionChanged, Row: &row})
	same(t, w.p.take(t)[0], `{"type":"session_info_update","session":`+strings.Trim(w.ask("sessions.list", `{}`), "[]")+`}`)
}

// One status line when the runtime goes away, however often it is tried again.
func TestRuntimeGone(t *testing.T) {
	w := begin(t, "codex")
	tell := func(c runtime.Condition, reason string) {
		w.f.deliver(sessions.Update{Kind: sessions.RuntimeChanged, Status: &runtime.Status{Condition: c, Reason: reason}})
	}
	tell(runtime.ConditionReady, "")
	tell(runtime.ConditionUnavailable, codes.PluginCrashed)
	tell(runtime.ConditionUnavailable, codes.RuntimeUnavailable)
	got := w.p.take(t)
	if len(got) != 1 {
		t.Fatalf("got %v", got)
	}
	same(t, got[0], `{"type":"error","code":"gateway_offline","message":"`+codes.Lookup(codes.PluginCrashed).Message+`"}`)
	tell(runtime.ConditionReady, "")
	tell(runtime.ConditionUnavailable, "")
	if got := w.p.take(t); len(got) != 1 {
		t.Errorf("the second time: %v", got)
	}
}

func TestSnapshotsOfARunReplaceEachOther(t *testing.T) {
	w := begin(t, "codex")
	w.f.deliver(run(sessions.TextChunk))
	if w.p.keys[0] != "r" {
		t.Errorf("key %q", w.p.keys[0])
	}
	pi := begin(t, "pi")
	u := run(sessions.TextChunk)
	u.Appends = true
	pi.f.deliver(u)
	if pi.p.keys[0] != "" {
		t.Error("a delta must never be replaced")
	}
}

func TestCase15Activity(t *testing.T) {
	rules.Covers(t, "SYNC-10")
	keys := func(n int) string {
		return `{"keys":["` + strings.Join(strings.Split(repeat("k", n), ""), `","`) + `"]}`
	}
	for _, params := range []string{
		`{}`, `{"keys":null}`, `{"keys":"a"}`, `{"keys":[1]}`, `{"keys":["a","a"]}`, `{"keys":[""]}`, `{"keys":["` + repeat("k", 201) + `"]}`,
		keys(33),
	} {
		begin(t, "codex").refused("sessions.activity", params, codes.ParamsInvalid)
	}
	var many []string
	for i := range 33 {
		many = append(many, `"k`+repeat("x", i+1)+`"`)
	}
	begin(t, "codex").refused("sessions.activity", `{"keys":[`+strings.Join(many, ",")+`]}`, codes.ParamsInvalid)
	w := begin(t, "codex")
	w.ask("sessions.activity", `{"keys":[`+strings.Join(many[:32], ",")+`]}`)
	w.f.activity = []runtime.SessionActivity{{Activity: runtime.ActivityWaiting, Attention: runtime.AttentionKindApproval}, {}, {Activity: runtime.Activity(99)}}
	same(t, w.ask("sessions.activity", `{"keys":["a","b","c"]}`), `[{"key":"a","state":"waiting","attention":"approval"},{"key":"b","state":"unknown","attention":null},{"key":"c","state":"unknown","attention":null}]`)
}

func TestCase15ActivityIsPushedOnlyToWhoAsked(t *testing.T) {
	rules.Covers(t, "SYNC-15")
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, "codex")
		quiet, relay := &fakePeer{id: "b"}, &fakePeer{id: "c", relay: true}
		w.d.Join(quiet)
		w.d.Join(relay)
		asked := &world{t: t, d: w.d, f: w.f, p: relay}
		asked.ask("sessions.activity", `{"keys":["a"]}`)
		w.ask("sessions.activity", `{"keys":["b"]}`)
		w.ask("sessions.activity", `{"keys":["a"]}`) // the last call counts
		push := func(key string) (direct, other, overRelay int) {
			w.f.deliver(sessions.Update{Kind: sessions.ActivityChanged, SessionKey: key, Activity: &runtime.SessionActivity{Activity: runtime.ActivityRunning}})
			return len(w.p.take(t)), len(quiet.take(t)), len(relay.take(t))
		}
		if a, b, c := push("a"); a != 1 || b != 0 || c != 0 {
			t.Errorf("pushed %d %d %d", a, b, c)
		}
		if a, _, _ := push("b"); a != 0 {
			t.Error("pushed for a key of an earlier call")
		}
		time.Sleep(44 * time.Second)
		if a, _, _ := push("a"); a != 1 {
			t.Error("not pushed within the lease")
		}
		time.Sleep(time.Second)
		if a, _, _ := push("a"); a != 0 {
			t.Error("pushed after the lease")
		}
		w.d.Leave(w.p)
		w.f.deliver(run(sessions.RunStarted))
		if n := len(w.p.take(t)); n != 0 {
			t.Error("events after leaving")
		}
	})
	claude := begin(t, "claude-code")
	claude.ask("sessions.activity", `{"keys":["a"]}`)
	claude.f.deliver(sessions.Update{Kind: sessions.ActivityChanged, SessionKey: "a", Activity: &runtime.SessionActivity{}})
	if n := len(claude.p.take(t)); n != 0 {
		t.Error("claude has no pushed activity")
	}
}

func TestApprovalsList(t *testing.T) {
	const want = `{"kind":"exec","id":"a1","command":"rm -r build","category":"command","reason":"clean","cwd":"/w","decisions":["allow-once","deny"],"expiresAtMs":null}`
	for backend, shape := range map[string]string{"codex": `[{"sessionKey":"s","approval":` + want + `}]`, "demo": `[{"sessionKey":"s","approval":` + want + `}]`, "claude-code": "[" + want + "]"} {
		w := begin(t, backend)
		w.f.rows = []sessions.Row{{Key: "s"}}
		w.f.approvals = []sessions.OpenInteraction{{SessionKey: "s", Request: anApproval}}
		same(t, w.ask("approvals.list", `{"sessionKey":"s"}`), shape)
		if backend == "claude-code" {
			same(t, w.ask("approvals.list", `{}`), shape)
			continue
		}
		w.refused("approvals.list", `{"sessionKey":"other"}`, codes.SessionUnknown)
		w.refused("approvals.list", `{}`, codes.ParamsInvalid)
	}
	w := begin(t, "codex")
	w.f.rows = []sessions.Row{{Key: "s"}}
	same(t, w.ask("approvals.list", `{"sessionKey":"s"}`), `[]`)
}

func TestCase25Decisions(t *testing.T) {
	w := begin(t, "codex")
	for _, word := range []string{"allow-always", "expired", "", "Allow-once", "allow-session"} {
		w.refused("approvals.resolve", `{"id":"a1","decision":"`+word+`"}`, codes.DecisionInvalid)
	}
	w.refused("approvals.resolve", `{"id":"a1","decision":true}`, codes.ParamsInvalid)
	if w.f.decision != nil {
		t.Fatal("the service was asked")
	}
	same(t, w.ask("approvals.resolve", `{"id":"a1","decision":"allow-once"}`), `{"ok":true}`)
	if *w.f.decision != runtime.DecisionAllowOnce || w.f.person != (sessions.Person{ID: "a", Label: "phone a"}) {
		t.Errorf("got %v by %v", *w.f.decision, w.f.person)
	}
	w.ask("approvals.resolve", `{"id":"a1","decision":"deny"}`)
	if *w.f.decision != runtime.DecisionDeny {
		t.Errorf("got %v", *w.f.decision)
	}
}

func TestCase24Answers(t *testing.T) {
	one := func(f runtime.Field) runtime.Interaction {
		f.FieldID = "f"
		return runtime.Interaction{InteractionID: "q1", Question: &runtime.Question{Title: "T", Fields: []runtime.Field{f}}}
	}
	pick := runtime.Field{Kind: runtime.FieldKindSelect, Options: []runtime.FieldOption{{Label: "x"}}}
	yes := runtime.Field{Kind: runtime.FieldKindConfirm}
	line := runtime.Field{Kind: runtime.FieldKindLine, Prefill: "p", Placeholder: "ph"}
	text := runtime.Field{Kind: runtime.FieldKindText}
	for _, c := range []struct {
		name, backend string
		request       runtime.Interaction
		kind          string
		params        string
		code          string
		want          string
	}{
		{"form", "codex", one(pick), clawket.QuestionForm, `"answers":{"f":["x"]}`, "", "x"},
		{"form, two answers", "codex", one(pick), clawket.QuestionForm, `"answers":{"f":["x","y"]}`, codes.AnswerInvalid, ""},
		{"form, no answer", "codex", one(pick), clawket.QuestionForm, `"answers":{"f":[]}`, codes.AnswerInvalid, ""},
		{"form, blank", "codex", one(line), clawket.QuestionForm, `"answers":{"f":["  "]}`, codes.AnswerInvalid, ""},
		{"form, a value", "codex", one(pick), clawket.QuestionForm, `"value":"x"`, codes.AnswerInvalid, ""},
		{"form, answers a list", "codex", one(pick), clawket.QuestionForm, `"answers":["x"]`, codes.AnswerInvalid, ""},
		{"form, answer a text", "codex", one(pick), clawket.QuestionForm, `"answers":{"f":"x"}`, codes.AnswerInvalid, ""},
		{"claude, several", "claude-code", one(pick), clawket.QuestionForm, `"answers":{"f":["x","y"]}`, "", "x|y"},
		{"select", "pi", one(pick), clawket.QuestionSelect, `"value":"x"`, "", "x"},
		{"select, no value", "pi", one(pick), clawket.QuestionSelect, `"confirmed":true`, codes.AnswerInvalid, ""},
		{"confirm", "pi", one(yes), clawket.QuestionConfirm, `"confirmed":true`, "", "true"},
		{"refuse", "pi", one(yes), clawket.QuestionConfirm, `"confirmed":false`, "", "false"},
		{"confirm, a text", "pi", one(yes), clawket.QuestionConfirm, `"confirmed":"true"`, codes.AnswerInvalid, ""},
		{"input", "pi", one(line), clawket.QuestionInput, `"value":" a "`, "", " a "},
		{"editor", "demo", one(text), clawket.QuestionEditor, `"value":"a\nb"`, "", "a\nb"},
		{"nothing", "demo", one(text), clawket.QuestionEditor, `"x":1`, codes.AnswerInvalid, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := begin(t, c.backend)
			w.f.questions = []sessions.OpenInteraction{{SessionKey: "s", Request: c.request}}
			if got := w.ask("questions.list", `{"sessionKey":"s"}`); !strings.Contains(got, `"kind":"`+c.kind+`"`) {
				t.Errorf("asked as %s", got)
			}
			if _, err := w.try("questions.respond", `{"sessionKey":"s","questionId":"q1",`+c.params+`}`); codes.Of(err) != c.code {
				t.Errorf("got %v, want %q", err, c.code)
			}
			if (w.f.answer != nil) != (c.code == "") {
				t.Fatalf("answer passed on: %v", w.f.answer)
			}
			if c.code == "" && strings.Join(w.f.answer.Fields["f"], "|") != c.want {
				t.Errorf("answered %v", w.f.answer.Fields)
			}
		})
	}
	w := begin(t, "codex")
	w.refused("questions.respond", `{"sessionKey":"s","questionId":"gone","answers":{}}`, codes.InteractionNotPending)
	w.ask("questions.respond", `{"sessionKey":"s","questionId":"q1","cancelled":true}`)
	if !w.f.answer.Cancel || w.f.person.ID != "a" {
		t.Errorf("got %+v", w.f.answer)
	}
	w.f.err = codes.New(codes.InteractionAnswered)
	w.refused("questions.respond", `{"sessionKey":"s","questionId":"q1","cancelled":true}`, codes.InteractionAnswered)
}

// A form shows every kind of field as choices with or without a text of one's own.
func TestFormFields(t *testing.T) {
	w := begin(t, "codex")
	w.f.questions = []sessions.OpenInteraction{
		{Request: runtime.Interaction{InteractionID: "q", ExpiresAt: noon, Question: &runtime.Question{
			Title: repeat("t", 2001), Message: "m", Fields: []runtime.Field{
				{FieldID: "a", Kind: runtime.FieldKindConfirm, Title: "A", Header: "h"},
				{FieldID: "b", Kind: runtime.FieldKindText, Title: "B"},
				{FieldID: "c", Kind: runtime.FieldKindSelect, Title: "C", Options: []runtime.FieldOption{{Label: "x"}}, AllowCustom: true, MultiSelect: true},
			},
		}}},
		{Request: anApproval},
	}
	same(t, w.ask("questions.list", `{"sessionKey":"s"}`), `[{"id":"q","kind":"form","title":"`+repeat("t", 2000)+`","message":"m","expiresAtMs":1700000000000,"fields":[
		{"id":"a","title":"A","header":"h","options":[{"label":"true"},{"label":"false"}],"allowCustom":false},
		{"id":"b","title":"B","options":[],"allowCustom":true},
		{"id":"c","title":"C","options":[{"label":"x"}],"allowCustom":true,"multiSelect":true}]}]`)
}
