package agent

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"time"
	"unicode/utf16"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
	"github.com/openphone-host/openphone/sdk/serve"
)

// settleAfter is how long a prompt whose acknowledgement is missing is given to show up by itself.
const settleAfter = 45 * time.Second

// prepared is a prompt that passed every check and waits for its word.
type prepared struct {
	link   *link
	thread *thread
	made   bool // the thread was made here
	ref    runtime.SessionRef
	input  []appserver.UserInput
	grant  grant
	effort string
}

// PrepareRun implements runtime.Runtime. It may start or resume the thread; nothing of the prompt is sent.
func (a *Agent) PrepareRun(ctx context.Context, r *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error) {
	if err := a.admit(); err != nil {
		return nil, err
	}
	input, err := prompt(r.Input)
	if err != nil {
		return nil, err
	}
	l, err := a.connected(ctx)
	if err != nil {
		return nil, err
	}
	t, rec, err := a.ensure(ctx, l, r.Session, "")
	if err != nil {
		return nil, err
	}
	effort, err := a.promptOptions(ctx, l, t, r.Options)
	if err != nil {
		return nil, err
	}
	status := a.health.snapshot()
	a.mu.Lock()
	defer a.mu.Unlock()
	if status.Reason == codes.RuntimeLoginRequired && status.ProviderID == string(t.settings.ModelProvider) {
		return nil, codes.New(codes.RuntimeLoginRequired) // Codex would try without, and fail
	}
	if t.active != "" || t.starting != nil {
		return nil, codes.New(codes.RunActive)
	}
	if t.guard || rec.Guard {
		return nil, codes.New(codes.PermissionsNotRestored)
	}
	g, ok := effective(t.settings)
	if !ok {
		return nil, codes.New(codes.PermissionsUnverified)
	}
	ref := r.Session
	ref.NativeID = t.id
	a.prepared[r.RunID] = &prepared{link: l, thread: t, made: rec.Created, ref: ref, input: input, grant: g, effort: effort}
	return &runtime.PrepareRunResponse{
		Session: ref, ModelID: string(t.settings.Model), ProviderID: string(t.settings.ModelProvider),
	}, nil
}

// effective is the grant in force; false when it has no name, so that it could not be asked for again.
func effective(s appserver.Settings) (grant, bool) {
	if s.Profile == nil || s.Profile.ID == "" || len(s.ApprovalPolicy) == 0 {
		return grant{}, false
	}
	return grant{Profile: s.Profile.ID, Policy: string(s.ApprovalPolicy), Reviewer: s.ApprovalsReviewer}, true
}

// prompt turns the parts of a prompt into native input, in order.
func prompt(parts []runtime.Part) ([]appserver.UserInput, error) {
	var input []appserver.UserInput
	units, images, size := 0, 0, 0
	for _, p := range parts {
		if p.Data == nil && p.AttachmentID == "" {
			units += len(utf16.Encode([]rune(p.Text)))
			input = append(input, appserver.UserInput{Type: "text", Text: p.Text})
			continue
		}
		if !slices.Contains(imageTypes, p.ContentType) || p.AttachmentID != "" {
			return nil, codes.New(codes.AttachmentUnsupported)
		}
		if len(p.Data) == 0 {
			return nil, codes.New(codes.AttachmentMalformed)
		}
		if images++; images > maxImages {
			return nil, codes.New(codes.AttachmentsTooMany, "limit", "6")
		}
		if size += len(p.Data); size > maxImageBytes {
			return nil, codes.New(codes.AttachmentTooLarge)
		}
		input = append(input, appserver.UserInput{
			Type: "image", URL: "data:" + p.ContentType + ";base64," + base64.StdEncoding.EncodeToString(p.Data),
		})
	}
	switch {
	case units > maxTextUnits:
		return nil, codes.New(codes.PromptTooLong, "limit", "128000")
	case len(input) == 0:
		return nil, codes.New(codes.PromptEmpty)
	}
	return input, nil
}

// AbandonRun implements runtime.Runtime. A thread that only this prompt wanted is let go again.
func (a *Agent) AbandonRun(ctx context.Context, r *runtime.AbandonRunRequest) error {
	a.mu.Lock()
	p := a.prepared[r.RunID]
	delete(a.prepared, r.RunID)
	a.mu.Unlock()
	if p == nil || p.made {
		return nil
	}
	return a.release(ctx, p.link, p.thread)
}

