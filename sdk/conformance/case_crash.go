package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/sdk/runtime"
	"github.com/openphone-host/openphone/sdk/serve"
)

// crashCases kill the plugin at twelve points of a send that can be seen from outside, then at the twelve kill points of
// the SDK where the plugin passes them.
var crashCases = func() []testCase {
	var list []testCase
	for i, at := range outside {
		list = append(list, testCase{group: "crash", name: fmt.Sprintf("%02d %s", i+1, at.name), run: func(t *T) { t.crash(at) }})
	}
	for _, point := range serve.Points() {
		list = append(list, testCase{group: "crash", name: "kill point " + point, run: func(t *T) { t.killPoint(point) }})
	}
	return append(list, testCase{group: "crash", name: "a run that was never sent was never seen", needs: caps("reconcile"), run: func(t *T) {
		p := t.start()
		st := t.reconcile(p, &runtimev1.SessionRef{SessionId: id("conform-"), ProjectPath: t.o.Project}, runID(), 0)
		if st.GetPhase() != runtimev1.RunPhase_RUN_PHASE_NEVER_SEEN {
			t.Errorf("the phase is %v, want never seen", st.GetPhase())
		}
	}})
}()

// moment is a point of a send at which the kit kills the plugin.
type moment struct {
	name string
	sent bool          // the commit has left, so the plugin may have dispatched
	wait string        // "", prepared, committed, started, text, text5, ended
	then time.Duration // from there
}

var outside = []moment{
	{name: "prepare sent"},
	{name: "prepare answered", wait: "prepared"},
	{name: "commit sent", sent: true, wait: "committing"},
	{name: "1 ms after the commit was sent", sent: true, wait: "committing", then: time.Millisecond},
	{name: "5 ms after the commit was sent", sent: true, wait: "committing", then: 5 * time.Millisecond},
	{name: "commit answered", sent: true, wait: "committed"},
	{name: "first event", sent: true, wait: "event"},
	{name: "first text", sent: true, wait: "text"},
	{name: "fifth text", sent: true, wait: "text5"},
	{name: "50 ms into the reply", sent: true, wait: "text", then: 50 * time.Millisecond},
	{name: "end seen", sent: true, wait: "ended"},
	{name: "50 ms after the end", sent: true, wait: "ended", then: 50 * time.Millisecond},
}

// crash sends a prompt, kills the plugin at a moment, starts it again and judges what it says.
func (t *T) crash(at moment) {
	t.talks()
	dir := t.dataDir()
	p := t.startIn(dir)
	ref := t.session(p)
	text := t.o.Prompts.Text
	if at.wait == "text5" || at.then >= 50*time.Millisecond && at.wait == "text" {
		text = t.need(t.o.Prompts.Long, "long")
	}
	x := &turn{t: t, p: p, ref: ref, run: runID()}
	var outcome runtimev1.Outcome
	var wg sync.WaitGroup
	ctx := t.settings()
	if at.wait == "" {
		wg.Go(func() { _, _ = p.Conversations.PrepareRun(ctx, t.prepareRequest(x, text)) })
	} else {
		r, err := p.Conversations.PrepareRun(ctx, t.prepareRequest(x, text))
		t.must(err, "PrepareRun")
		x.adopt(r.GetSession())
	}
	if at.sent {
		commit := func() {
			if r, err := p.Conversations.CommitRun(ctx, &runtimev1.CommitRunRequest{RunId: x.run}); err == nil {
				outcome = r.GetOutcome()
			}
		}
		if at.wait == "committing" {
			wg.Go(commit)
		} else {
			commit()
		}
	}
	t.reach(x, at)
	p.Kill()
	wg.Wait()
	t.judge(x, dir, at.sent, outcome)
}

func (t *T) prepareRequest(x *turn, text string) *runtimev1.PrepareRunRequest {
	return &runtimev1.PrepareRunRequest{Session: x.ref, RunId: x.run, Input: prompt(text)}
}

func (t *T) reach(x *turn, at moment) {
	switch at.wait {
	case "event":
		x.wait("an event", func(*runtimev1.Event) bool { return true })
	case "text":
		x.wait("text", isText)
	case "text5":
		n := 0
		x.wait("five texts", func(e *runtimev1.Event) bool {
			if isText(e) {
				n++
			}
			return n == 5
		})
	case "ended":
		x.end()
	}
	if at.then > 0 {
		t.must(pause(t.ctx, at.then), "waiting")
	}
}

