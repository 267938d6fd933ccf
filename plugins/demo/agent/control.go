package agent

import (
	"context"
	"strings"
	"time"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
	"github.com/openphone-host/openphone/sdk/serve"
)

// maxTitle is how many characters of a first prompt become a title.
const maxTitle = 60

// text is what the person typed, attachments left out.
func text(parts []runtime.Part) string {
	var list []string
	for _, p := range parts {
		if p.Data == nil && p.AttachmentID == "" {
			list = append(list, p.Text)
		}
	}
	return strings.Join(list, "\n")
}

// PrepareRun implements runtime.Runtime.
func (a *Agent) PrepareRun(ctx context.Context, r *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error) {
	s, err := a.opened()
	if err != nil {
		return nil, err
	}
	script := parse(text(r.Input))
	if err := a.misbehave(ctx, script, "prepare"); err != nil {
		return nil, err
	}
	if x, ok := find(script, "crash"); ok && strings.HasPrefix(x.arg, "prepare") {
		serve.Arm(x.arg)
		serve.Fault(serve.PointPrepareReceived) // passed before the script was known, so it happens here
	}
	if x, ok := find(script, "refuse"); ok {
		return nil, codes.New(orElse(x.arg, "demo.refused")).With(codes.NotDispatched)
	}
	for id, v := range r.Options {
		if err := checkOption(id, v); err != nil {
			return nil, err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	c, err := s.find(r.Session)
	if err != nil {
		return nil, err
	}
	for _, x := range a.live {
		if x.ref.NativeID == nativeOf(r.Session) {
			return nil, codes.New(codes.RunActive)
		}
	}
	a.prepared[r.RunID] = r
	ref := r.Session
	ref.NativeID = nativeOf(ref)
	return &runtime.PrepareRunResponse{Session: ref, ModelID: c.modelID(), ProviderID: provider}, nil
}

// misbehave does what a script asks of a call: hang, be slow, panic.
func (a *Agent) misbehave(ctx context.Context, script []step, call string) error {
	a.maybeHang(call)
	for _, x := range script {
		switch {
		case x.name == "hang" && x.arg == call:
			<-make(chan struct{})
		case x.name == "panic" && x.arg == call:
			panic("demo: told to panic")
		case x.name == "slow" && strings.HasPrefix(x.arg, call+" "):
			ms := step{arg: strings.TrimPrefix(x.arg, call+" ")}.number("", 0)
			if err := sleepUntil(ctx, time.Now().Add(time.Duration(ms)*time.Millisecond)); err != nil {
				return err
			}
		}
	}
	return nil
}

func orElse(s, def string) string {
	if s = strings.TrimSpace(s); s == "" {
		return def
	}
	return s
}

// CommitRun implements runtime.Runtime: the prompt is dispatched with its line in the journal.
func (a *Agent) CommitRun(ctx context.Context, r *runtime.CommitRunRequest) (*runtime.CommitRunResponse, error) {
	a.mu.Lock()
	q := a.prepared[r.RunID]
	delete(a.prepared, r.RunID)
	a.mu.Unlock()
	notDispatched := &runtime.CommitRunResponse{Outcome: runtime.OutcomeNotDispatched, Code: codes.RunNotDispatched}
	if q == nil {
		return notDispatched, nil
	}
	prompt := text(q.Input)
	script := parse(prompt)
	if x, ok := find(script, "crash"); ok && x.arg != "" {
		serve.Arm(x.arg)
	}
	if err := a.misbehave(ctx, script, "commit"); err != nil {
		return notDispatched, nil
	}
	if _, ok := find(script, "notdispatched"); ok || ctx.Err() != nil {
		return notDispatched, nil
	}
	serve.Fault(serve.PointCommitReceived) // passed before the script was known, so it happens here
	x, err := a.dispatch(q, prompt, script)
	if err != nil {
		return &runtime.CommitRunResponse{Outcome: runtime.OutcomeNotDispatched, Code: codes.Of(err)}, nil
	}
	a.wg.Go(x.main)
	if _, ok := find(script, "unknown"); ok {
		return &runtime.CommitRunResponse{Outcome: runtime.OutcomeUnknown, Code: codes.OutcomeUnknown}, nil
	}
	return &runtime.CommitRunResponse{Outcome: runtime.OutcomeDispatched, NativeRunID: x.nativeID()}, nil
}

// dispatch writes the prompt into the journal, which is the moment the runtime has it.
func (a *Agent) dispatch(q *runtime.PrepareRunRequest, prompt string, script []step) (*run, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.store
	title := strings.TrimSpace(strings.SplitN(prompt, "\n", 2)[0])
	if rs := []rune(title); len(rs) > maxTitle {
		title = string(rs[:maxTitle])
	}
	c, err := s.ensure(q.Session, title)
	if err != nil {
		return nil, err
	}
	user := runtime.Message{MessageID: "u-" + q.RunID, Role: runtime.RoleUser, RunID: q.RunID, CreatedAt: time.Now().UTC()}
	for _, p := range q.Input {
		if p.Data != nil {
			id, err := s.keepFile(p.Data)
			if err != nil {
				return nil, codes.New(codes.StoreUnreadable).With(codes.NotDispatched).Because(err)
			}
			p = runtime.Part{AttachmentID: id, ContentType: p.ContentType, Name: p.Name, Size: ptr(uint64(len(p.Data)))}
		}
		user.Parts = append(user.Parts, p)
	}
	_, survive := find(script, "survive")
	serve.Fault(serve.PointDispatching)
	if err := s.append(record{T: "run", Session: c.id, Run: q.RunID, Prompt: prompt, Survive: survive}); err != nil {
		return nil, err
	}
	serve.Fault(serve.PointDispatched)
	if err := s.append(record{T: "message", Session: c.id, Message: &user}); err != nil {
		return nil, err
	}
	ref := c.ref()
	if q.Session.SessionID != "" {
		ref.SessionID = q.Session.SessionID
	}
	x := newRun(a, ref, s.runs[q.RunID], script)
	a.live[q.RunID] = x
	return x, nil
}

// AbandonRun implements runtime.Runtime.
func (a *Agent) AbandonRun(_ context.Context, r *runtime.AbandonRunRequest) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.prepared, r.RunID)
	return nil
}

