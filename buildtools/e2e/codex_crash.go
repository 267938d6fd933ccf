package main

import (
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/sdk/modeltest"
)

var crashScenarios = []scenario{
	{"plugin-killed-mid-turn", pluginKilled},
	{"host-killed-mid-turn", hostKilled},
	{"settled-after-all", func(s *scene) { short(s) }},
}

// slow is a reply of some hundred milliseconds.
func slow() []modeltest.Step {
	steps := []modeltest.Step{}
	for range 30 {
		steps = append(steps, modeltest.Text(" word\n"), modeltest.Delay(20*time.Millisecond))
	}
	return steps
}

func someMoment() time.Duration { return time.Duration(rand.IntN(600)) * time.Millisecond }

// told checks that the phone is told exactly one end of a run, that history agrees, and that nothing was sent twice.
func told(s *scene, key, run, prompt string) {
	u := s.wait("end of the run", func(u update) bool { return u.Type == clawket.UpdateRunFinished && u.RunID == run })
	all, _ := s.history(key)
	whole := strings.Repeat(" word\n", 30)
	switch u.StopReason {
	case "end_turn":
		if last := all[len(all)-1]; last.Text != whole {
			s.fail("the reply is not whole: %q", last.Text)
		}
	case "error":
		if u.TerminalMessage == nil || u.TerminalMessage.Text == "" {
			s.fail("an end without a notice: %s", u.raw)
		}
	case "cancelled":
	default:
		s.fail("the run ended with %s", u.StopReason)
	}
	if n := s.model.Count(prompt); n > 1 {
		s.fail("the model was asked %d times", n)
	}
	ends := 0
	for _, u := range s.phone.since(s.start) {
		if u.Type == clawket.UpdateRunFinished && u.RunID == run {
			ends++
		}
	}
	if ends != 1 {
		s.fail("the phone was told %d ends", ends)
	}
}

func pluginKilled(s *scene) {
	key := s.create()
	prompt := s.say(slow()...)
	run := s.send(key, prompt)
	time.Sleep(someMoment())
	st, err := s.status(s.ctx, s.backend)
	s.check(err)
	p, err := os.FindProcess(st.PID)
	s.check(err)
	s.check(p.Kill())
	told(s, key, run, prompt)
	next := s.send(key, s.say(modeltest.Text("Alive.")))
	s.reply(next, "Alive.")
}

func hostKilled(s *scene) {
	key := s.create()
	prompt := s.say(slow()...)
	run := s.send(key, prompt)
	time.Sleep(someMoment())
	s.check(s.killed())
	s.phone.close()
	_, err := s.up(s.ctx)
	s.check(err)
	s.phone, err = s.paired.connect(s.ctx, s.backend)
	s.check(err)
	s.start = 0
	var h clawket.History
	s.eventually("the run has ended", func() bool {
		s.call(clawket.MethodChatHistory, map[string]any{"sessionKey": key}, &h)
		return !h.HasActiveRun
	})
	if n := s.model.Count(prompt); n != 1 {
		s.fail("the model was asked %d times", n)
	}
	var status struct{ Status, RunID string }
	s.call(clawket.MethodChatPromptStatus, map[string]any{"sessionKey": key, "idempotencyKey": keyOf(prompt)}, &status)
	if status.Status != "recorded" || status.RunID != run {
		s.fail("prompt status %+v", status)
	}
	if len(h.Messages) < 2 || h.Messages[0].Role != "user" {
		s.fail("the phone is not told how it ended: %+v", h.Messages)
	}
	next := s.send(key, s.say(modeltest.Text("Alive.")))
	s.reply(next, "Alive.")
}
