package sessions

import (
	"context"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// optionThinking is the option that says how hard to think.
const optionThinking = "thinking"

// Settings reads what can be chosen and what is in force; key empty: for a new conversation, which creates none.
func (c *Conversations) Settings(ctx context.Context, key string) (*runtime.Settings, error) {
	if !c.can(runtime.CapabilitySettings) {
		return nil, codes.New(codes.SettingsUnsupported)
	}
	ref, err := c.refFor(key)
	if err != nil {
		return nil, err
	}
	s, err := c.settings(ctx, ref)
	if err != nil || key == "" {
		return s, err
	}
	conv, err := c.find(key)
	if err != nil {
		return nil, err
	}
	c.keepModel(conv, s)
	return s, nil
}

func (c *Conversations) settings(ctx context.Context, ref runtime.SessionRef) (*runtime.Settings, error) {
	return readAs(ctx, c, func() (*runtime.Settings, error) {
		return c.rt.GetSettings(ctx, &runtime.GetSettingsRequest{Session: ref})
	})
}

// SetSettings changes what is named and answers with what the runtime confirmed. Only values on offer can be chosen,
// and nothing while a reply runs.
//
// Errors: run_active, model_missing, option_invalid, settings_unsupported, scope_invalid, not_confirmed, those of
// SetSettings.
func (c *Conversations) SetSettings(ctx context.Context, key string, change SettingsChange) (*runtime.Settings, error) {
	if !c.can(runtime.CapabilitySetSettings) {
		return nil, codes.New(codes.SettingsUnsupported)
	}
	if key == "" {
		return c.setGlobal(ctx, change)
	}
	conv, err := c.find(key)
	if err != nil {
		return nil, err
	}
	if err := c.checkFree(conv); err != nil {
		return nil, err
	}
	if err := c.checkChange(ctx, c.refOf(conv), change); err != nil { // a read, so before the lock is taken
		return nil, err
	}
	if err := c.lock(ctx, conv); err != nil {
		return nil, err
	}
	defer conv.unlock()
	if err := c.checkFree(conv); err != nil {
		return nil, err
	}
	s, err := c.rt.SetSettings(ctx, request(c.refOf(conv), change))
	if err != nil {
		return nil, err
	}
	c.keepModel(conv, s)
	return s, nil
}

// setGlobal changes the runtime as a whole, which only some have.
func (c *Conversations) setGlobal(ctx context.Context, change SettingsChange) (*runtime.Settings, error) {
	if err := c.checkChange(ctx, runtime.SessionRef{}, change); err != nil {
		return nil, err
	}
	return c.rt.SetSettings(ctx, request(runtime.SessionRef{}, change))
}

func request(ref runtime.SessionRef, change SettingsChange) *runtime.SetSettingsRequest {
	return &runtime.SetSettingsRequest{Session: ref, ModelID: change.ModelID, ProviderID: change.ProviderID, Options: change.Options}
}

// checkChange checks a change against what is in force and on offer now.
func (c *Conversations) checkChange(ctx context.Context, ref runtime.SessionRef, change SettingsChange) error {
	now, err := c.settings(ctx, ref)
	switch {
	case err != nil:
		return err
	case now.Scope != runtime.SettingsScopeSession && c.anyRun():
		return codes.New(codes.RunActive) // no running reply is surprised by a change for all
	case ref.IsZero() && now.Scope == runtime.SettingsScopeSession:
		return codes.New(codes.ScopeInvalid)
	}
	return offered(now, change)
}

func (c *Conversations) anyRun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conv := range c.byKey {
		if conv.busy() {
			return true
		}
	}
	return false
}

// offered checks a change against what the runtime offers now.
func offered(s *runtime.Settings, change SettingsChange) error {
	if change.ModelID == nil && change.ProviderID == nil && len(change.Options) == 0 {
		return codes.New(codes.ParamsInvalid)
	}
	if change.ModelID != nil {
		found := false
		for _, m := range s.Models {
			found = found || m.ModelID == *change.ModelID && (change.ProviderID == nil || *change.ProviderID == m.ProviderID)
		}
		if !found {
			return codes.New(codes.ModelMissing)
		}
	}
	for id, v := range change.Options {
		if err := optionOffered(s, id, v); err != nil {
			return err
		}
	}
	return nil
}

func optionOffered(s *runtime.Settings, id, v string) error {
	for _, o := range s.Options {
		if o.OptionID != id {
			continue
		}
		for _, choice := range o.Choices {
			if choice.Value == v && o.Available {
				return nil
			}
		}
		return codes.New(codes.OptionInvalid)
	}
	return codes.New(codes.SettingsUnsupported)
}

// keepModel notes the confirmed model of a conversation for the list.
func (c *Conversations) keepModel(conv *conversation, s *runtime.Settings) {
	c.mu.Lock()
	changed := s.ModelID != "" && conv.isOwn && (conv.rec.ModelID != s.ModelID || conv.rec.ProviderID != s.ProviderID)
	if changed {
		conv.rec.ModelID, conv.rec.ProviderID = s.ModelID, s.ProviderID
		c.publishRow(conv)
	} else if s.ModelID != "" && conv.row != nil {
		row := *conv.row
		row.ModelID, row.ProviderID = s.ModelID, s.ProviderID
		conv.row = &row
	}
	c.mu.Unlock()
	c.flush()
	if changed {
		c.save(conv)
	}
}

// settingsChanged takes what the runtime confirmed by itself. mu is held, so the record is written with its next change.
func (c *Conversations) settingsChanged(ev *runtime.Event) {
	if ev.SessionID == "" && ev.NativeID == "" {
		return // of the runtime as a whole: read again when somebody asks
	}
	conv := c.ofNames(ev.SessionID, ev.NativeID)
	if conv == nil || ev.SettingsChanged.ModelID == "" {
		return
	}
	if conv.isOwn {
		conv.rec.ModelID, conv.rec.ProviderID = ev.SettingsChanged.ModelID, ev.SettingsChanged.ProviderID
	} else if conv.row != nil {
		row := *conv.row
		row.ModelID, row.ProviderID = ev.SettingsChanged.ModelID, ev.SettingsChanged.ProviderID
		conv.row = &row
	}
	c.publishRow(conv)
}
