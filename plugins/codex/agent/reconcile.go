package agent

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Bounds of the search for a turn in a thread's history.
const (
	searchPage  = 25
	searchPages = 8
)

// Reconcile implements runtime.Reconciler. Nothing is loaded, resumed or sent: finished work is read from the record.
func (a *Agent) Reconcile(ctx context.Context, q *runtime.ReconcileRequest) (*runtime.ReconcileResponse, error) {
	resp := &runtime.ReconcileResponse{}
	for _, o := range q.Runs {
		s, err := a.reconcile(ctx, o)
		if err != nil {
			return nil, err
		}
		resp.Runs = append(resp.Runs, s)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.runs {
		if !slices.ContainsFunc(q.Runs, func(o runtime.OpenRun) bool { return o.RunID == r.id }) && r.turn != "" {
			resp.Runs = append(resp.Runs, runtime.RunState{
				Session: r.session, RunID: r.id, NativeRunID: r.turn, Phase: runtime.RunPhaseRunning,
			})
			a.retell(r)
		}
	}
	for _, k := range a.asks {
		resp.Interactions = append(resp.Interactions, runtime.OpenInteraction{
			Session: k.session, RunID: k.runID(), Interaction: k.interaction,
		})
	}
	resp.AsOfSeq = a.seq()
	return resp, nil
}

// reconcile answers for one run.
func (a *Agent) reconcile(ctx context.Context, o runtime.OpenRun) (runtime.RunState, error) {
	state := runtime.RunState{Session: o.Session, RunID: o.RunID, NativeRunID: o.NativeRunID}
	a.mu.Lock()
	if r := a.runs[o.RunID]; r != nil { // followed in this process: its end comes as an event
		state.Session, state.NativeRunID, state.Phase = r.session, r.turn, runtime.RunPhaseRunning
		a.retell(r)
		a.mu.Unlock()
		return state, nil
	}
	a.mu.Unlock()
	if o.Outcome == runtime.OutcomeNotDispatched {
		state.Phase = runtime.RunPhaseNeverSeen
		return state, nil
	}
	rec, err := a.load(ctx, o.Session)
	if err != nil {
		return state, err
	}
	if o.NativeRunID == "" && o.Outcome != runtime.OutcomeDispatched && !slices.Contains(rec.HandedOver, o.RunID) {
		state.Phase = runtime.RunPhaseNeverSeen // its writing had not begun when the process before this one died
		return state, nil
	}
	id := o.Session.NativeID
	if id == "" {
		id = rec.Thread
	}
	l, err := a.connected(ctx)
	if err != nil {
		return state, err
	}
	turn, err := find(ctx, l, id, o.RunID, o.NativeRunID)
	if err != nil {
		return state, native(err)
	}
	if turn == nil || !turn.Terminal() {
		// Taken and forgotten, or never written: nobody can tell.
		return state, a.forget(ctx, l, o.Session, id, o.RunID)
	}
	state.NativeRunID, state.Phase = turn.ID, runtime.RunPhaseEnded
	state.End = ending(*turn, false)
	state.End.Message = reply(ctx, l, id, *turn)
	return state, nil
}

// forget makes a thread count as empty again when its only prompt has left no trace and Codex provably has no record of
// the thread: the process that knew it is dead, Codex does not find it, and there is no file of its name. What is left
// is a name that can never be resumed, so the next prompt gets a new thread. In every doubt the thread keeps its name.
func (a *Agent) forget(ctx context.Context, l *link, ref runtime.SessionRef, id, runID string) error {
	rec, err := a.load(ctx, ref)
	if err != nil || !rec.Created || rec.Thread != id || !slices.Equal(rec.HandedOver, []string{runID}) {
		return err
	}
	_, err = l.client.ThreadRead(ctx, id)
	switch appserver.Classify(err) {
	case appserver.RefusalNotLoaded, appserver.RefusalNoRollout:
	default:
		return nil
	}
	if a.loaded(id) != nil || hasRollout(l.server.CodexHome, id) {
		return nil
	}
	rec.HandedOver = nil
	return a.save(ctx, rec)
}

// hasRollout reports that there is a file of a thread with something in it, or that there might be one.
func hasRollout(codexHome, threadID string) bool {
	if codexHome == "" || strings.ContainsAny(threadID, `*?[]\/`) {
		return true
	}
	name := "*-" + threadID + ".jsonl"
	for _, pattern := range []string{
		filepath.Join(codexHome, "sessions", "*", "*", "*", name), filepath.Join(codexHome, "sessions", name),
		filepath.Join(codexHome, "archived_sessions", name),
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return true
		}
		for _, path := range found {
			if info, err := os.Lstat(path); err != nil || info.Size() > 0 {
				return true
			}
		}
	}
	return false
}

