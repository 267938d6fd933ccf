package sessions

import (
	"context"
	"time"

	"github.com/openphone-host/openphone/host/consent"
	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/host/policy"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// byPolicy is who answered when the autonomy level left nothing to ask.
const byPolicy = "policy"

// Questions lists what the runtime asks in a conversation, oldest first.
func (c *Conversations) Questions(_ context.Context, key string) ([]OpenInteraction, error) {
	if _, err := c.find(key); err != nil {
		return nil, err
	}
	return openList(c.book.List(key, false)), nil
}

// Approvals lists what waits for consent; key empty: in all conversations.
func (c *Conversations) Approvals(_ context.Context, key string) ([]OpenInteraction, error) {
	if key != "" {
		if _, err := c.find(key); err != nil {
			return nil, err
		}
	}
	return openList(c.book.List(key, true)), nil
}

func openList(list []consent.Asked) []OpenInteraction {
	open := make([]OpenInteraction, len(list))
	for i, a := range list {
		open[i] = openInteraction(a)
	}
	return open
}

func openInteraction(a consent.Asked) OpenInteraction {
	return OpenInteraction{SessionKey: a.SessionKey, RunID: a.RunID, Request: a.Request}
}

// Respond gives a person's answer to a question, once. Errors: answer_invalid (the question stays),
// interaction_not_pending, interaction_answered, answer_unknown.
func (c *Conversations) Respond(ctx context.Context, by Person, key, questionID string, a Answer) error {
	asked, ok := c.book.Get(questionID)
	switch {
	case !ok:
		return c.past(ctx, by, questionID)
	case asked.SessionKey != key, asked.Request.Question == nil:
		return codes.New(codes.InteractionNotPending)
	}
	if a.Cancel {
		return c.answer(ctx, by.Label, asked, &runtime.ResolveInteractionRequest{Cancel: true}, runtime.ClosureUnspecified)
	}
	answers, err := fill(asked.Request.Question, a.Fields)
	if err != nil {
		return err
	}
	return c.answer(ctx, by.Label, asked, &runtime.ResolveInteractionRequest{Answers: answers}, runtime.ClosureAnswered)
}

// Resolve gives a person's consent or refusal, once. Errors: decision_invalid, interaction_not_pending,
// interaction_answered, answer_unknown.
func (c *Conversations) Resolve(ctx context.Context, by Person, approvalID string, d runtime.Decision) error {
	if d != runtime.DecisionAllowOnce && d != runtime.DecisionDeny {
		return codes.New(codes.DecisionInvalid)
	}
	asked, ok := c.book.Get(approvalID)
	switch {
	case !ok:
		return c.past(ctx, by, approvalID)
	case asked.Request.Approval == nil:
		return codes.New(codes.InteractionNotPending)
	}
	return c.answer(ctx, by.Label, asked, &runtime.ResolveInteractionRequest{Decision: d}, closureOf(d))
}

// past tells apart what was answered and what is gone.
func (c *Conversations) past(ctx context.Context, by Person, id string) error {
	ticket, err := c.book.Claim(ctx, id, by.Label)
	if err != nil {
		return err
	}
	// Asked again this moment: it is shown as new, and this answer was meant for the old one.
	if _, _, err := c.book.Settle(ctx, ticket, consent.Answer{Outcome: runtime.OutcomeNotDispatched}); err != nil {
		return err
	}
	return codes.New(codes.InteractionNotPending)
}

func closureOf(d runtime.Decision) runtime.Closure {
	if d == runtime.DecisionAllowOnce {
		return runtime.ClosureAllowed
	}
	return runtime.ClosureDenied
}

// answer claims the interaction, tells the runtime once, and closes it if that was taken.
func (c *Conversations) answer(ctx context.Context, by string, asked consent.Asked, req *runtime.ResolveInteractionRequest, closure runtime.Closure) error {
	conv, err := c.find(asked.SessionKey)
	if err != nil {
		return err
	}
	ticket, err := c.book.Claim(ctx, asked.ID, by)
	if err != nil {
		return err
	}
	req.Session, req.InteractionID = c.refOf(conv), asked.NativeID
	// Once claimed, a phone that goes away changes nothing: the answer is given and its outcome noted.
	ctx = context.WithoutCancel(ctx)
	resp, err := c.rt.ResolveInteraction(ctx, req)
	a := consent.Answer{Outcome: runtime.OutcomeUnknown, Closure: closure}
	switch {
	case err == nil:
		a.Outcome, a.Code = resp.Outcome, resp.Code
	case codes.As(err) != nil && codes.As(err).Outcome == codes.NotDispatched:
		a.Outcome, a.Code = runtime.OutcomeNotDispatched, codes.Of(err)
	}
	ended, closed, serr := c.book.Settle(ctx, ticket, a)
	if serr != nil {
		c.log.Error("the end of an interaction was not written", obs.KeyError, serr)
	}
	if closed {
		c.shut(ended)
	}
	switch a.Outcome {
	case runtime.OutcomeDispatched:
		who := "person"
		if by == byPolicy {
			who = byPolicy
		}
		c.count.interactions.WithLabelValues(who).Inc()
		return nil
	case runtime.OutcomeNotDispatched:
		return named(a.Code, codes.InteractionNotPending).With(codes.NotDispatched)
	}
	return codes.New(codes.AnswerUnknown).Because(err)
}

// openInteraction takes what the runtime asks. The policy may answer an approval; a question is never answered by the
// host. What cannot be shown is refused to the runtime at once.
func (c *Conversations) openInteraction(conv *conversation, runID string, in *runtime.Interaction) {
	if q := in.Question; q != nil && !showable(q) {
		c.refuse(conv, in)
		return
	}
	ctx := context.WithoutCancel(c.life)
	asked, fresh, err := c.book.Open(ctx, conv.key, runID, *in)
	switch {
	case err != nil:
		c.log.Warn("an interaction was not opened", obs.KeyError, err)
		if codes.Of(err) != codes.InteractionNotPending { // that one has its answer already
			c.refuse(conv, in)
		}
	case fresh:
		c.opened(conv, asked)
	}
}

// opened shows a new interaction, unless the policy has the answer.
func (c *Conversations) opened(conv *conversation, asked consent.Asked) {
	if a := asked.Request.Approval; a != nil {
		level := policy.Level(policy.Levels{Session: c.opts.Autonomy, Runtime: c.opts.Autonomy, User: c.opts.Autonomy})
		if d, alone := policy.Approval(level, *a); alone && c.begin(func() {
			err := c.answer(c.life, byPolicy, asked, &runtime.ResolveInteractionRequest{Decision: d}, closureOf(d))
			if err != nil {
				c.log.Warn("the policy's answer was not taken", obs.KeyError, err)
				if _, open := c.book.Get(asked.ID); open {
					c.show(conv, asked) // then a person has to
				}
			}
		}) {
			return
		}
	}
	c.show(conv, asked)
}

func (c *Conversations) show(conv *conversation, asked consent.Asked) {
	c.mu.Lock()
	open := openInteraction(asked)
	c.publish(Update{Kind: InteractionOpened, SessionKey: conv.key, RunID: asked.RunID, At: time.Now(), Interaction: &open})
	c.publishAttention(conv)
	c.mu.Unlock()
	c.flush()
}

// refuse tells the runtime that nobody will answer.
func (c *Conversations) refuse(conv *conversation, in *runtime.Interaction) {
	req := &runtime.ResolveInteractionRequest{Session: c.refOf(conv), InteractionID: in.InteractionID}
	if in.Approval != nil {
		req.Decision = runtime.DecisionDeny
	} else {
		req.Cancel = true
	}
	c.count.interactions.WithLabelValues("refused").Inc()
	c.begin(func() {
		if _, err := c.rt.ResolveInteraction(c.life, req); err != nil {
			c.log.Warn("an interaction was not refused", obs.KeyError, err)
		}
	})
}

// closeInteraction takes the runtime's word that it no longer asks.
func (c *Conversations) closeInteraction(conv *conversation, in *runtime.InteractionClosed) {
	ended, closed, err := c.book.Close(context.WithoutCancel(c.life), conv.key, in.InteractionID, in.Closure)
	if err != nil {
		c.log.Error("the end of an interaction was not written", obs.KeyError, err)
	}
	if closed {
		c.shut(ended)
	}
}

// shut tells phones that interactions ended, and then what that changed.
func (c *Conversations) shut(list ...consent.Ended) {
	c.mu.Lock()
	for _, e := range list {
		open := openInteraction(e.Asked)
		c.publish(Update{
			Kind: InteractionClosed, SessionKey: e.SessionKey, RunID: e.RunID, At: time.Now(), Interaction: &open,
			Closure: e.Closure, AnsweredBy: e.By,
		})
	}
	for _, e := range list {
		if conv := c.byKey[e.SessionKey]; conv != nil {
			c.publishAttention(conv)
		}
	}
	c.mu.Unlock()
	c.flush()
}

// retireInteractions closes what a run still asks, before its end is told. What belongs to no run goes with the last.
func (c *Conversations) retireInteractions(conv *conversation, runID string) {
	c.mu.Lock()
	last := len(conv.runs) <= 1
	c.mu.Unlock()
	ctx := context.WithoutCancel(c.life)
	var list []consent.Ended
	var err error
	if last {
		list, err = c.book.CloseSession(ctx, conv.key, runtime.ClosureExpired)
	} else {
		list, err = c.book.CloseRun(ctx, conv.key, runID, runtime.ClosureExpired)
	}
	if err != nil {
		c.log.Error("the end of an interaction was not written", obs.KeyError, err)
	}
	c.shut(list...)
}

// settleInteractions compares with everything the runtime says it still asks.
func (c *Conversations) settleInteractions(list []runtime.OpenInteraction) {
	var still []consent.Still
	c.mu.Lock()
	for _, x := range list {
		conv := c.ofNames(x.Session.SessionID, x.Session.NativeID)
		if r := c.runs[x.RunID]; r != nil {
			conv = r.conv
		}
		if conv != nil && x.Interaction != nil {
			still = append(still, consent.Still{SessionKey: conv.key, RunID: x.RunID, Interaction: *x.Interaction})
		}
	}
	c.mu.Unlock()
	opened, ended, refused := c.book.Reconcile(context.WithoutCancel(c.life), still)
	c.shut(ended...)
	for id, err := range refused {
		c.log.Warn("an interaction was not opened again", obs.KeyError, err, "interaction", obs.ID(id))
	}
	for _, a := range opened {
		c.mu.Lock()
		conv := c.byKey[a.SessionKey]
		c.mu.Unlock()
		if conv != nil {
			c.opened(conv, a)
		}
	}
}

// loseInteractions cancels everything, because the plugin that asked is gone.
func (c *Conversations) loseInteractions() {
	list, err := c.book.Lost(context.WithoutCancel(c.life))
	if err != nil {
		c.log.Error("lost interactions were not written", obs.KeyError, err)
	}
	c.shut(list...)
}
