package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// pending is an open interaction.
type pending struct {
	in     *runtime.Interaction
	closed *runtime.InteractionClosed // set with the answer
	values []string
}

// ask opens interactions together and waits until all are answered. It gives the answers, in order.
func (x *run) ask(list ...*runtime.Interaction) ([]record, error) {
	out := make([]record, len(list))
	var open []*pending
	for i, in := range list {
		x.asks++
		in.InteractionID = fmt.Sprintf("i-%s-%d", x.n.id, x.asks)
		if rec, ok := x.answered(in.InteractionID); ok { // by an earlier process
			out[i] = rec
			if rec.At.After(x.due) {
				x.due = rec.At
			}
			continue
		}
		x.caughtUp()
		in.CreatedAt = time.Now().UTC()
		p := &pending{in: in}
		open = append(open, p)
		x.mu.Lock()
		x.pending[in.InteractionID] = p
		x.mu.Unlock()
		x.emit(runtime.Event{InteractionOpened: in})
	}
	if len(open) == 0 {
		return out, nil
	}
	x.a.tellActivity(x.ref)
	err := x.block(0, func() bool {
		x.retire()
		x.mu.Lock()
		defer x.mu.Unlock()
		return len(x.pending) == 0
	})
	if err != nil {
		return nil, err
	}
	x.a.tellActivity(x.ref)
	for i, in := range list {
		if rec, ok := x.answered(in.InteractionID); ok {
			out[i] = rec
		}
	}
	return out, nil
}

func (x *run) answered(id string) (record, bool) {
	x.a.mu.Lock()
	defer x.a.mu.Unlock()
	rec, ok := x.n.answers[id]
	return rec, ok
}

// retire closes the interactions that were answered: the journal first, then the host.
func (x *run) retire() {
	x.mu.Lock()
	var done []*pending
	for id, p := range x.pending {
		if p.closed != nil {
			done = append(done, p)
			delete(x.pending, id)
		}
	}
	x.mu.Unlock()
	for _, p := range done {
		rec := record{T: "answer", Session: x.n.session, Run: x.n.id, Ask: p.in.InteractionID, Values: p.values, Allowed: p.closed.Closure == runtime.ClosureAllowed}
		x.a.mu.Lock()
		if err := x.a.store.append(rec); err != nil {
			x.a.log.Error("journal not written", "error", err)
		}
		x.a.mu.Unlock()
		x.emit(runtime.Event{InteractionClosed: p.closed})
	}
}

// closeAll closes what is still open when the run ends.
func (x *run) closeAll() {
	x.retire()
	x.mu.Lock()
	var ids []string
	for id := range x.pending {
		ids = append(ids, id)
	}
	clear(x.pending)
	x.mu.Unlock()
	slices.Sort(ids)
	for _, id := range ids {
		x.emit(runtime.Event{InteractionClosed: &runtime.InteractionClosed{InteractionID: id, Closure: runtime.ClosureExpired}})
	}
}

// open lists the interactions that wait.
func (x *run) open() []runtime.OpenInteraction {
	x.mu.Lock()
	defer x.mu.Unlock()
	var list []runtime.OpenInteraction
	for _, p := range x.pending {
		if p.closed == nil {
			list = append(list, runtime.OpenInteraction{Session: x.ref, RunID: x.n.id, Interaction: p.in})
		}
	}
	return list
}

func (x *run) waitingFor() runtime.AttentionKind {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range x.pending {
		if p.in.Approval != nil {
			return runtime.AttentionKindApproval
		}
		return runtime.AttentionKindInput
	}
	return runtime.AttentionKindUnspecified
}

// isAsking reports whether this interaction is one of the run's open ones.
func (x *run) isAsking(id string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.pending[id]
	return p != nil && p.closed == nil
}

// answer takes the one answer to one interaction: a code when it does not fit, false when nothing is open any more.
func (x *run) answer(r *runtime.ResolveInteractionRequest) (code string, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.pending[r.InteractionID]
	if p == nil || p.closed != nil {
		return "", false
	}
	closed := &runtime.InteractionClosed{InteractionID: r.InteractionID, Closure: runtime.ClosureCancelled}
	switch {
	case r.Cancel:
	case p.in.Approval != nil && r.Answers == nil:
		closed.Closure = runtime.ClosureDenied
		if r.Decision == runtime.DecisionAllowOnce {
			closed.Closure = runtime.ClosureAllowed
		}
	case p.in.Question != nil && r.Answers != nil:
		values, good := fits(p.in.Question, r.Answers)
		if !good {
			return codes.AnswerInvalid, false
		}
		closed.Closure, p.values = runtime.ClosureAnswered, values
	default:
		return codes.AnswerInvalid, false
	}
	p.closed = closed
	x.nudge()
	return "", true
}

// fits checks answers against the fields and gives them in the fields' order.
func fits(q *runtime.Question, a *runtime.Answers) ([]string, bool) {
	given := map[string][]string{}
	for _, x := range a.Answers {
		given[x.FieldID] = x.Values
	}
	var out []string
	for _, f := range q.Fields {
		v := given[f.FieldID]
		if len(v) == 0 || len(v) > 1 && !f.MultiSelect {
			return nil, false
		}
		for _, s := range v {
			onOffer := slices.ContainsFunc(f.Options, func(o runtime.FieldOption) bool { return o.Label == s })
			switch f.Kind {
			case runtime.FieldKindSelect:
				if !onOffer && !f.AllowCustom {
					return nil, false
				}
			case runtime.FieldKindConfirm:
				if s != "true" && s != "false" {
					return nil, false
				}
			case runtime.FieldKindLine:
				if strings.Contains(s, "\n") {
					return nil, false
				}
			}
		}
		out = append(out, strings.Join(v, ", "))
	}
	return out, len(a.Answers) == len(q.Fields)
}