// judge starts the plugin again and asks what became of the run. Whatever it says must agree with what was sent, with what
// was seen and with the history; and the run is never begun a second time.
func (t *T) judge(x *turn, dir string, sent bool, outcome runtimev1.Outcome) {
	seen := x.p.events.all()
	q := t.startIn(dir)
	if !t.has(runtime.CapabilityReconcile) {
		return // the host closes every open run; that the plugin starts is all there is to see
	}
	st := t.reconcile(q, x.ref, x.run, outcome)
	ended := x.ended != nil
	switch phase := st.GetPhase(); phase {
	case runtimev1.RunPhase_RUN_PHASE_NEVER_SEEN:
		if ended || outcome == runtimev1.Outcome_OUTCOME_DISPATCHED && joined(seen, x.run) != "" {
			t.Errorf("a run that had answered was never seen")
		}
		t.rows(q, x, 0)
	case runtimev1.RunPhase_RUN_PHASE_RUNNING:
		if !sent {
			t.Errorf("a run that was not committed is running")
		}
		x.p, x.from = q, 0
		x.end()
		x.quiet(silence)
	case runtimev1.RunPhase_RUN_PHASE_ENDED:
		if !sent {
			t.Errorf("a run that was not committed has ended")
		}
		if st.GetEnd() == nil {
			t.Errorf("the phase is ended and says not how")
		}
		if ended && st.GetEnd().GetReason() != x.ended.GetReason() {
			t.Errorf("the run ended %v, and after the crash it says %v", x.ended.GetReason(), st.GetEnd().GetReason())
		}
	default:
		if ended {
			t.Errorf("a run that had ended is unknown")
		}
	}
	if _, _, err := q.events.within(silence, 0, func(e *runtimev1.Event) bool {
		return e.GetRunId() == x.run && isText(e) && !e.GetText().GetReplace() && st.GetPhase() != runtimev1.RunPhase_RUN_PHASE_RUNNING
	}); err == nil {
		t.Errorf("the run goes on although it is said to be over")
	}
	// The conversation is good for another prompt, whatever happened.
	y := t.send(q, x.ref, t.o.Prompts.Text)
	y.end()
	t.rows(q, x, 1)
}

// rows checks that the history has at most so many rows that are this run's prompt.
func (t *T) rows(p *process, x *turn, most int) {
	n := 0
	for _, m := range t.history(p, x.ref, 100) {
		if m.GetRole() == runtimev1.Role_ROLE_USER && m.GetRunId() == x.run {
			n++
		}
	}
	if n > most {
		t.Errorf("the history has %d rows that are the run's prompt, at most %d are possible", n, most)
	}
}

func (t *T) reconcile(p *process, ref *runtimev1.SessionRef, run string, outcome runtimev1.Outcome) *runtimev1.RunState {
	r, err := p.Runtime.Reconcile(t.settings(), &runtimev1.ReconcileRequest{Runs: []*runtimev1.OpenRun{{Session: ref, RunId: run, Outcome: outcome}}})
	t.must(err, "Reconcile")
	for _, s := range r.GetRuns() {
		if s.GetRunId() == run {
			return s
		}
	}
	return &runtimev1.RunState{RunId: run}
}

// killPoint lets the plugin kill itself at one of the SDK's points, which lie where nobody outside can aim.
func (t *T) killPoint(point string) {
	t.talks()
	t.killFile = filepath.Join(t.root, id("kill"))
	defer func() { t.killFile = "" }()
	dir := t.dataDir()
	p := t.startIn(dir)
	if !t.passesPoints() {
		t.skip("the plugin asks for no " + serve.EnvKillFile)
	}
	text := t.o.Prompts.Text
	switch point {
	case serve.PointMidText:
		text = t.need(t.o.Prompts.Long, "long")
	case serve.PointToolCall:
		if text = t.o.Prompts.Tool; text == "" {
			t.skip(`no prompt "tool"`)
		}
	}
	x := &turn{t: t, p: p, ref: t.session(p), run: runID()}
	t.must(os.WriteFile(t.killFile, []byte(point), 0o600), "arming the kill point")
	var outcome runtimev1.Outcome
	sent := false
	if r, err := p.Conversations.PrepareRun(t.settings(), t.prepareRequest(x, text)); err == nil {
		x.adopt(r.GetSession())
		sent = true
		if r, err := p.Conversations.CommitRun(t.settings(), &runtimev1.CommitRunRequest{RunId: x.run}); err == nil {
			outcome = r.GetOutcome()
		}
	}
	if strings.HasPrefix(point, "prepare.") && sent {
		t.Errorf("PrepareRun answered although the plugin should have died before")
	}
	ctx, cancel := context.WithTimeout(t.ctx, 20*time.Second)
	defer cancel()
	if e, at, err := p.events.until(ctx, 0, x.mine(isEnd)); err == nil {
		x.ended, x.endedAt = e.GetRunEnded(), at
	}
	if _, ok := p.run.exited(3 * time.Second); !ok {
		t.skip("the plugin does not pass this point")
	}
	p.Kill()
	t.judge(x, dir, sent, outcome)
}

func (t *T) passesPoints() bool {
	for _, e := range t.description.Environment {
		if e == serve.EnvKillFile {
			return true
		}
	}
	return false
}

// backpressureCases stop reading.
var backpressureCases = []testCase{
	{group: "backpressure", name: "a paused reader costs little and loses nothing", run: func(t *T) {
		p := t.start()
		warm := t.send(p, t.session(p), t.o.Prompts.Text)
		warm.end()
		x := t.prepare(p, t.session(p), t.need(t.o.Prompts.Flood, "flood"))
		before := memory(p.run.cmd.Process.Pid)
		resume := p.events.pause()
		var once sync.Once
		t.cleanup(func() { once.Do(resume) })
		x.doCommit()
		most := int64(0)
		for end := time.Now().Add(t.o.Pause); time.Now().Before(end); {
			t.must(pause(t.ctx, 250*time.Millisecond), "pausing")
			most = max(most, memory(p.run.cmd.Process.Pid)-before)
			t.alive(p)
		}
		if most > 8<<20 {
			t.Errorf("the plugin grew by %d KiB, at most 8 MiB are allowed", most>>10)
		}
		once.Do(resume)
		_, _ = p.Conversations.StopRun(t.settings(), &runtimev1.StopRunRequest{Session: x.ref, RunId: x.run})
		x.end()
		if gap := p.events.gapped(); gap != "" {
			t.Errorf("the event numbers have a gap: %s", gap)
		}
	}},
}
