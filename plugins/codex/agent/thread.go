package agent

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

const (
	// fastTier is the service tier behind the option fast.
	fastTier = "priority"
	// unloadDelay is how many seconds a thread nobody follows stays loaded, and so locked against other programs.
	unloadDelay = 5
	// unknownTurn stands for a running turn whose name is not known; it is over when the thread is idle.
	unknownTurn = "?"
	// heldEvents bounds what is kept back while the name of a turn is awaited.
	heldEvents = 4096
)

// thread is a thread loaded in this child. Guarded by the agent's mutex.
type thread struct {
	id       string
	session  runtime.SessionRef
	settings appserver.Settings
	changed  chan struct{} // closed and replaced when settings change
	guard    bool          // the permissions are not those that were asked for
	status   appserver.Status
	active   string // running turn
	starting *run   // its turn/start is on its way
	held     []appserver.Notification
	presets  map[string]string // instructions of the built-in modes, as they were confirmed
}

func (t *thread) apply(s appserver.Settings) {
	t.settings = s
	close(t.changed)
	t.changed = make(chan struct{})
}

// adopt makes a thread known as loaded, or binds a loaded one to its session. Called with the mutex held.
func (a *Agent) adopt(r appserver.ThreadResult, ref runtime.SessionRef) *thread {
	t := a.threads[r.Thread.ID]
	if t == nil {
		t = &thread{id: r.Thread.ID, changed: make(chan struct{}), status: r.Thread.Status, presets: map[string]string{}}
		a.threads[t.id] = t
	}
	ref.NativeID = t.id
	t.session = ref
	t.apply(r.Settings())
	return t
}

// project checks the directory of a conversation.
func (a *Agent) project(ref runtime.SessionRef) (string, error) {
	a.mu.Lock()
	only := a.config.project
	a.mu.Unlock()
	dir := ref.ProjectPath
	if dir == "" {
		dir = only
	}
	if dir == "" || !filepath.IsAbs(dir) || (only != "" && !samePath(dir, only)) {
		return "", codes.New(codes.ProjectUnavailable)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", codes.New(codes.ProjectUnavailable).Because(err)
	}
	return dir, nil
}

// samePath compares two directories, links followed.
func samePath(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	x, errX := filepath.EvalSymlinks(a)
	y, errY := filepath.EvalSymlinks(b)
	return errX == nil && errY == nil && x == y
}

