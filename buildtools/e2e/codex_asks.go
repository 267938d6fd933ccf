package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/sdk/modeltest"
)

var askScenarios = []scenario{
	{"command-allowed", commandAllowed},
	{"command-denied", commandDenied},
	{"file-allowed", fileAllowed},
	{"file-denied", fileDenied},
	{"permissions", permissions},
	{"question", question},
	{"question-cancelled", questionCancelled},
	{"two-phones", twoPhones},
}

// escalated is a command that needs consent because it leaves the sandbox.
func escalated(command string) modeltest.Step {
	return modeltest.CallWith("exec_command", map[string]any{"cmd": command, "sandbox_permissions": "require_escalated", "justification": "It must be outside."})
}

func commandAllowed(s *scene) {
	key := s.create()
	file := filepath.Join(s.dir, "outside")
	command := "echo made > " + file
	run := s.send(key, s.say(escalated(command), modeltest.Text("Made.")))
	a := s.asked(run, "command")
	if !strings.Contains(a.Command, command) || a.Reason == "" || strings.Join(a.Decisions, " ") != "allow-once deny" {
		s.fail("approval %+v", a)
	}
	var open []clawket.SessionApproval
	s.call(clawket.MethodApprovalsList, map[string]any{"sessionKey": key}, &open)
	if len(open) != 1 || open[0].Approval.ID != a.ID {
		s.fail("open approvals %+v", open)
	}
	if row, _ := s.row(key); row.Attention == nil || *row.Attention != "approval" {
		s.fail("the catalog does not say that consent is asked: %+v", row)
	}
	s.decide(a, "allow-once")
	s.reply(run, "Made.")
	s.tool(run, "success")
	if b, err := os.ReadFile(file); err != nil || string(b) != "made\n" {
		s.fail("the command did not run: %q, %v", b, err)
	}
	s.refused(clawket.MethodApprovalsResolve, map[string]any{"id": a.ID, "decision": "deny"}, "")
}

func commandDenied(s *scene) {
	key := s.create()
	file := filepath.Join(s.dir, "denied")
	run := s.send(key, s.say(escalated("touch "+file), modeltest.Text("Left it.")))
	a := s.asked(run, "command")
	s.refused(clawket.MethodApprovalsResolve, map[string]any{"id": a.ID, "decision": "always"}, "")
	s.decide(a, "deny")
	s.reply(run, "Left it.")
	s.tool(run, "error")
	if _, err := os.Stat(file); err == nil {
		s.fail("the denied command ran")
	}
}

const patch = "*** Begin Patch\n*** Add File: %s\n+hello\n+there\n*** End Patch"

func fileAllowed(s *scene) {
	file := filepath.Join(s.dir, "patched.txt")
	run := filePrompt(s, file)
	a := s.asked(run, "file")
	if !strings.Contains(a.Command, file) || !strings.Contains(a.Command, "hello\nthere") {
		s.fail("the approval does not show the whole change: %q", a.Command)
	}
	s.decide(a, "allow-once")
	s.reply(run, "Patched.")
	if b, err := os.ReadFile(file); err != nil || string(b) != "hello\nthere\n" {
		s.fail("file %q, %v", b, err)
	}
}

func fileDenied(s *scene) {
	file := filepath.Join(s.dir, "unpatched.txt")
	run := filePrompt(s, file)
	s.decide(s.asked(run, "file"), "deny")
	s.reply(run, "Patched.")
	if _, err := os.Stat(file); err == nil {
		s.fail("the denied change was made")
	}
}

func filePrompt(s *scene, file string) string {
	return s.send(s.create(), s.say(modeltest.Custom("apply_patch", strings.Replace(patch, "%s", file, 1)), modeltest.Text("Patched.")))
}

func permissions(s *scene) {
	ask := modeltest.CallWith("request_permissions", map[string]any{
		"reason": "It needs the network.", "permissions": map[string]any{"network": map[string]any{"enabled": true}},
	})
	run := s.send(s.create(), s.say(ask, modeltest.Text("Granted.")))
	a := s.asked(run, "permissions")
	if !strings.Contains(a.Command, "network") {
		s.fail("approval %+v", a)
	}
	s.decide(a, "allow-once")
	s.reply(run, "Granted.")
}

func askQuestion(s *scene, key string) (run string, q *clawket.Question) {
	ask := modeltest.CallWith("request_user_input", map[string]any{"questions": []any{
		map[string]any{"id": "colour", "header": "Colour", "question": "Which colour?", "options": []any{
			map[string]any{"label": "Red", "description": "Warm"}, map[string]any{"label": "Blue", "description": "Cold"},
		}},
	}})
	run = s.send(key, s.say(ask, modeltest.Text("Red it is.")))
	u := s.wait("question", func(u update) bool { return u.Type == clawket.UpdateQuestionRequested && u.SessionKey == key })
	if u.Question.Kind != "form" || len(u.Question.Fields) != 1 || len(u.Question.Fields[0].Options) < 2 {
		s.fail("question %s", u.raw)
	}
	return run, u.Question
}

func question(s *scene) {
	key := s.create()
	run, q := askQuestion(s, key)
	respond := func(answer string) map[string]any {
		return map[string]any{"sessionKey": key, "questionId": q.ID, "answers": map[string]any{q.Fields[0].ID: []string{answer}}}
	}
	s.call(clawket.MethodQuestionsRespond, respond("Red"), nil)
	s.reply(run, "Red it is.")
	told := false
	for _, r := range s.model.Requests() {
		told = told || strings.Contains(strings.Join(r.Outputs, " "), "Red")
	}
	if !told {
		s.fail("the model was not told the answer")
	}
	s.refused(clawket.MethodQuestionsRespond, respond("Blue"), "")
}

func questionCancelled(s *scene) {
	key := s.create()
	run, q := askQuestion(s, key)
	s.call(clawket.MethodQuestionsRespond, map[string]any{"sessionKey": key, "questionId": q.ID, "cancelled": true}, nil)
	s.end(run, "cancelled")
}

// twoPhones shows that both see everything, that either may answer, and that only the first answer counts.
func twoPhones(s *scene) {
	other, err := s.pair(s.ctx)
	s.check(err)
	second, err := other.connect(s.ctx, s.backend)
	s.check(err)
	defer second.close()
	key := s.create()
	run := s.send(key, s.say(modeltest.Text("Asking."), escalated("true"), modeltest.Text("Done.")))
	a := s.asked(run, "command")
	_, err = second.wait(s.ctx, 0, "the same request", func(u update) bool { return u.Approval != nil && u.Approval.ID == a.ID })
	s.check(err)
	s.check(second.call(s.ctx, clawket.MethodApprovalsResolve, map[string]any{"id": a.ID, "decision": "allow-once"}, nil))
	s.refused(clawket.MethodApprovalsResolve, map[string]any{"id": a.ID, "decision": "deny"}, "")
	s.end(run, "end_turn")
	_, err = second.wait(s.ctx, 0, "the end", func(u update) bool { return u.Type == clawket.UpdateRunFinished && u.RunID == run })
	s.check(err)
	if x, y := text(s.phone.since(s.start), run), text(second.since(0), run); x != y {
		s.fail("one phone shows %q, the other %q", x, y)
	}
	var revoked json.RawMessage
	s.check(s.cli(s.ctx, &revoked, "phone", "revoke", other.PhoneID))
	s.eventually("the revoked phone is cut off", func() bool { return second.call(s.ctx, clawket.MethodHealth, nil, nil) != nil })
	s.call(clawket.MethodHealth, nil, nil)
}
