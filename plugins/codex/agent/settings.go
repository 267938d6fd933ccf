package agent

import (
	"context"
	"slices"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Options of a conversation, and the words of mode and fast.
const (
	optThinking    = "thinking"
	optFast        = "fast"
	optPermissions = "permissions"
	optMode        = "mode"

	on, off = "on", "off"
)

func modeOf(s appserver.Settings) string {
	if s.CollaborationMode == nil {
		return "default"
	}
	return s.CollaborationMode.Mode
}

// GetSettings implements runtime.SettingsReader. A conversation that is not loaded is read without its lock.
func (a *Agent) GetSettings(ctx context.Context, q *runtime.GetSettingsRequest) (*runtime.Settings, error) {
	l, err := a.connected(ctx)
	if err != nil {
		return nil, err
	}
	models, err := l.catalog(ctx)
	if err != nil {
		return nil, native(err)
	}
	if q.Session.IsZero() {
		model, provider, err := l.defaults(ctx)
		if err != nil {
			return nil, native(err)
		}
		return a.catalogSettings(models, model, provider), nil
	}
	rec, err := a.load(ctx, q.Session)
	if err != nil {
		return nil, err
	}
	id := q.Session.NativeID
	if rec.Thread != "" {
		id = rec.Thread
	}
	if t := a.loaded(id); t != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.effectiveSettings(models, t.settings, t.guard || rec.Guard), nil
	}
	if id == "" || rec.Created && rec.empty() {
		return a.freshSettings(ctx, l, models, rec)
	}
	known, err := l.client.ThreadRead(ctx, id)
	if err != nil {
		return nil, native(err)
	}
	s := a.catalogSettings(models, string(known.Model), string(known.ModelProvider))
	if !rec.Created {
		return s, nil
	}
	// What it will be resumed with, or why it cannot be, is read from Codex' record.
	permissions, fast := rec.Permissions, rec.Fast != nil && *rec.Fast
	g, tier, err := a.wanted(l, known, rec, "")
	if err == nil {
		permissions, fast = choiceOf(g), tier == fastTier
	}
	recordedOptions(s, models, rec, string(known.Effort), permissions, fast)
	if err != nil {
		s.NoticeCode = codes.Of(err)
		for i := range s.Options {
			o := &s.Options[i]
			o.ConfirmationRequired = o.OptionID == optPermissions
		}
	}
	return s, nil
}

// catalogSettings is what can be chosen, with nothing chosen: the options of a conversation cannot be changed without
// one, or while somebody else may own it.
func (a *Agent) catalogSettings(models []appserver.Model, model, provider string) *runtime.Settings {
	s := &runtime.Settings{Scope: runtime.SettingsScopeSession, ModelID: model, ProviderID: provider, AsOfSeq: a.seq()}
	for _, m := range models {
		s.Models = append(s.Models, modelRow(m, provider))
		if s.ModelID == "" && m.IsDefault {
			s.ModelID = m.ID
		}
	}
	return s
}

func modelRow(m appserver.Model, provider string) runtime.Model {
	row := runtime.Model{
		ModelID: m.ID, Name: string(m.DisplayName), ProviderID: provider, IsDefault: m.IsDefault,
		DefaultThinkingLevel: string(m.DefaultEffort),
	}
	for _, e := range m.Efforts {
		row.ThinkingLevels = append(row.ThinkingLevels, string(e.Effort))
	}
	if slices.Contains(m.InputModalities, "image") {
		row.ContentTypes = imageTypes
	}
	return row
}

// freshSettings is what an empty conversation will get: what was chosen for it, else the computer's defaults.
func (a *Agent) freshSettings(ctx context.Context, l *link, models []appserver.Model, rec *record) (*runtime.Settings, error) {
	model, provider, err := l.defaults(ctx)
	if err != nil {
		return nil, native(err)
	}
	if rec.Model != "" {
		model = rec.Model
	}
	s := a.catalogSettings(models, model, provider)
	permissions := rec.Permissions
	if permissions == "" {
		permissions = permWorkspace
	}
	recordedOptions(s, models, rec, rec.Effort, permissions, rec.Fast != nil && *rec.Fast)
	return s, nil
}

