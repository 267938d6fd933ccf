package conformance

import (
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/protocol/codes"
)

// silence is how long nothing may come after the end of a run.
const silence = 300 * time.Millisecond

// sendCases are about one prompt.
var sendCases = []testCase{
	{group: "send", name: "one end and the same text everywhere", run: func(t *T) {
		p := t.start()
		x := t.send(p, t.session(p), t.o.Prompts.Text)
		end := x.end()
		if end.GetReason() != runtimev1.EndReason_END_REASON_COMPLETED {
			t.Errorf("the run ended %v %s", end.GetReason(), end.GetCode())
		}
		x.quiet(silence)
		x.sameText()
		if gap := p.events.gapped(); gap != "" {
			t.Errorf("the event numbers have a gap: %s", gap)
		}
	}},
	{group: "send", name: "a long reply keeps every byte", run: func(t *T) {
		p := t.start()
		x := t.send(p, t.session(p), t.need(t.o.Prompts.Long, "long"))
		x.end()
		n := 0
		for _, e := range p.events.all()[x.from:] {
			if e.GetRunId() == x.run && isText(e) {
				n++
			}
		}
		if n < 20 {
			t.Errorf("the long reply came in %d pieces, want 20 at least", n)
		}
		x.sameText()
	}},
	{group: "send", name: "the prompt is kept byte for byte", run: func(t *T) {
		p := t.start()
		ref := t.session(p)
		text := t.o.Prompts.Text + "\n\n  two  spaces, a tab\tand nothing cut  "
		x := t.send(p, ref, text)
		x.end()
		for _, m := range t.history(p, ref, 100) {
			if m.GetRole() == runtimev1.Role_ROLE_USER && m.GetParts()[0].GetText() == text {
				return
			}
		}
		t.Errorf("no row of the history is the prompt as it was sent")
	}},
	{group: "send", name: "events name run and conversation", run: func(t *T) {
		p := t.start()
		ref := t.session(p)
		x := t.send(p, ref, t.o.Prompts.Text)
		x.end()
		for _, e := range p.events.all()[x.from:] {
			if e.GetRunId() == x.run && e.GetSessionId() == "" && e.GetNativeId() == "" {
				t.Fatalf("event %d names no conversation", e.GetSeq())
			}
			if e.GetRunId() == x.run && e.GetSessionId() != "" && e.GetSessionId() != ref.GetSessionId() {
				t.Fatalf("event %d names another conversation", e.GetSeq())
			}
		}
	}},
	{group: "send", name: "prepared twice is prepared once", run: func(t *T) {
		p := t.start()
		t.talks()
		ref, run := t.session(p), runID()
		q := &runtimev1.PrepareRunRequest{Session: ref, RunId: run, Input: prompt(t.o.Prompts.Text)}
		a, err := p.Conversations.PrepareRun(t.settings(), q)
		t.must(err, "PrepareRun")
		b, err := p.Conversations.PrepareRun(t.settings(), q)
		t.must(err, "PrepareRun again")
		if !proto.Equal(a, b) {
			t.Errorf("the same request got another answer")
		}
		other := &runtimev1.PrepareRunRequest{Session: ref, RunId: run, Input: prompt("Something else.")}
		_, err = p.Conversations.PrepareRun(t.settings(), other)
		t.wantCode("another prompt under the same run id", err, codes.OperationConflict)
	}},
	{group: "send", name: "committed twice runs once", run: func(t *T) {
		p := t.start()
		ref := t.session(p)
		x := t.send(p, ref, t.o.Prompts.Text)
		again, err := p.Conversations.CommitRun(t.settings(), &runtimev1.CommitRunRequest{RunId: x.run})
		t.must(err, "CommitRun again")
		if again.GetOutcome() != x.commit.GetOutcome() || again.GetNativeRunId() != x.commit.GetNativeRunId() {
			t.Errorf("the second answer is %v %q, the first was %v %q", again.GetOutcome(), again.GetNativeRunId(), x.commit.GetOutcome(), x.commit.GetNativeRunId())
		}
		x.end()
		x.quiet(silence)
		t.prompts(p, ref, t.o.Prompts.Text, 1)
	}},
	{group: "send", name: "nothing is dispatched without preparation", run: func(t *T) {
		p := t.start()
		r, err := p.Conversations.CommitRun(t.settings(), &runtimev1.CommitRunRequest{RunId: runID()})
		t.must(err, "CommitRun")
		if r.GetOutcome() != runtimev1.Outcome_OUTCOME_NOT_DISPATCHED {
			t.Errorf("outcome %v, want not dispatched", r.GetOutcome())
		}
	}},
	{group: "send", name: "preparing sends nothing", run: func(t *T) {
		p := t.start()
		ref := t.session(p)
		x := t.prepare(p, ref, t.o.Prompts.Text)
		if _, _, err := p.events.within(silence, x.from, x.mine(func(*runtimev1.Event) bool { return true })); err == nil {
			t.Errorf("an event of the run came before its commit")
		}
		t.prompts(p, x.ref, t.o.Prompts.Text, 0)
		_, err := p.Conversations.AbandonRun(t.fast(), &runtimev1.AbandonRunRequest{RunId: x.run})
		t.must(err, "AbandonRun")
	}},
	{group: "send", name: "a busy conversation refuses", run: func(t *T) {
		p := t.start()
		ref := t.session(p)
		x := t.send(p, ref, t.need(t.o.Prompts.Long, "long"))
		_, err := p.Conversations.PrepareRun(t.settings(), &runtimev1.PrepareRunRequest{Session: x.ref, RunId: runID(), Input: prompt("Another.")})
		t.wantCode("a second prompt while a run is open", err, codes.RunActive, codes.SessionInUse, codes.SessionsFull)
		x.end()
		y := t.send(p, x.ref, t.o.Prompts.Text)
		y.end()
	}},
	{group: "send", name: "two conversations side by side", run: func(t *T) {
		p := t.start()
		a := t.send(p, t.session(p), t.need(t.o.Prompts.Long, "long"))
		r, err := p.Conversations.PrepareRun(t.settings(), &runtimev1.PrepareRunRequest{Session: t.session(p), RunId: runID(), Input: prompt(t.o.Prompts.Text)})
		if err != nil {
			t.wantCode("a second conversation", err, codes.SessionsFull)
			t.skip("one conversation at a time")
		}
		b := t.send(p, &runtimev1.SessionRef{SessionId: id("conform-"), ProjectPath: t.o.Project}, t.o.Prompts.Text)
		_ = r
		b.end()
		a.end()
		a.sameText()
		b.sameText()
	}},
}

