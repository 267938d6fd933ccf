package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/sdk/modeltest"
)

// pluginPoints and hostPoints are the kill points of docs/faults.md. A point that does not exist any more is never
// passed, and its row fails.
var (
	pluginPoints = []string{
		"prepare.received", "prepare.answer", "commit.received", "commit.dispatching", "commit.dispatched", "commit.answer",
		"event.run_started", "event.first_text", "event.mid_text", "event.tool_call", "event.run_ending", "event.run_ended",
	}
	hostPoints = []string{
		"send.received", "send.looked_up", "prepare.before", "prepare.after", "accept.before", "accept.after",
		"send.announced", "commit.before", "commit.after", "outcome.noted", "end.before", "end.after",
	}
	killBackends = []string{"demo", "codex"}
)

// restartEvery keeps the exits of a matrix below the breaker's five in a minute.
const restartEvery = 3

// row is one crash: who died where, and what the phone was told.
type row struct {
	*scene
	key, prompt, run string
	refused          string // why the prompt was not accepted
	mark             int
	accepted         bool
	asked            int // requests at the model
}

// begin makes a conversation and a prompt of several texts and a tool.
func (r *row) begin() {
	r.ready()
	r.key = r.create()
	r.mark = r.phone.mark()
	r.prompts++
	if r.backend == "demo" {
		r.prompt = fmt.Sprintf("%s %d.\n/stream n=8 rate=100\n/tool true\n/say end", r.title, r.prompts)
		return
	}
	pause := modeltest.Delay(20 * time.Millisecond)
	var steps []modeltest.Step
	for range 6 {
		steps = append(steps, modeltest.Text("piece "), pause)
	}
	r.prompt = r.say(append(steps, modeltest.Break(), modeltest.Call("exec_command", `{"cmd":"true"}`), modeltest.Text("end"))...)
}

// try sends the prompt; the host may refuse it or die meanwhile.
func (r *row) try() {
	var answer struct {
		RunID string `json:"runId"`
	}
	err := r.phone.call(r.ctx, clawket.MethodChatSend, map[string]any{"sessionKey": r.key, "text": r.prompt, "idempotencyKey": keyOf(r.prompt)}, &answer)
	var refused *refusal
	switch {
	case err == nil:
		r.run = answer.RunID
	case errors.As(err, &refused):
		r.refused = refused.Message
	case !errors.Is(err, errLost):
		r.fail("chat.send: %v", err)
	}
}

// verdict looks at what there is in the end and says it in few words. It fails unless the prompt either was not accepted
// and went nowhere, or was accepted and came to exactly one end of which the phone is told.
func (r *row) verdict() string {
	var status struct{ Status, RunID string }
	r.call(clawket.MethodChatPromptStatus, map[string]any{"sessionKey": r.key, "idempotencyKey": keyOf(r.prompt)}, &status)
	r.asked = r.model.Count(r.prompt)
	if r.asked > 1 {
		r.fail("the model was asked %d times", r.asked)
	}
	if status.Status != "recorded" {
		if r.run != "" || r.asked != 0 {
			r.fail("no receipt, but run %q and %d requests at the model", r.run, r.asked)
		}
		return "not accepted"
	}
	r.accepted = true
	if r.run != "" && status.RunID != r.run {
		r.fail("the receipt is of run %s, the answer was %s", status.RunID, r.run)
	}
	r.run = status.RunID
	var h clawket.History
	r.eventually("the run has ended", func() bool {
		err := r.phone.call(r.ctx, clawket.MethodChatHistory, map[string]any{"sessionKey": r.key}, &h)
		return err == nil && !h.HasActiveRun // a plugin that is being started again cannot be asked
	})
	prompts := 0
	for _, m := range h.Messages {
		if m.Role == "user" && m.Text == r.prompt {
			prompts++
		}
	}
	if prompts > 1 {
		r.fail("the prompt is %d times in the history", prompts)
	}
	return fmt.Sprintf("accepted, asked %d: %s", r.asked, r.told(h))
}

// expect compares with docs/faults.md: whether there is a receipt, and whether the runtime may have the prompt.
func (r *row) expect(receipt, mayHave bool) {
	if r.accepted != receipt {
		r.fail("receipt %v, want %v", r.accepted, receipt)
	}
	if r.asked > 0 && !mayHave {
		r.fail("the model was asked though the prompt cannot have been there")
	}
}

// told is how the phone learns of the end: from the event, or, if it came too late for that, from the history.
func (r *row) told(h clawket.History) string {
	var ends []update
	for _, u := range r.phone.since(r.mark) {
		if u.Type == clawket.UpdateRunFinished && u.RunID == r.run {
			ends = append(ends, u)
		}
	}
	if len(ends) > 1 {
		r.fail("the phone was told %d ends", len(ends))
	}
	if len(ends) == 1 {
		switch u := ends[0]; {
		case u.StopReason == "end_turn":
			return "done"
		case u.StopReason == "cancelled":
			return "stopped"
		case u.TerminalMessage != nil && u.TerminalMessage.Text != "":
			return u.TerminalMessage.Text
		default:
			r.fail("an end without a notice: %s", u.raw)
		}
	}
	i := slices.IndexFunc(h.Messages, func(m clawket.Message) bool { return m.Role == "user" && m.Text == r.prompt })
	for _, m := range h.Messages[i+1:] {
		if m.Role == "system" {
			return m.Text
		}
	}
	if n := len(h.Messages); n > 0 && h.Messages[n-1].Role == "assistant" && strings.Contains(h.Messages[n-1].Text, "end") {
		return "done, by the history"
	}
	var roles []string
	for _, m := range h.Messages {
		roles = append(roles, m.Role)
	}
	r.fail("nobody told the phone how it ended; history: %s", strings.Join(roles, " "))
	return ""
}