// retell announces the whole text of a run that is followed. Called with the mutex held.
func (a *Agent) retell(r *run) {
	for _, id := range r.order {
		if p := r.parts[id]; p.text.Len() > 0 {
			a.chunk(r, id, p, p.text.String(), true)
		}
	}
}

// find looks for a turn by its name, or by the prompt's own id; nil when the record does not have it.
func find(ctx context.Context, l *link, threadID, runID, turnID string) (*appserver.Turn, error) {
	if threadID == "" {
		return nil, nil
	}
	p := appserver.PageParams{ThreadID: threadID, Limit: searchPage, Direction: "desc", ItemsView: "summary"}
	for range searchPages {
		page, err := l.client.Turns(ctx, p)
		if err != nil {
			switch appserver.Classify(err) {
			case appserver.RefusalEmptyHistory, appserver.RefusalNoRollout, appserver.RefusalNotLoaded:
				return nil, nil
			}
			return nil, err
		}
		for _, t := range page.Data {
			if turnID != "" && t.ID == turnID || turnID == "" && asked(t, runID) {
				return &t, nil
			}
		}
		if page.Next == nil || *page.Next == "" || *page.Next == p.Cursor {
			return nil, nil
		}
		p.Cursor = *page.Next
	}
	return nil, nil
}

// asked reports that the turn began with this prompt.
func asked(t appserver.Turn, runID string) bool {
	return slices.ContainsFunc(t.Items, func(i appserver.Item) bool {
		return i.Type == "userMessage" && string(i.ClientID) == runID
	})
}

// reply is the reply of a finished turn as the record has it; nil when it has none or cannot be read.
func reply(ctx context.Context, l *link, threadID string, t appserver.Turn) *runtime.Message {
	if t.Status != "completed" {
		return nil
	}
	m := &runtime.Message{Role: runtime.RoleAssistant, NativeRunID: t.ID}
	items := t.Items
	if page, err := l.client.Items(ctx, appserver.PageParams{ThreadID: threadID, TurnID: t.ID, Limit: searchPage}); err == nil && page.Next == nil {
		items = nil
		for _, row := range page.Data {
			items = append(items, row.Item)
		}
	}
	for _, i := range items {
		if i.Type == "agentMessage" && i.Text != "" {
			m.MessageID = i.ID
			m.Parts = append(m.Parts, runtime.Part{Text: string(i.Text)})
		}
		if p := delivered(i); p != nil {
			m.Parts = append(m.Parts, *p)
		}
	}
	if len(m.Parts) == 0 {
		return nil
	}
	return m
}

// recover ends the runs whose child has died, from what the next child reads in their record.
func (a *Agent) recover(ctx context.Context, l *link) {
	a.mu.Lock()
	var lost []*run
	for _, r := range a.runs {
		if r.lost {
			lost = append(lost, r)
		}
	}
	a.mu.Unlock()
	for _, r := range lost {
		a.resolve(ctx, l, r)
	}
}

// resolve finds out how a run ended that nothing is heard of any more. It always ends the run, unless the record
// cannot be read now.
func (a *Agent) resolve(ctx context.Context, l *link, r *run) {
	a.mu.Lock()
	threadID, turnID, lost := r.session.NativeID, r.turn, r.lost
	a.mu.Unlock()
	turn, err := find(ctx, l, threadID, r.id, turnID)
	if err == nil && turn == nil && lost {
		err = a.forget(ctx, l, r.session, threadID, r.id)
	}
	if err != nil {
		a.log.Info("open run not found out", "err", err)
		return
	}
	end, at := &runtime.RunEnded{Reason: runtime.EndReasonUnspecified, Code: codes.OutcomeUnknown}, time.Time{}
	if turnID != "" {
		end = &runtime.RunEnded{Reason: runtime.EndReasonFailed, Code: codes.Interrupted}
	}
	if turn != nil && turn.Terminal() {
		end, at = ending(*turn, false), endTime(*turn)
		end.Message = reply(ctx, l, threadID, *turn)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if turn != nil && turn.Status == "interrupted" && r.stopWanted {
		end = &runtime.RunEnded{Reason: runtime.EndReasonCancelled} // its child died while it was being stopped
	}
	if !r.lost && r.turn != turnID {
		return // it has turned up meanwhile
	}
	if t := a.threads[threadID]; turn != nil && !turn.Terminal() && t != nil && !r.lost {
		a.bind(t, r, turn.ID)
		return
	}
	if t := a.threads[threadID]; t != nil && t.starting == r {
		t.starting = nil
		a.flush(t)
	}
	a.finish(r, end, at)
}