// CommitRun implements runtime.Runtime. The SDK calls it once per prepared run.
func (a *Agent) CommitRun(ctx context.Context, q *runtime.CommitRunRequest) (*runtime.CommitRunResponse, error) {
	a.mu.Lock()
	p := a.prepared[q.RunID]
	a.mu.Unlock()
	refuse := func(code string) (*runtime.CommitRunResponse, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.prepared, q.RunID)
		if ctx.Err() != nil && p != nil { // nobody hears the answer
			a.emit(runtime.Event{
				SessionID: p.ref.SessionID, NativeID: p.ref.NativeID, RunID: q.RunID,
				RunEnded: &runtime.RunEnded{Reason: runtime.EndReasonFailed, Code: codes.RunNotDispatched},
			})
		}
		return &runtime.CommitRunResponse{Outcome: runtime.OutcomeNotDispatched, Code: code}, nil
	}
	if p == nil {
		return refuse(codes.RunNotDispatched)
	}
	// From here on a crash may have let the prompt out, so the record says so first. It is read again: a title may have
	// been given since the prompt was prepared.
	title := ""
	err := a.revise(ctx, p.ref, func(rec *record) {
		rec.handOver(q.RunID)
		title = rec.Title
	})
	if err != nil {
		a.log.Info("hand-over not recorded", "err", err)
		return refuse(codes.RunNotDispatched)
	}
	r, code := a.begin(ctx, q.RunID, p, title)
	if code != "" {
		return refuse(code)
	}
	a.o.Fault(serve.PointDispatching)
	// Once it is written it must be followed to its name, whoever still waits.
	turn, err := p.link.client.TurnStart(context.WithoutCancel(ctx), appserver.TurnParams{
		ThreadID: p.thread.id, Input: p.input, ClientID: q.RunID, Effort: p.effort,
		ApprovalPolicy: p.grant.policy(), ApprovalsReviewer: p.grant.Reviewer, Permissions: p.grant.Profile,
	})
	a.o.Fault(serve.PointDispatched)
	if err != nil && appserver.Rejected(err) {
		a.mu.Lock()
		a.undo(p.thread, r)
		a.mu.Unlock()
		a.log.Info("prompt refused", "err", err)
		return refuse(codes.Of(native(err)))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.bind(p.thread, r, turn.ID)
		return &runtime.CommitRunResponse{Outcome: runtime.OutcomeDispatched, NativeRunID: turn.ID}, nil
	}
	if r.turn != "" { // the user message has named the turn meanwhile
		return &runtime.CommitRunResponse{Outcome: runtime.OutcomeDispatched, NativeRunID: r.turn}, nil
	}
	a.spawn(func() { a.settle(r) })
	return &runtime.CommitRunResponse{Outcome: runtime.OutcomeUnknown, Code: codes.OutcomeUnknown}, nil
}

// begin makes the run known before its first byte leaves, after a last look: since turn/start steers a running turn,
// and since the permissions are part of what was prepared, both are compared inside the same critical section.
func (a *Agent) begin(ctx context.Context, runID string, p *prepared, title string) (*run, string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := p.thread
	now, ok := effective(t.settings)
	switch {
	case ctx.Err() != nil, a.link != p.link, a.threads[t.id] != t:
		return nil, codes.RunNotDispatched
	case t.active != "" || t.starting != nil:
		return nil, codes.RunActive
	case t.guard || !ok || now != p.grant:
		return nil, codes.PermissionsNotRestored
	}
	delete(a.prepared, runID)
	r := newRun(runID, p.ref)
	r.title = title
	a.runs[runID] = r
	t.starting = r
	return r, ""
}

// undo forgets a run that was refused. What arrived meanwhile belongs to others. Called with the mutex held.
func (a *Agent) undo(t *thread, r *run) {
	delete(a.runs, r.id)
	if t.starting == r {
		t.starting = nil
	}
	a.flush(t)
}

// bind ties a run to its turn and goes through what was kept back. Called with the mutex held.
func (a *Agent) bind(t *thread, r *run, turnID string) {
	if r.turn != "" || r.ended {
		return
	}
	r.turn = turnID
	if t.starting == r {
		t.starting = nil
	}
	if other := a.turns[turnID]; other != nil {
		// Codex has added the prompt to a turn that was running already: both end with it.
		other.joined = append(other.joined, r)
	} else {
		a.turns[turnID] = r
	}
	if !r.lost {
		t.active = turnID
	}
	a.emit(r.event(runtime.Event{RunStarted: &runtime.RunStarted{NativeRunID: turnID}}))
	if r.stopWanted {
		a.interrupt(t.id, r)
	}
	a.flush(t)
}

