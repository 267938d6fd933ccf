package agent

import (
	"context"
	"slices"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

const (
	provider      = "demo"
	defaultModel  = "demo-fast"
	contextTokens = 32_000
)

var thinkingLevels = []string{"low", "medium", "high"}

func models() []runtime.Model {
	return []runtime.Model{
		{ModelID: "demo-fast", Name: "Demo Fast", ProviderID: provider, ProviderName: "Demo", IsDefault: true, ContextTokens: ptr(uint64(contextTokens)), ContentTypes: []string{"image/png", "image/jpeg"}, ThinkingLevels: thinkingLevels, DefaultThinkingLevel: "low"},
		{ModelID: "demo-deep", Name: "Demo Deep", ProviderID: provider, ProviderName: "Demo", ContextTokens: ptr(uint64(4 * contextTokens)), ContentTypes: []string{"image/png", "image/jpeg"}, ThinkingLevels: thinkingLevels, DefaultThinkingLevel: "high", Price: &runtime.ModelPrice{Input: 1, Output: 4}},
	}
}

// choices are the options besides the model, each with its default first.
var choices = []struct {
	id, name string
	values   []string
}{
	{"thinking", "Thinking", thinkingLevels},
	{"fast", "Fast", []string{"off", "on"}},
	{"permissions", "Permissions", []string{"workspace", "read-only", "full-access"}},
}

func (c *conversation) modelID() string {
	if c == nil || c.model == "" {
		return defaultModel
	}
	return c.model
}

func settingsOf(c *conversation, seq uint64) *runtime.Settings {
	s := &runtime.Settings{Scope: runtime.SettingsScopeSession, ModelID: c.modelID(), ProviderID: provider, Models: models(), AsOfSeq: seq}
	for _, x := range choices {
		o := runtime.Option{OptionID: x.id, Name: x.name, Value: ptr(x.values[0]), Available: true}
		if c != nil && c.options[x.id] != "" {
			o.Value = ptr(c.options[x.id])
		}
		for _, v := range x.values {
			o.Choices = append(o.Choices, runtime.OptionChoice{Value: v})
		}
		s.Options = append(s.Options, o)
	}
	return s
}

// checkOption refuses what is not on offer.
func checkOption(id, value string) error {
	for _, x := range choices {
		if x.id == id {
			if slices.Contains(x.values, value) {
				return nil
			}
			return codes.New(codes.OptionInvalid)
		}
	}
	return codes.New(codes.SettingsUnsupported)
}

// GetSettings implements runtime.SettingsReader.
func (a *Agent) GetSettings(_ context.Context, r *runtime.GetSettingsRequest) (*runtime.Settings, error) {
	a.maybeHang("settings")
	s, err := a.opened()
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.Session.IsZero() {
		return settingsOf(nil, a.sink.Seq()), nil
	}
	c, err := s.find(r.Session)
	if err != nil {
		return nil, err
	}
	return settingsOf(c, a.sink.Seq()), nil
}

// SetSettings implements runtime.SettingsKeeper. A choice made before the first prompt is worth a record.
func (a *Agent) SetSettings(_ context.Context, r *runtime.SetSettingsRequest) (*runtime.Settings, error) {
	a.maybeHang("settings")
	s, err := a.opened()
	if err != nil {
		return nil, err
	}
	if r.Session.IsZero() {
		return nil, codes.New(codes.ScopeInvalid)
	}
	rec := record{T: "settings", Session: nativeOf(r.Session), Options: r.Options}
	if r.ModelID != nil {
		if !slices.ContainsFunc(models(), func(m runtime.Model) bool { return m.ModelID == *r.ModelID }) {
			return nil, codes.New(codes.OptionInvalid)
		}
		rec.Model = *r.ModelID
	}
	if r.ProviderID != nil && *r.ProviderID != provider {
		return nil, codes.New(codes.OptionInvalid)
	}
	for k, v := range r.Options {
		if err := checkOption(k, v); err != nil {
			return nil, err
		}
	}
	a.mu.Lock()
	c, err := s.ensure(r.Session, "")
	if err == nil {
		err = s.append(rec)
	}
	var out *runtime.Settings
	if err == nil {
		out = settingsOf(c, a.sink.Seq())
	}
	a.mu.Unlock()
	if err != nil {
		return nil, err
	}
	a.emit(c.ref(), runtime.Event{SettingsChanged: out})
	return out, nil
}