// sameText compares the chunks with the reply the plugin gave at the end and with the history.
func (x *turn) sameText() {
	t := x.t
	live := x.text()
	if m := x.ended.GetMessage(); m != nil {
		if final := textOf(m.GetParts()); final != live && live != "" {
			t.Errorf("the final message differs from the chunks: %d and %d bytes", len(final), len(live))
		}
	}
	var kept strings.Builder
	for _, m := range t.history(x.p, x.ref, 100) {
		if m.GetRole() == runtimev1.Role_ROLE_ASSISTANT && (m.GetRunId() == x.run || m.GetRunId() == "") {
			kept.WriteString(textOf(m.GetParts()))
		}
	}
	if live == "" {
		t.Errorf("the run said nothing")
	} else if !strings.Contains(kept.String(), live) {
		t.Errorf("the history has %d bytes of reply that are not the %d bytes of the chunks", kept.Len(), len(live))
	}
}

func textOf(parts []*runtimev1.Part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.GetText())
	}
	return b.String()
}

// prompts counts the rows of a prompt in the history.
func (t *T) prompts(p *process, ref *runtimev1.SessionRef, text string, want int) {
	n := 0
	for _, m := range t.history(p, ref, 100) {
		if m.GetRole() == runtimev1.Role_ROLE_USER && strings.Contains(textOf(m.GetParts()), text) {
			n++
		}
	}
	if n != want {
		t.Errorf("the history has the prompt %d times, want %d", n, want)
	}
}

