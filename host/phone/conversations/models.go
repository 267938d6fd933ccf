package conversations

import (
	"context"
	"slices"
	"strings"

	"github.com/openphone-host/openphone/host/sessions"
	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Options with a meaning for every client.
const (
	optionThinking    = "thinking"
	optionFast        = "fast"
	optionPermissions = "permissions"
)

const maxNameUnits = 512 // of a model, provider, level or mode a phone names

func (d *Dialect) models(ctx context.Context, c *call) (any, error) {
	key := c.optionalKey()
	if err := c.err(); err != nil {
		return nil, err
	}
	s, err := d.svc.Settings(ctx, key)
	if err != nil {
		return nil, err
	}
	return d.settings(s, key != ""), nil
}

// settings shapes what can be chosen. Values are what the runtime confirmed; without a conversation none is in force.
func (d *Dialect) settings(s *runtime.Settings, session bool) *clawket.Models {
	t := &d.traits
	out := &clawket.Models{OK: true, Scope: "session", Models: make([]clawket.Model, 0, len(s.Models))}
	if session || t.contextAndCost {
		out.CurrentModel, out.CurrentProvider = s.ModelID, s.ProviderID
	}
	for i := range s.Models {
		out.Models = append(out.Models, d.model(&s.Models[i], i))
	}
	if t.thinkingPerPrompt || !session {
		return out
	}
	if o := option(s, optionThinking); o != nil && o.Value != nil {
		out.ThinkingLevel = *o.Value
	}
	if !t.sessionFlags {
		return out
	}
	if o := option(s, optionFast); o != nil {
		out.FastMode = &clawket.FastMode{Available: o.Available}
		if o.Value != nil {
			on := *o.Value == "on"
			out.FastMode.Enabled = &on
		}
	}
	if o := option(s, optionPermissions); o != nil {
		out.Permissions = &clawket.Permissions{
			Mode: permissionMode(o.Value), Available: o.Available, AvailableModes: choices(o), Scope: "session",
			RequiresConfirmation: o.ConfirmationRequired,
		}
		if o.ConfirmationRequired && s.NoticeCode != "" {
			out.Note = d.sentence(s.NoticeCode, nil)
		}
	}
	return out
}

func (d *Dialect) model(m *runtime.Model, at int) clawket.Model {
	t := &d.traits
	out := clawket.Model{ID: m.ModelID, Name: m.Name, Provider: m.ProviderID}
	if out.Name == "" {
		out.Name = m.ModelID
	}
	if t.modelOrder {
		out.SortOrder, out.ResolvedModel = &at, m.ResolvedID
	}
	if t.anyProvider {
		return out
	}
	reasons := len(m.ThinkingLevels) > 0
	out.Reasoning, out.Input = &reasons, []string{"text"}
	if takesImages(m.ContentTypes) {
		out.Input = append(out.Input, "image")
	}
	if !t.thinkingPerPrompt {
		out.ReasoningLevels = m.ThinkingLevels
	}
	if t.contextAndCost {
		if m.ContextTokens != nil {
			out.ContextWindow = *m.ContextTokens
		}
		if p := m.Price; p != nil {
			out.Cost = &clawket.ModelPrice{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}
		}
	}
	return out
}

// permissionMode keeps to the words the app knows; anything else in force is custom, unknown is null.
func permissionMode(v *string) *string {
	if v == nil {
		return nil
	}
	switch *v {
	case "workspace", "read-only", "full-access", "custom":
		return v
	}
	custom := "custom"
	return &custom
}

func option(s *runtime.Settings, id string) *runtime.Option {
	for i := range s.Options {
		if s.Options[i].OptionID == id {
			return &s.Options[i]
		}
	}
	return nil
}

func choices(o *runtime.Option) []string {
	out := make([]string, 0, len(o.Choices))
	for _, c := range o.Choices {
		out = append(out, c.Value)
	}
	return out
}

// selectModel changes the model of one conversation; the service refuses one that is not on offer.
func (d *Dialect) selectModel(ctx context.Context, c *call) (any, error) {
	key, model, provider := c.sessionKey(), c.text("model", maxNameUnits), c.optional("provider", maxNameUnits)
	scope := c.optional("scope", maxNameUnits)
	if err := c.err(); err != nil {
		return nil, err
	}
	if scope != "session" {
		return nil, codes.New(codes.ScopeInvalid)
	}
	change := sessions.SettingsChange{ModelID: &model}
	switch {
	case d.traits.sameProvider:
		// Another provider would need another configuration; only the one in force can be kept.
		s, err := d.svc.Settings(ctx, key)
		if err != nil {
			return nil, err
		}
		if provider != s.ProviderID {
			return nil, codes.New(codes.OptionInvalid)
		}
	case provider != "" && !d.traits.anyProvider:
		change.ProviderID = &provider
	}
	return d.change(ctx, key, change)
}

// setThinking takes a level the present model offers; not every model offers all of them.
func (d *Dialect) setThinking(ctx context.Context, c *call) (any, error) {
	key, level := c.sessionKey(), c.text("level", maxNameUnits)
	if err := c.err(); err != nil {
		return nil, err
	}
	s, err := d.svc.Settings(ctx, key)
	if err != nil {
		return nil, err
	}
	var levels []string
	for _, m := range s.Models {
		if m.ModelID == s.ModelID && (s.ProviderID == "" || m.ProviderID == "" || m.ProviderID == s.ProviderID) {
			levels = m.ThinkingLevels
			break
		}
	}
	if o := option(s, optionThinking); len(levels) == 0 && o != nil {
		levels = choices(o)
	}
	if !slices.Contains(levels, level) {
		return nil, codes.New(codes.OptionInvalid)
	}
	return d.change(ctx, key, sessions.SettingsChange{Options: map[string]string{optionThinking: level}})
}

func (d *Dialect) setFast(ctx context.Context, c *call) (any, error) {
	key, enabled := c.sessionKey(), c.flag("enabled")
	if err := c.err(); err != nil {
		return nil, err
	}
	value := "off"
	if enabled {
		value = "on"
	}
	return d.change(ctx, key, sessions.SettingsChange{Options: map[string]string{optionFast: value}})
}

// setPermissions is a person's explicit choice; nothing else may widen what a conversation is allowed.
func (d *Dialect) setPermissions(ctx context.Context, c *call) (any, error) {
	key, mode := c.sessionKey(), c.text("mode", maxNameUnits)
	if err := c.err(); err != nil {
		return nil, err
	}
	if strings.EqualFold(mode, "custom") {
		return nil, codes.New(codes.OptionInvalid)
	}
	return d.change(ctx, key, sessions.SettingsChange{Options: map[string]string{optionPermissions: mode}})
}

func (d *Dialect) change(ctx context.Context, key string, c sessions.SettingsChange) (any, error) {
	s, err := d.svc.SetSettings(ctx, key, c)
	if err != nil {
		return nil, err
	}
	return d.settings(s, true), nil
}
