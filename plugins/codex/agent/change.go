package agent

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// confirmWait is how long a change may take to be confirmed.
const confirmWait = 10 * time.Second

// SetSettings implements runtime.SettingsKeeper.
func (a *Agent) SetSettings(ctx context.Context, q *runtime.SetSettingsRequest) (*runtime.Settings, error) {
	if err := a.admit(); err != nil {
		return nil, err
	}
	if q.Session.IsZero() {
		return nil, codes.New(codes.ScopeInvalid)
	}
	l, err := a.connected(ctx)
	if err != nil {
		return nil, err
	}
	models, err := l.catalog(ctx)
	if err != nil {
		return nil, native(err)
	}
	choice := q.Options[optPermissions]
	if _, ok := grants[choice]; choice != "" && !ok {
		return nil, codes.New(codes.OptionInvalid)
	}
	t, rec, err := a.ensure(ctx, l, q.Session, choice)
	if err != nil {
		return nil, err
	}
	guard := rec.Guard && choice == ""
	a.mu.Lock()
	busy := t.active != "" || t.starting != nil
	now := t.settings
	a.mu.Unlock()
	if busy {
		return nil, codes.New(codes.RunActive)
	}
	u, err := plan(models, now, q)
	if err != nil {
		return nil, err
	}
	u.ThreadID = t.id
	if err := a.change(ctx, l, t, u); err != nil {
		return nil, err
	}
	if err := a.remember(ctx, t, q); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.effectiveSettings(models, t.settings, t.guard || guard)
	if q.Session.NativeID != t.id {
		a.emit(runtime.Event{SessionID: q.Session.SessionID, NativeID: t.id, SessionChanged: &runtime.Session{Ref: t.session}})
	}
	a.emit(runtime.Event{SessionID: t.session.SessionID, NativeID: t.id, SettingsChanged: s})
	s.AsOfSeq = a.seq()
	return s, nil
}

// plan checks what a person chose against the catalog and turns it into a native change.
func plan(models []appserver.Model, now appserver.Settings, q *runtime.SetSettingsRequest) (appserver.Update, error) {
	var u appserver.Update
	model, effort := string(now.Model), now.Effort
	if q.ProviderID != nil && *q.ProviderID != "" && *q.ProviderID != string(now.ModelProvider) {
		return u, codes.New(codes.ModelMissing)
	}
	at := findModel(models, model)
	if q.ModelID != nil {
		if at = findModel(models, *q.ModelID); at < 0 {
			return u, codes.New(codes.ModelMissing)
		}
		model = models[at].ID
		u.Model, u.Effort = model, string(models[at].DefaultEffort)
		effort = &u.Effort
	}
	for id, v := range q.Options {
		switch id {
		case optThinking:
			if at < 0 || !slices.ContainsFunc(models[at].Efforts, func(e appserver.Effort) bool { return string(e.Effort) == v }) {
				return u, codes.New(codes.OptionInvalid)
			}
			u.Effort = v
			effort = &u.Effort
		case optFast:
			if now.ModelProvider != "openai" || at < 0 || !hasTier(models[at]) || (v != on && v != off) {
				return u, codes.New(codes.OptionInvalid)
			}
			u.ServiceTier = tierJSON(v == on)
		case optPermissions:
			g, ok := grants[v]
			if !ok {
				return u, codes.New(codes.OptionInvalid)
			}
			u.Permissions, u.ApprovalPolicy, u.ApprovalsReviewer = g.Profile, g.policy(), g.Reviewer
		case optMode:
			if v != "default" && v != "plan" {
				return u, codes.New(codes.OptionInvalid)
			}
		default:
			return u, codes.New(codes.SettingsUnsupported)
		}
	}
	if v, ok := q.Options[optMode]; ok {
		u.CollaborationMode = &appserver.CollaborationMode{
			Mode: v, Settings: appserver.CollaborationSettings{Model: model, ReasoningEffort: effort},
		}
	}
	return u, nil
}

// change asks for settings and returns when they are in force. The answer of the call proves nothing: the notification
// does, and where nothing changes there is none, so the thread is read.
func (a *Agent) change(ctx context.Context, l *link, t *thread, u appserver.Update) error {
	a.mu.Lock()
	before, changed := t.settings, t.changed
	known := t.presets[modeIn(u)]
	a.mu.Unlock()
	same := fits(before, u, func(text string) bool { return text == known })
	if err := l.client.SettingsUpdate(ctx, u); err != nil {
		switch {
		case appserver.Classify(err) == appserver.RefusalProfile:
			return codes.New(codes.OptionInvalid)
		case appserver.Rejected(err):
			return codes.New(codes.NotConfirmed).With(codes.NotDispatched).Because(err)
		}
		return codes.New(codes.NotConfirmed).Because(err)
	}
	if !same {
		deadline := time.NewTimer(confirmWait)
		defer deadline.Stop()
		for wait := true; wait; {
			select {
			case <-changed:
				a.mu.Lock()
				wait = !fits(t.settings, u, anyText)
				changed = t.changed
				a.mu.Unlock()
				if !wait {
					return a.confirmed(t, u)
				}
			case <-deadline.C:
				wait = false
			case <-ctx.Done():
				return codes.New(codes.NotConfirmed).Because(ctx.Err())
			case <-l.client.Done():
				return codes.New(codes.NotConfirmed)
			}
		}
	}
	res, err := l.client.ThreadResume(ctx, appserver.ThreadParams{ThreadID: t.id, ExcludeTurns: true})
	if err != nil && appserver.Classify(err) != appserver.RefusalNoRollout {
		return codes.New(codes.NotConfirmed).Because(err)
	}
	a.mu.Lock()
	select {
	case <-changed: // a notification came meanwhile: it is newer than the answer
	default:
		if err == nil { // a thread without a record cannot be read, and nobody else can have changed it
			t.apply(res.Settings())
		}
	}
	cached := instructions(before)
	ok := fits(t.settings, u, func(text string) bool { return text == known || cached == nil || text != *cached })
	a.mu.Unlock()
	if !ok {
		return codes.New(codes.NotConfirmed)
	}
	return a.confirmed(t, u)
}