// liveRun finds a run that has not ended, in the conversation the caller means.
func (a *Agent) liveRun(ref runtime.SessionRef, id string) *run {
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.live[id]
	if x == nil || x.ref.NativeID != nativeOf(ref) {
		return nil
	}
	return x
}

// StopRun implements runtime.Runtime.
func (a *Agent) StopRun(_ context.Context, r *runtime.StopRunRequest) (*runtime.StopRunResponse, error) {
	a.maybeHang("stop")
	x := a.liveRun(r.Session, r.RunID)
	if x == nil {
		return &runtime.StopRunResponse{Outcome: runtime.OutcomeNotDispatched, Code: codes.RunNotActive}, nil
	}
	x.stop()
	return &runtime.StopRunResponse{Outcome: runtime.OutcomeDispatched}, nil
}

// SteerRun implements runtime.Steerer.
func (a *Agent) SteerRun(_ context.Context, r *runtime.SteerRunRequest) (*runtime.SteerRunResponse, error) {
	a.maybeHang("steer")
	x := a.liveRun(r.Session, r.RunID)
	if x == nil || !x.steer(r.Text) {
		return &runtime.SteerRunResponse{Outcome: runtime.OutcomeNotDispatched, Code: codes.RunNotActive}, nil
	}
	return &runtime.SteerRunResponse{Outcome: runtime.OutcomeDispatched}, nil
}

// ResolveInteraction implements runtime.Resolver.
func (a *Agent) ResolveInteraction(_ context.Context, r *runtime.ResolveInteractionRequest) (*runtime.ResolveInteractionResponse, error) {
	a.maybeHang("resolve")
	gone := &runtime.ResolveInteractionResponse{Outcome: runtime.OutcomeNotDispatched, Code: codes.InteractionNotPending}
	a.mu.Lock()
	var x *run
	for _, l := range a.live {
		if l.ref.NativeID == nativeOf(r.Session) && l.isAsking(r.InteractionID) {
			x = l
		}
	}
	a.mu.Unlock()
	if x == nil {
		return gone, nil
	}
	code, ok := x.answer(r)
	switch {
	case code != "":
		return &runtime.ResolveInteractionResponse{Outcome: runtime.OutcomeNotDispatched, Code: code}, nil
	case !ok:
		return gone, nil
	}
	return &runtime.ResolveInteractionResponse{Outcome: runtime.OutcomeDispatched}, nil
}

// Asks implements runtime.Resolver.
func (a *Agent) Asks() (questions, approvals bool) { return true, true }

// Reconcile implements runtime.Reconciler. The journal is the proof: a prompt that is not in it never arrived.
func (a *Agent) Reconcile(_ context.Context, r *runtime.ReconcileRequest) (*runtime.ReconcileResponse, error) {
	a.maybeHang("reconcile")
	s, err := a.opened()
	if err != nil {
		return nil, err
	}
	out := &runtime.ReconcileResponse{}
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := map[string]bool{}
	for _, o := range r.Runs {
		asked[o.RunID] = true
		out.Runs = append(out.Runs, a.stateOf(s, o))
	}
	for id, x := range a.live {
		if !asked[id] {
			out.Runs = append(out.Runs, runtime.RunState{Session: x.ref, RunID: id, NativeRunID: x.nativeID(), Phase: runtime.RunPhaseRunning})
		}
		out.Interactions = append(out.Interactions, x.open()...)
		x.announce()
	}
	out.AsOfSeq = a.sink.Seq()
	return out, nil
}

// stateOf says what became of one run, and goes on with one that outlived its process. Called with the lock held.
func (a *Agent) stateOf(s *store, o runtime.OpenRun) runtime.RunState {
	st := runtime.RunState{Session: o.Session, RunID: o.RunID, NativeRunID: o.NativeRunID}
	n := s.runs[o.RunID]
	switch {
	case n == nil:
		st.Phase = runtime.RunPhaseNeverSeen
		return st
	case n.end != nil:
		st.Phase, st.End = runtime.RunPhaseEnded, n.end
		return st
	}
	if a.live[o.RunID] != nil {
		st.Phase = runtime.RunPhaseRunning
		return st
	}
	ref := o.Session
	ref.NativeID = n.session
	if n.survive {
		x := newRun(a, ref, n, parse(n.prompt))
		x.resumed = true
		a.live[o.RunID] = x
		a.wg.Go(x.main)
		st.Phase = runtime.RunPhaseRunning
		return st
	}
	end := &runtime.RunEnded{Reason: runtime.EndReasonFailed, Code: codes.Interrupted}
	if err := s.append(record{T: "end", Session: n.session, Run: n.id, End: end}); err != nil {
		return st // not even the journal can be written: nothing is known
	}
	st.Phase, st.End = runtime.RunPhaseEnded, end
	return st
}