// ensure gives the loaded thread of a conversation: one that is loaded, a new one where none has ever taken a prompt,
// or a resumed one after proof that nobody else may write it. choice are permissions a person has just chosen; empty:
// those of the conversation, which are verified.
func (a *Agent) ensure(ctx context.Context, l *link, ref runtime.SessionRef, choice string) (*thread, *record, error) {
	rec, err := a.load(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	id := ref.NativeID
	if rec.Thread != "" {
		id = rec.Thread
	}
	a.mu.Lock()
	t := a.threads[id]
	if t != nil {
		ref.NativeID = id
		t.session = ref
	}
	a.mu.Unlock()
	switch {
	case t != nil:
		return t, rec, nil
	case id == "", rec.Created && rec.empty():
		t, err = a.startThread(ctx, l, ref, rec, choice)
	default:
		t, err = a.resumeThread(ctx, l, id, ref, rec, choice)
	}
	if err != nil {
		return nil, nil, err
	}
	return t, rec, nil
}

// startThread begins an empty thread with the choices of the record. Nobody else can have it.
func (a *Agent) startThread(ctx context.Context, l *link, ref runtime.SessionRef, rec *record, choice string) (*thread, error) {
	dir, err := a.project(ref)
	if err != nil {
		return nil, err
	}
	if choice == "" {
		choice = rec.Permissions
	}
	if choice == "" {
		choice = permWorkspace
	}
	g, ok := grants[choice]
	if !ok {
		return nil, codes.New(codes.OptionInvalid)
	}
	p := appserver.ThreadParams{
		Cwd: dir, Model: rec.Model, ApprovalPolicy: g.policy(), ApprovalsReviewer: g.Reviewer, Permissions: g.Profile,
		Config: map[string]any{"thread_unload_delay_secs": unloadDelay},
	}
	if rec.Fast != nil && *rec.Fast {
		tier := fastTier
		p.ServiceTier = &tier
	}
	res, err := l.client.ThreadStart(ctx, p)
	if err != nil {
		return nil, native(err)
	}
	if !samePath(res.Cwd, dir) {
		return nil, codes.New(codes.ProjectUnavailable)
	}
	a.mu.Lock()
	t := a.adopt(res, ref)
	t.guard = !granted(t.settings, g)
	guard := t.guard
	a.mu.Unlock()
	if guard {
		return nil, codes.New(codes.PermissionsNotRestored)
	}
	if u := restore(rec, res.Settings()); u != nil {
		u.ThreadID = t.id
		if err := a.change(ctx, l, t, *u); err != nil {
			return nil, err
		}
	}
	rec.Thread, rec.Created, rec.Permissions, rec.Guard = t.id, true, choice, false
	return t, a.save(ctx, rec)
}

// restore is what thread/start cannot be told: the effort and mode a person has chosen.
func restore(rec *record, s appserver.Settings) *appserver.Update {
	u := appserver.Update{}
	if rec.Effort != "" && (s.Effort == nil || *s.Effort != rec.Effort) {
		u.Effort = rec.Effort
	}
	if rec.Mode != "" && rec.Mode != modeOf(s) {
		effort := s.Effort
		if u.Effort != "" {
			effort = &u.Effort
		}
		u.CollaborationMode = &appserver.CollaborationMode{
			Mode:     rec.Mode,
			Settings: appserver.CollaborationSettings{Model: string(s.Model), ReasoningEffort: effort},
		}
	}
	if u.Effort == "" && u.CollaborationMode == nil {
		return nil
	}
	return &u
}

// resumeThread takes the writer lock of a thread with history. What could widen permissions is compared before
// anything is sent; when it does not match, the thread stays guarded until a person has chosen again.
func (a *Agent) resumeThread(ctx context.Context, l *link, id string, ref runtime.SessionRef, rec *record, choice string) (*thread, error) {
	known, err := l.client.ThreadRead(ctx, id) // needs no lock, and tells a thread that is gone from one that is owned
	if err != nil {
		return nil, native(err)
	}
	if err := a.mayWrite(ctx, l, id, rec.Created); err != nil {
		return nil, err
	}
	if ref.ProjectPath == "" {
		ref.ProjectPath = string(known.Cwd)
	}
	if !samePath(string(known.Cwd), ref.ProjectPath) {
		return nil, codes.New(codes.ProjectUnavailable)
	}
	if _, err := a.project(ref); err != nil {
		return nil, err
	}
	page, err := l.client.Turns(ctx, appserver.PageParams{ThreadID: id, Limit: 1, Direction: "desc", ItemsView: "notLoaded"})
	switch {
	case appserver.Classify(err) == appserver.RefusalEmptyHistory:
	case err != nil:
		return nil, native(err)
	case len(page.Data) > 0 && !page.Data[0].Terminal():
		return nil, codes.New(codes.OwnerUnknown)
	}

	want, tier, err := a.wanted(l, known, rec, choice)
	if err != nil {
		return nil, err
	}
	p := appserver.ThreadParams{
		ThreadID: id, ExcludeTurns: true, Permissions: want.Profile,
		ApprovalPolicy: want.policy(), ApprovalsReviewer: want.Reviewer,
		Config: map[string]any{"thread_unload_delay_secs": unloadDelay},
	}
	if tier != "" {
		p.ServiceTier = &tier
	}
	res, err := l.client.ThreadResume(ctx, p)
	if err != nil {
		return nil, native(err)
	}
	if res.Thread.ID != id {
		return nil, codes.New(codes.SessionLost)
	}
	a.mu.Lock()
	t := a.adopt(res, ref)
	t.guard = !granted(t.settings, want)
	if t.status.Type == "active" && t.active == "" {
		t.active = unknownTurn
	}
	guard := t.guard
	a.mu.Unlock()
	if !samePath(res.Cwd, ref.ProjectPath) {
		return nil, errors.Join(codes.New(codes.ProjectUnavailable), l.client.ThreadUnsubscribe(ctx, id))
	}
	if guard {
		rec.Guard = true
		if err := a.save(ctx, rec); err != nil {
			return nil, err
		}
		return nil, codes.New(codes.PermissionsNotRestored)
	}
	return t, nil
}

// wanted is the grant a thread is resumed with, and its service tier: what a person has just chosen, else what Codex'
// own record says last, else, when that record provably says nothing, what was confirmed here.
func (a *Agent) wanted(l *link, t appserver.Thread, rec *record, choice string) (grant, string, error) {
	saved, found := readRollout(l.server.CodexHome, t)
	tier := ""
	switch {
	case found == settingsFound:
		tier = saved.ServiceTier
	case found == settingsAbsent && rec.Fast != nil && *rec.Fast:
		tier = fastTier
	}
	if choice != "" {
		g, ok := grants[choice]
		if !ok {
			return grant{}, "", codes.New(codes.OptionInvalid)
		}
		return g, tier, nil
	}
	if rec.Guard {
		return grant{}, "", codes.New(codes.PermissionsNotRestored)
	}
	switch found {
	case settingsFound:
		if saved.Grant.Profile != "" {
			return saved.Grant, tier, nil
		}
	case settingsAbsent:
		if g, ok := grants[rec.Permissions]; ok && rec.Created {
			return g, tier, nil
		}
	}
	return grant{}, "", codes.New(codes.PermissionsUnverified)
}

// loaded is the thread if this child has it.
func (a *Agent) loaded(id string) *thread {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.threads[id]
}

// tierJSON is a tier as settings want it: null switches it off.
func tierJSON(fast bool) json.RawMessage {
	if fast {
		return json.RawMessage(`"` + fastTier + `"`)
	}
	return json.RawMessage("null")
}