// confirmed lifts the guard once permissions a person chose are in force, and learns the text a mode stands for.
func (a *Agent) confirmed(t *thread, u appserver.Update) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if u.Permissions != "" {
		t.guard = false
	}
	if m := u.CollaborationMode; m != nil && m.Settings.DeveloperInstructions == nil {
		if text := instructions(t.settings); text != nil {
			t.presets[m.Mode] = *text
		}
	}
	return nil
}

func modeIn(u appserver.Update) string {
	if u.CollaborationMode == nil {
		return ""
	}
	return u.CollaborationMode.Mode
}

func instructions(s appserver.Settings) *string {
	if s.CollaborationMode == nil {
		return nil
	}
	return s.CollaborationMode.Settings.DeveloperInstructions
}

// anyText accepts whatever Codex has put in the place of instructions that were sent as null.
func anyText(text string) bool { return text != "" }

// fits compares effective settings with a change. Instructions that were asked for as null come back as the text of
// the built-in preset; preset says whether a text can be that one. A text that was there before the change was sent
// proves nothing: it may be somebody's own.
func fits(s appserver.Settings, u appserver.Update, preset func(string) bool) bool {
	if u.Model != "" && string(s.Model) != u.Model ||
		u.Effort != "" && (s.Effort == nil || *s.Effort != u.Effort) {
		return false
	}
	if u.ServiceTier != nil {
		var want *string
		_ = json.Unmarshal(u.ServiceTier, &want)
		has := s.ServiceTier
		if has != nil && *has == "default" {
			has = nil
		}
		if (want == nil) != (has == nil) || want != nil && *want != *has {
			return false
		}
	}
	if u.Permissions != "" {
		policy, _ := u.ApprovalPolicy.(json.RawMessage)
		if !granted(s, grant{Profile: u.Permissions, Policy: string(policy), Reviewer: u.ApprovalsReviewer}) {
			return false
		}
	}
	return u.CollaborationMode == nil || sameMode(s.CollaborationMode, u.CollaborationMode, preset)
}

func sameMode(have, want *appserver.CollaborationMode, preset func(string) bool) bool {
	if have == nil || have.Mode != want.Mode || have.Settings.Model != want.Settings.Model ||
		!equal(have.Settings.ReasoningEffort, want.Settings.ReasoningEffort) {
		return false
	}
	h, w := have.Settings.DeveloperInstructions, want.Settings.DeveloperInstructions
	if w == nil {
		return h == nil || preset(*h)
	}
	return h != nil && *h == *w
}

func equal(a, b *string) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// remember keeps what a person chose, so that an empty thread can be made again with it.
func (a *Agent) remember(ctx context.Context, t *thread, q *runtime.SetSettingsRequest) error {
	a.mu.Lock()
	s, ref := t.settings, t.session
	a.mu.Unlock()
	return a.revise(ctx, ref, func(rec *record) {
		if q.ModelID != nil {
			rec.Model = string(s.Model)
		}
		if _, ok := q.Options[optThinking]; (ok || q.ModelID != nil) && s.Effort != nil {
			rec.Effort = *s.Effort
		}
		if v, ok := q.Options[optFast]; ok {
			fast := v == on
			rec.Fast = &fast
		}
		if v, ok := q.Options[optPermissions]; ok {
			rec.Permissions, rec.Guard = v, false
		}
		if v, ok := q.Options[optMode]; ok {
			rec.Mode = v
		}
	})
}

// promptOptions checks the options of one prompt: the effort, which Codex keeps for the next ones too.
func (a *Agent) promptOptions(ctx context.Context, l *link, t *thread, opts map[string]string) (string, error) {
	level, ok := opts[optThinking]
	if !ok || level == "" {
		if len(opts) > 0 && !ok {
			return "", codes.New(codes.SettingsUnsupported)
		}
		return "", nil
	}
	models, err := l.catalog(ctx)
	if err != nil {
		return "", native(err)
	}
	a.mu.Lock()
	at := findModel(models, string(t.settings.Model))
	a.mu.Unlock()
	if at < 0 || !slices.ContainsFunc(models[at].Efforts, func(e appserver.Effort) bool { return string(e.Effort) == level }) {
		return "", codes.New(codes.OptionInvalid)
	}
	return level, nil
}