// flush handles what was kept back. Called with the mutex held.
func (a *Agent) flush(t *thread) {
	held := t.held
	t.held = nil
	for _, n := range held {
		a.take(n)
	}
}

// settle finds out about a prompt whose acknowledgement never came.
func (a *Agent) settle(r *run) {
	t := time.NewTimer(settleAfter)
	defer t.Stop()
	select {
	case <-t.C:
	case <-a.life.Done():
		return
	}
	a.mu.Lock()
	open := !r.ended && r.turn == "" && !r.lost
	l := a.link
	a.mu.Unlock()
	if !open || l == nil {
		return // bound meanwhile, or the next child tells
	}
	ctx, cancel := context.WithTimeout(a.life, lookTimeout)
	defer cancel()
	a.resolve(ctx, l, r)
}

// StopRun implements runtime.Runtime.
func (a *Agent) StopRun(ctx context.Context, q *runtime.StopRunRequest) (*runtime.StopRunResponse, error) {
	a.mu.Lock()
	r := a.runs[q.RunID]
	l := a.link
	if r == nil {
		a.mu.Unlock()
		return &runtime.StopRunResponse{Outcome: runtime.OutcomeNotDispatched, Code: codes.RunNotActive}, nil
	}
	r.stopWanted = true
	turn, lost := r.turn, r.lost
	thread := r.session.NativeID
	a.mu.Unlock()
	switch {
	case l == nil || lost:
		return &runtime.StopRunResponse{Outcome: runtime.OutcomeNotDispatched, Code: codes.RuntimeUnavailable}, nil
	case turn == "": // its turn has no name yet; it is stopped as soon as it has one
		return &runtime.StopRunResponse{Outcome: runtime.OutcomeDispatched}, nil
	}
	err := l.client.TurnInterrupt(ctx, thread, turn)
	switch {
	case err == nil:
		return &runtime.StopRunResponse{Outcome: runtime.OutcomeDispatched}, nil
	case appserver.Classify(err) == appserver.RefusalNoActiveTurn, appserver.Classify(err) == appserver.RefusalOtherTurn:
		return &runtime.StopRunResponse{Outcome: runtime.OutcomeNotDispatched, Code: codes.RunNotActive}, nil
	case appserver.Rejected(err):
		return &runtime.StopRunResponse{Outcome: runtime.OutcomeNotDispatched, Code: codes.StopFailed}, nil
	}
	return &runtime.StopRunResponse{Outcome: runtime.OutcomeUnknown, Code: codes.StopFailed}, nil
}

// interrupt asks for the end of a run from inside a handler. Called with the mutex held.
func (a *Agent) interrupt(threadID string, r *run) {
	l, turn := a.link, r.turn
	if l == nil || turn == "" {
		return
	}
	a.spawn(func() {
		if err := l.client.TurnInterrupt(a.life, threadID, turn); err != nil {
			a.log.Info("interrupt failed", "err", err)
		}
	})
}

// SteerRun implements runtime.Steerer.
func (a *Agent) SteerRun(ctx context.Context, q *runtime.SteerRunRequest) (*runtime.SteerRunResponse, error) {
	a.mu.Lock()
	r := a.runs[q.RunID]
	l := a.link
	var turn, thread string
	if r != nil {
		turn, thread = r.turn, r.session.NativeID
	}
	ready := r != nil && turn != "" && !r.lost && l != nil
	a.mu.Unlock()
	if !ready {
		return &runtime.SteerRunResponse{Outcome: runtime.OutcomeNotDispatched, Code: codes.RunNotActive}, nil
	}
	err := l.client.TurnSteer(ctx, thread, turn, []appserver.UserInput{{Type: "text", Text: q.Text}})
	switch {
	case err == nil, errors.Is(err, appserver.ErrReply):
		return &runtime.SteerRunResponse{Outcome: runtime.OutcomeDispatched}, nil
	case appserver.Classify(err) == appserver.RefusalNoActiveTurn, appserver.Classify(err) == appserver.RefusalOtherTurn:
		return &runtime.SteerRunResponse{Outcome: runtime.OutcomeNotDispatched, Code: codes.RunNotActive}, nil
	case appserver.Rejected(err):
		return &runtime.SteerRunResponse{Outcome: runtime.OutcomeNotDispatched, Code: codes.SteeringRefused}, nil
	}
	return &runtime.SteerRunResponse{Outcome: runtime.OutcomeUnknown, Code: codes.OutcomeUnknown}, nil
}