// rowOf runs one row with failures as errors.
func rowOf(s *scene, r *report, name string, f func(*row) string) {
	if !r.wants(name) {
		return
	}
	began := time.Now()
	s.title = name
	var detail string
	err := func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				f, ok := p.(failure)
				if !ok {
					panic(p)
				}
				err = f.error
			}
		}()
		detail = f(&row{scene: s})
		return nil
	}()
	r.line("kill", name, time.Since(began), detail, err)
}

func anyWanted(r *report, side string, points []string) bool {
	for _, b := range killBackends {
		for _, p := range points {
			if r.wants("kill/" + b + "/" + side + "/" + p) {
				return true
			}
		}
	}
	return false
}

// pluginKills kills each plugin at each of its points, while the host and the other plugin live on.
func pluginKills(ctx context.Context, g *ground, r *report) (err error) {
	if !anyWanted(r, "plugin", pluginPoints) {
		return nil
	}
	c, err := g.newComputer("plugin-kills", g.bin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if _, err := c.up(ctx); err != nil {
		return err
	}
	paired, err := c.pair(ctx)
	if err != nil {
		return err
	}
	for _, backend := range killBackends {
		s := &scene{computer: c, ctx: ctx, backend: backend, paired: paired}
		if s.phone, err = paired.connect(ctx, backend); err != nil {
			return err
		}
		for i, point := range pluginPoints {
			rowOf(s, r, "kill/"+backend+"/plugin/"+point, func(w *row) string {
				if i%restartEvery == 0 {
					w.check(c.cli(ctx, nil, "runtime", "restart", backend))
				}
				verdict := killPlugin(w, point)
				w.expect(i >= slices.Index(pluginPoints, "commit.received"), i >= slices.Index(pluginPoints, "commit.dispatched"))
				return verdict
			})
		}
		s.phone.close()
	}
	return nil
}

func killPlugin(w *row, point string) string {
	w.begin()
	w.check(os.WriteFile(w.kill, []byte(point), 0o600))
	defer os.Remove(w.kill)
	w.try()
	w.eventually("the plugin died at "+point, func() bool { _, err := os.Stat(w.kill); return err != nil })
	if w.run != "" {
		w.wait("end of the run", func(u update) bool { return u.Type == clawket.UpdateRunFinished && u.RunID == w.run })
	}
	verdict := w.verdict()
	w.again()
	return verdict
}

// again shows that the conversation, or a new one where the old one is lost, takes the next prompt.
func (r *row) again() {
	prompt := r.simple()
	var answer struct {
		RunID string `json:"runId"`
	}
	var err error
	r.eventually("the next prompt is taken", func() bool {
		err = r.phone.call(r.ctx, clawket.MethodChatSend, map[string]any{"sessionKey": r.key, "text": prompt, "idempotencyKey": keyOf(prompt)}, &answer)
		return err == nil
	})
	r.end(answer.RunID, "end_turn")
}

// ready waits until the runtime serves again after the row before.
func (r *row) ready() {
	r.eventually("the runtime is ready", func() bool {
		var projects []clawket.Project
		return r.phone.call(r.ctx, clawket.MethodProjectsList, nil, &projects) == nil
	})
}

func (r *row) simple() string {
	if r.backend == "demo" {
		r.prompts++
		return fmt.Sprintf("%s %d.", r.title, r.prompts)
	}
	return r.say(modeltest.Text("Alive."))
}

// hostKills kills the host at each of its points, with each runtime; its plugins die with it.
func hostKills(ctx context.Context, g *ground, r *report) (err error) {
	if !anyWanted(r, "host", hostPoints) {
		return nil
	}
	c, err := g.newComputer("host-kills", g.fault)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if _, err := c.up(ctx); err != nil {
		return err
	}
	paired, err := c.pair(ctx)
	if err != nil {
		return err
	}
	for _, backend := range killBackends {
		s := &scene{computer: c, ctx: ctx, backend: backend, paired: paired}
		for i, point := range hostPoints {
			rowOf(s, r, "kill/"+backend+"/host/"+point, func(w *row) string {
				verdict := killHost(w, point)
				w.expect(i >= slices.Index(hostPoints, "accept.after"), i >= slices.Index(hostPoints, "commit.after"))
				return verdict
			})
		}
		if s.phone != nil {
			s.phone.close()
		}
	}
	return nil
}

func killHost(w *row, point string) string {
	w.restart("OPENPHONE_FAULT=" + point)
	w.begin()
	w.try()
	w.check(w.gone())
	w.restart()
	verdict := w.verdict()
	w.again()
	return verdict
}

// restart starts the host, after ending it if it runs, and connects the phone anew.
func (r *row) restart(env ...string) {
	if r.phone != nil {
		r.phone.close()
	}
	r.check(r.down())
	_, err := r.up(r.ctx, env...)
	r.check(err)
	r.phone, err = r.paired.connect(r.ctx, r.backend)
	r.check(err)
	r.start, r.mark = 0, 0
}