// recordedOptions lays what is on record over settings that cannot be asked for now.
func recordedOptions(s *runtime.Settings, models []appserver.Model, rec *record, effort, permissions string, fast bool) {
	mode := rec.Mode
	if mode == "" {
		mode = "default"
	}
	if i := findModel(models, s.ModelID); effort == "" && i >= 0 {
		effort = string(models[i].DefaultEffort)
	}
	s.Options = options(models, s.ModelID, s.ProviderID, effort, fast, permissions, mode, rec.Guard)
}

// effectiveSettings is what the runtime has confirmed.
func (a *Agent) effectiveSettings(models []appserver.Model, e appserver.Settings, guard bool) *runtime.Settings {
	s := a.catalogSettings(models, string(e.Model), string(e.ModelProvider))
	effort := ""
	if e.Effort != nil {
		effort = *e.Effort
	} else if i := findModel(models, s.ModelID); i >= 0 {
		effort = string(models[i].DefaultEffort)
	}
	fast := e.ServiceTier != nil && *e.ServiceTier == fastTier
	s.Options = options(models, s.ModelID, s.ProviderID, effort, fast, permissionMode(e), modeOf(e), guard)
	if guard {
		s.NoticeCode = codes.PermissionsNotRestored
	}
	return s
}

func options(models []appserver.Model, model, provider, effort string, fast bool, permissions, mode string, guard bool) []runtime.Option {
	value := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	choices := func(list ...string) (out []runtime.OptionChoice) {
		for _, v := range list {
			out = append(out, runtime.OptionChoice{Value: v})
		}
		return out
	}
	thinking := runtime.Option{OptionID: optThinking, Name: "Thinking", Value: value(effort)}
	speed := runtime.Option{OptionID: optFast, Name: "Fast", Choices: choices(off, on), Value: value(off)}
	if fast {
		speed.Value = value(on)
	}
	if i := findModel(models, model); i >= 0 {
		for _, e := range models[i].Efforts {
			thinking.Choices = append(thinking.Choices, runtime.OptionChoice{Value: string(e.Effort)})
		}
		thinking.Available = len(thinking.Choices) > 0
		speed.Available = provider == "openai" && hasTier(models[i])
	}
	return []runtime.Option{
		thinking, speed,
		{
			OptionID: optPermissions, Name: "Permissions", Choices: choices(permWorkspace, permReadOnly, permFull),
			Value: value(permissions), Available: true, ConfirmationRequired: guard,
		},
		{OptionID: optMode, Name: "Mode", Choices: choices("default", "plan"), Value: value(mode), Available: true},
	}
}

func findModel(models []appserver.Model, id string) int {
	return slices.IndexFunc(models, func(m appserver.Model) bool { return m.ID == id || m.Model == id })
}

func hasTier(m appserver.Model) bool {
	return slices.ContainsFunc(m.ServiceTiers, func(t appserver.Tier) bool { return t.ID == fastTier })
}

// tellSettings reports newer settings of a thread, with the catalog that was read last. Called with the mutex held.
func (a *Agent) tellSettings(t *thread) {
	if a.link == nil {
		return
	}
	models := a.link.known.Load()
	if models == nil {
		return
	}
	a.emit(runtime.Event{
		SessionID: t.session.SessionID, NativeID: t.id, SettingsChanged: a.effectiveSettings(*models, t.settings, t.guard),
	})
}

// catalog asks the executable for its models, each time: what it offers can change with the account.
func (l *link) catalog(ctx context.Context) ([]appserver.Model, error) {
	models, err := l.client.Models(ctx)
	if err == nil {
		l.known.Store(&models)
	}
	return models, err
}
