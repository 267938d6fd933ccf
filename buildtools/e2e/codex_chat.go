package main

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/sdk/modeltest"
)

// pixel is the smallest PNG.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

var chatScenarios = []scenario{
	{"text", streamedText},
	{"reasoning", streamedReasoning},
	{"steer", steer},
	{"abort-text", abortText},
	{"abort-command", abortCommand},
	{"image", image},
	{"error-401", func(s *scene) {
		providerError(s, modeltest.Error(401, `{"error":{"message":"`+s.plant("Body")+`"}}`), "Model authentication failed. Sign in again on your computer.")
	}},
	{"error-429", func(s *scene) {
		providerError(s, modeltest.Error(429, `{"error":{"message":"`+s.plant("Body")+`"}}`), genericFailure)
	}},
	{"error-500", func(s *scene) {
		providerError(s, modeltest.Error(500, `{"error":{"message":"`+s.plant("Body")+`"}}`), genericFailure)
	}},
	{"error-cut", func(s *scene) { providerError(s, modeltest.Cut(), genericFailure, modeltest.Text("half")) }},
	{"error-model", func(s *scene) {
		providerError(s, modeltest.Error(400, `{"detail":"The 'gpt-5.5' model is not supported when using Codex with a ChatGPT account."}`),
			"This model is unavailable in the current Codex runtime. Choose another model or update Codex on your computer.")
	}},
	{"duplicate", duplicate},
	{"busy", busy},
	{"secrets", secrets},
}

const genericFailure = "The agent couldn't complete this reply. Please try again."

func streamedText(s *scene) {
	key := s.create()
	pause := modeltest.Delay(30 * time.Millisecond)
	prompt := s.say(modeltest.Text(" Zwei\n", "\n"), pause, modeltest.Text("  "), pause, modeltest.Text("Zeilen", " ✅\t"), pause, modeltest.Text("\n"))
	run := s.send(key, prompt)
	s.reply(run, " Zwei\n\n  Zeilen ✅\t\n")
	chunks := 0
	for _, u := range s.phone.since(s.start) {
		if u.Type == clawket.UpdateMessageChunk && u.RunID == run {
			chunks++
			if u.TextMode != "snapshot" || !strings.HasPrefix(" Zwei\n\n  Zeilen ✅\t\n", *u.Text) {
				s.fail("chunk %q in mode %q", *u.Text, u.TextMode)
			}
		}
	}
	if chunks < 2 {
		s.fail("%d chunks: nothing was streamed", chunks)
	}
	all, _ := s.history(key)
	if len(all) != 2 || all[0].IdempotencyKey != keyOf(prompt) || all[1].Text != " Zwei\n\n  Zeilen ✅\t\n" {
		s.fail("history %+v", all)
	}
	s.once(prompt)
}

func streamedReasoning(s *scene) {
	key := s.create()
	run := s.send(key, s.say(modeltest.Reasoning("**Looking** ", "at it"), modeltest.Text("Seen.")))
	s.reply(run, "Seen.")
	var thought string
	for _, u := range s.phone.since(s.start) {
		if u.Type == clawket.UpdateThoughtChunk && u.RunID == run {
			thought += *u.Text
		}
	}
	if thought != "**Looking** at it" {
		s.fail("thought %q", thought)
	}
}

func steer(s *scene) {
	key := s.create()
	prompt := s.say(modeltest.Text("one ", "two "), modeltest.Hang())
	more := s.say(modeltest.Text("Steered."))
	run := s.send(key, prompt)
	s.wait("text", func(u update) bool { return u.Type == clawket.UpdateMessageChunk && u.RunID == run })
	s.refused(clawket.MethodChatSteer, map[string]any{"sessionKey": key, "runId": "another", "text": more}, "")
	s.call(clawket.MethodChatSteer, map[string]any{"sessionKey": key, "runId": run, "text": more}, nil)
	s.end(run, "end_turn")
	if got := text(s.phone.since(s.start), run); !strings.HasSuffix(got, "Steered.") {
		s.fail("the phone shows %q", got)
	}
	s.check(s.model.WaitClosed(s.ctx, prompt))
	s.once(more)
}

func abortText(s *scene) {
	key := s.create()
	prompt := s.say(modeltest.Text("alpha "), modeltest.Hang())
	run := s.send(key, prompt)
	s.wait("text", func(u update) bool { return u.Type == clawket.UpdateMessageChunk && u.RunID == run })
	s.call(clawket.MethodChatAbort, map[string]any{"sessionKey": key, "runId": run}, nil)
	s.end(run, "cancelled")
	s.check(s.model.WaitClosed(s.ctx, prompt))
	s.call(clawket.MethodChatAbort, map[string]any{"sessionKey": key}, nil) // nothing runs: that is no error
	next := s.send(key, s.say(modeltest.Text("Again.")))
	s.reply(next, "Again.")
}

