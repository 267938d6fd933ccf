package agent

import (
	"context"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Creates implements runtime.Creator: only copies have to be made before the first prompt.
func (a *Agent) Creates() (every, branches bool) { return false, true }

// Updates implements runtime.Updater.
func (a *Agent) Updates() (title, archived bool) { return true, true }

// CreateSession implements runtime.Creator for copies. The source may belong to anybody; it is left alone.
func (a *Agent) CreateSession(ctx context.Context, q *runtime.CreateSessionRequest) (*runtime.CreateSessionResponse, error) {
	if err := a.admit(); err != nil {
		return nil, err
	}
	rec, err := a.load(ctx, q.Session)
	if err != nil {
		return nil, err
	}
	ref := q.Session
	if q.Source.IsZero() || rec.Thread != "" {
		ref.NativeID = rec.Thread
		return &runtime.CreateSessionResponse{Session: &runtime.Session{Ref: ref, Title: q.Title}}, nil
	}
	source, err := a.load(ctx, q.Source)
	if err != nil {
		return nil, err
	}
	id := q.Source.NativeID
	if id == "" {
		id = source.Thread
	}
	if id == "" || source.Created && source.empty() {
		return &runtime.CreateSessionResponse{Session: &runtime.Session{Ref: ref, Title: q.Title}}, nil
	}
	l, err := a.connected(ctx)
	if err != nil {
		return nil, err
	}
	defer a.noteManagement()
	g := grants[permWorkspace]
	res, err := l.client.ThreadFork(ctx, appserver.ThreadParams{
		ThreadID: id, ExcludeTurns: true, Permissions: g.Profile, ApprovalPolicy: g.policy(), ApprovalsReviewer: g.Reviewer,
		Config: map[string]any{"thread_unload_delay_secs": unloadDelay},
	})
	if err != nil {
		return nil, native(err)
	}
	if res.Thread.ID == id {
		return nil, codes.New(codes.SessionLost)
	}
	if ref.ProjectPath == "" {
		ref.ProjectPath = res.Cwd
	}
	if !samePath(ref.ProjectPath, res.Cwd) {
		return nil, codes.New(codes.ProjectUnavailable)
	}
	a.mu.Lock()
	t := a.adopt(res, ref)
	t.guard = !granted(t.settings, g)
	ref = t.session
	rec.Thread, rec.Created, rec.Permissions, rec.Guard = t.id, true, permWorkspace, t.guard
	a.mu.Unlock()
	rec.handOver("copy") // it has the history of its source, so it is never empty
	if err := a.save(ctx, rec); err != nil {
		return nil, err
	}
	if q.Title != "" {
		if err := l.client.ThreadName(ctx, ref.NativeID, q.Title); err != nil {
			a.log.Info("copy not named", "err", err)
		}
	}
	return &runtime.CreateSessionResponse{Session: &runtime.Session{
		Ref: ref, Title: q.Title, ParentNativeID: id, ModelID: string(res.Model), ProviderID: string(res.ModelProvider),
		Continuation: runtime.ContinuationAllowed,
	}}, nil
}

// ReadHistory implements runtime.Runtime. A thread that has had no prompt has no record to read, also after it is gone.
func (a *Agent) ReadHistory(ctx context.Context, q *runtime.ReadHistoryRequest) (*runtime.ReadHistoryResponse, error) {
	rec, err := a.load(ctx, q.Session)
	if err != nil {
		return nil, err
	}
	if rec.Created && rec.empty() {
		q.Session.NativeID = ""
	}
	return a.library.ReadHistory(ctx, q)
}

// UpdateSession implements runtime.Updater. A thread that has had no prompt is neither named nor archived in Codex,
// which would make a record of it; its title waits here for its first turn.
func (a *Agent) UpdateSession(ctx context.Context, q *runtime.UpdateSessionRequest) (*runtime.UpdateSessionResponse, error) {
	if err := a.admit(); err != nil {
		return nil, err
	}
	rec, err := a.load(ctx, q.Session)
	if err != nil {
		return nil, err
	}
	id := q.Session.NativeID
	if rec.Thread != "" {
		id = rec.Thread
	}
	row := &runtime.Session{Ref: q.Session, Archived: q.Archived}
	if q.Title != nil {
		row.Title = *q.Title
	}
	if id == "" || rec.Created && rec.empty() {
		if q.Title != nil && rec.Title != *q.Title {
			if err := a.revise(ctx, q.Session, func(rec *record) { rec.Title = *q.Title }); err != nil {
				return nil, err
			}
		}
		return &runtime.UpdateSessionResponse{Session: row}, nil
	}
	l, err := a.connected(ctx)
	if err != nil {
		return nil, err
	}
	defer a.noteManagement()
	if q.Archived != nil {
		if err := a.archive(ctx, l, id, rec.Created, *q.Archived); err != nil {
			return nil, err
		}
	}
	if q.Title != nil {
		if err := l.client.ThreadName(ctx, id, *q.Title); err != nil {
			return nil, unconfirmed(err)
		}
	}
	return &runtime.UpdateSessionResponse{Session: row}, nil
}

// unconfirmed is native for changes: an outcome that is not known is said to be.
func unconfirmed(err error) error {
	if appserver.Rejected(err) {
		return native(err)
	}
	return codes.New(codes.NotConfirmed).Because(err)
}

// archive changes the archive state. Codex would interrupt a running turn, so nothing may run, here or elsewhere: its
// lock refuses a foreign owner, on versions known to do so.
func (a *Agent) archive(ctx context.Context, l *link, id string, created, archived bool) error {
	if !archived {
		if err := l.client.ThreadUnarchive(ctx, id); err != nil {
			return unconfirmed(err)
		}
		return nil
	}
	a.mu.Lock()
	t := a.threads[id]
	busy := t != nil && (t.active != "" || t.starting != nil)
	a.mu.Unlock()
	if busy {
		return codes.New(codes.SessionBusy)
	}
	if t == nil {
		err := a.mayWrite(ctx, l, id, created || auditedLocks[l.version])
		if err != nil {
			return err
		}
	}
	if err := l.client.ThreadArchive(ctx, id); err != nil {
		return unconfirmed(err)
	}
	a.mu.Lock()
	delete(a.threads, id)
	a.mu.Unlock()
	return nil
}

// DetachSession implements runtime.Detacher. Records are kept; those of a conversation made here are archived when it
// begins anew or goes.
func (a *Agent) DetachSession(ctx context.Context, q *runtime.DetachSessionRequest) error {
	rec, err := a.load(ctx, q.Session)
	if err != nil {
		return err
	}
	id := q.Session.NativeID
	if rec.Thread != "" {
		id = rec.Thread
	}
	a.mu.Lock()
	t := a.threads[id]
	busy := t != nil && (t.active != "" || t.starting != nil)
	a.mu.Unlock()
	forget := q.Mode == runtime.DetachModeReset || q.Mode == runtime.DetachModeDelete
	switch {
	case id != "" && rec.Detached == id:
		return nil
	case busy:
		return codes.New(codes.SessionBusy)
	case forget && id != "" && !rec.Created:
		return codes.New(codes.SessionReadOnly)
	}
	if t != nil || forget && id != "" && !rec.empty() {
		l, err := a.connected(ctx)
		if err != nil {
			return err
		}
		if t != nil {
			if err := a.release(ctx, l, t); err != nil {
				return err
			}
		}
		if forget && !rec.empty() {
			defer a.noteManagement()
			if err := a.archive(ctx, l, id, rec.Created, true); err != nil && codes.Of(err) != codes.SessionLost {
				return err
			}
		}
	}
	if forget && id != "" {
		// What was chosen goes with the conversation; only its name stays, for whoever asks again.
		return a.revise(ctx, q.Session, func(rec *record) {
			*rec = record{key: rec.key, revision: rec.revision, Detached: id}
		})
	}
	return nil
}

// release lets go of a loaded thread; Codex frees its lock a few seconds later.
func (a *Agent) release(ctx context.Context, l *link, t *thread) error {
	a.mu.Lock()
	if a.threads[t.id] == t && t.active == "" && t.starting == nil {
		delete(a.threads, t.id)
	}
	a.mu.Unlock()
	if err := l.client.ThreadUnsubscribe(ctx, t.id); err != nil {
		return unconfirmed(err)
	}
	return nil
}

// nameThread gives a thread the title it was promised, once its first turn is over. Called with the mutex held.
func (a *Agent) nameThread(r *run) {
	l := a.link
	if r.title == "" || l == nil {
		return
	}
	ref, title := r.session, r.title
	a.spawn(func() {
		ctx, cancel := context.WithTimeout(a.life, confirmWait)
		defer cancel()
		if err := l.client.ThreadName(ctx, ref.NativeID, title); err != nil {
			a.log.Info("thread not named", "err", err)
			return
		}
		err := a.revise(ctx, ref, func(rec *record) {
			if rec.Title == title {
				rec.Title = ""
			}
		})
		if err != nil {
			a.log.Info("title kept", "err", err)
		}
	})
}

// ObserveActivity implements runtime.ActivityObserver. What other programs do cannot be seen and is unknown.
func (a *Agent) ObserveActivity(_ context.Context, q *runtime.ObserveActivityRequest) ([]runtime.SessionActivity, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]runtime.SessionActivity, 0, len(q.Sessions))
	for _, ref := range q.Sessions {
		s := runtime.SessionActivity{Ref: ref, EvidenceAt: a.o.Now()}
		if t := a.threads[ref.NativeID]; t != nil {
			s.Activity, s.Attention = activityOf(t.status)
		}
		list = append(list, s)
	}
	return list, nil
}