// cancelCases are about the end a person wants.
var cancelCases = []testCase{
	{group: "cancel", name: "before the commit", run: func(t *T) {
		p := t.start()
		ref := t.session(p)
		x := t.prepare(p, ref, t.o.Prompts.Text)
		for range 2 {
			_, err := p.Conversations.AbandonRun(t.fast(), &runtimev1.AbandonRunRequest{RunId: x.run})
			t.must(err, "AbandonRun")
		}
		r, err := p.Conversations.CommitRun(t.settings(), &runtimev1.CommitRunRequest{RunId: x.run})
		t.must(err, "CommitRun")
		if r.GetOutcome() != runtimev1.Outcome_OUTCOME_NOT_DISPATCHED {
			t.Errorf("an abandoned run was committed: %v", r.GetOutcome())
		}
		y := t.send(p, x.ref, t.o.Prompts.Text)
		y.end()
	}},
	{group: "cancel", name: "while it streams", run: func(t *T) {
		p := t.start()
		x := t.send(p, t.session(p), t.need(t.o.Prompts.Long, "long"))
		x.wait("text", isText)
		for i := range 2 {
			r, err := p.Conversations.StopRun(t.settings(), &runtimev1.StopRunRequest{Session: x.ref, RunId: x.run})
			t.must(err, "StopRun")
			if i == 0 && r.GetOutcome() != runtimev1.Outcome_OUTCOME_DISPATCHED {
				t.Errorf("StopRun answered %v %s", r.GetOutcome(), r.GetCode())
			}
		}
		if end := x.end(); end.GetReason() != runtimev1.EndReason_END_REASON_CANCELLED {
			t.Errorf("the stopped run ended %v, want cancelled", end.GetReason())
		}
		x.quiet(silence)
	}},
	{group: "cancel", name: "after the end", run: func(t *T) {
		p := t.start()
		x := t.send(p, t.session(p), t.o.Prompts.Text)
		x.end()
		x.wantStopped(x.run)
		x.wantStopped(runID())
		x.quiet(silence)
	}},
	{group: "cancel", name: "a committed run cannot be abandoned", run: func(t *T) {
		p := t.start()
		x := t.send(p, t.session(p), t.o.Prompts.Text)
		_, err := p.Conversations.AbandonRun(t.fast(), &runtimev1.AbandonRunRequest{RunId: x.run})
		t.must(err, "AbandonRun")
		if end := x.end(); end.GetReason() != runtimev1.EndReason_END_REASON_COMPLETED {
			t.Errorf("the run ended %v %s", end.GetReason(), end.GetCode())
		}
	}},
	{group: "cancel", name: "steering reaches only a running reply", needs: caps("steer"), run: func(t *T) {
		p := t.start()
		x := t.send(p, t.session(p), t.need(t.o.Prompts.Steer, "steer"))
		x.wait("text", isText)
		r, err := p.Conversations.SteerRun(t.settings(), &runtimev1.SteerRunRequest{Session: x.ref, RunId: x.run, Text: "Also this."})
		t.must(err, "SteerRun")
		if r.GetOutcome() != runtimev1.Outcome_OUTCOME_DISPATCHED {
			t.Errorf("SteerRun answered %v %s", r.GetOutcome(), r.GetCode())
		}
		x.end()
		r, err = p.Conversations.SteerRun(t.settings(), &runtimev1.SteerRunRequest{Session: x.ref, RunId: x.run, Text: "Too late."})
		t.must(err, "SteerRun after the end")
		if r.GetOutcome() != runtimev1.Outcome_OUTCOME_NOT_DISPATCHED || r.GetCode() == "" {
			t.Errorf("a late SteerRun answered %v %q", r.GetOutcome(), r.GetCode())
		}
		x.quiet(silence)
	}},
}

func (x *turn) wantStopped(run string) {
	r, err := x.p.Conversations.StopRun(x.t.settings(), &runtimev1.StopRunRequest{Session: x.ref, RunId: run})
	x.t.must(err, "StopRun")
	if r.GetOutcome() != runtimev1.Outcome_OUTCOME_NOT_DISPATCHED || r.GetCode() != codes.RunNotActive {
		x.t.Errorf("StopRun of a run that is not active answered %v %q, want not dispatched, run_not_active", r.GetOutcome(), r.GetCode())
	}
}