func abortCommand(s *scene) {
	key := s.create()
	run := s.send(key, s.say(modeltest.Call("exec_command", `{"cmd":"sleep 600","yield_time_ms":30000}`), modeltest.Text("never")))
	s.wait("running command", func(u update) bool { return u.Type == clawket.UpdateToolCall && u.RunID == run })
	s.call(clawket.MethodChatAbort, map[string]any{"sessionKey": key, "runId": run}, nil)
	s.end(run, "cancelled")
	for _, u := range s.phone.since(s.start) {
		if u.Type == clawket.UpdateToolCallUpdate && u.RunID == run && u.Status == "success" {
			s.fail("an interrupted command is shown as successful")
		}
	}
}

func image(s *scene) {
	key := s.create()
	prompt := s.say(modeltest.Text("A pixel."))
	run := s.send(key, prompt, "attachments", []any{map[string]any{"type": "image", "mimeType": "image/png", "content": pixel}})
	s.reply(run, "A pixel.")
	for _, r := range s.model.Requests() {
		if strings.Contains(r.Prompt, prompt) && r.Images != 1 {
			s.fail("the model got %d images", r.Images)
		}
	}
	all, _ := s.history(key)
	if len(all) == 0 || len(all[0].Attachments) != 1 || all[0].Attachments[0].Content != pixel {
		s.fail("the picture is not in the history: %+v", all)
	}
	s.refused(clawket.MethodChatSend, map[string]any{
		"sessionKey": key, "text": "x", "idempotencyKey": "bad image",
		"attachments": []any{map[string]any{"type": "image", "mimeType": "image/svg+xml", "content": base64.StdEncoding.EncodeToString([]byte("<svg/>"))}},
	}, "")
}

// providerError checks that the phone is told one of the fixed sentences, live and in history under the same name.
func providerError(s *scene, step modeltest.Step, want string, before ...modeltest.Step) {
	key := s.create()
	run := s.send(key, s.say(append(before, step)...))
	u := s.end(run, "error")
	if u.TerminalMessage == nil || u.TerminalMessage.Text != want {
		s.fail("the phone is told %s, want %q", u.raw, want)
	}
	all, _ := s.history(key)
	if last := all[len(all)-1]; last.ID != u.TerminalMessage.ID || last.Role != "system" || last.Text != want {
		s.fail("history ends with %+v, live it was %+v", last, u.TerminalMessage)
	}
}

// duplicate sends one prompt three times with one key: it runs once, and each answer names that run (FAULT-04).
func duplicate(s *scene) {
	key := s.create()
	prompt := s.say(modeltest.Text("Once."))
	first := s.send(key, prompt)
	if again := s.send(key, prompt); again != first {
		s.fail("run %s, then %s", first, again)
	}
	s.reply(first, "Once.")
	if again := s.send(key, prompt); again != first {
		s.fail("run %s, later %s", first, again)
	}
	s.once(prompt)
	s.refused(clawket.MethodChatSend, map[string]any{"sessionKey": key, "text": "other", "idempotencyKey": keyOf(prompt)}, "")
	var status struct{ Status, RunID string }
	s.call(clawket.MethodChatPromptStatus, map[string]any{"sessionKey": key, "idempotencyKey": keyOf(prompt)}, &status)
	if status.Status != "recorded" || status.RunID != first {
		s.fail("prompt status %+v", status)
	}
}

func busy(s *scene) {
	key := s.create()
	prompt := s.say(modeltest.Text("a"), modeltest.Gate(s.title), modeltest.Text("b"))
	run := s.send(key, prompt)
	s.check(s.model.WaitGate(s.ctx, s.title, 1))
	s.refused(clawket.MethodChatSend, map[string]any{"sessionKey": key, "text": "second", "idempotencyKey": "second"}, "")
	s.model.Release(s.title)
	s.reply(run, "ab")
	if n := s.model.Count("second"); n != 0 {
		s.fail("the refused prompt came to the model")
	}
}

// secrets plants a text where a title and a preview do not reach, in a prompt, a reply and a tool's output.
func secrets(s *scene) {
	key := s.create()
	long := strings.Repeat("filler ", 40)
	s.prompts++
	prompt := fmt.Sprintf("%s %d. %s%s", s.title, s.prompts, long, s.plant("Prompt"))
	s.showPublicly(prompt[:60]) // of its title
	reply := long + s.plant("Reply")
	s.model.Add(modeltest.Script{Match: prompt, Steps: []modeltest.Step{
		modeltest.Call("exec_command", `{"cmd":"echo `+s.plant("Output")+`"}`), modeltest.Text(reply),
	}})
	run := s.send(key, prompt)
	s.reply(run, reply)
	s.eventually("the preview is there", func() bool {
		row, ok := s.row(key)
		return ok && row.Preview != "" && time.Since(time.UnixMilli(*row.UpdatedAt)) < time.Hour
	})
}
