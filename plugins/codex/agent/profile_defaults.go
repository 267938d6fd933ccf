package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
)

// The two keys of the user's configuration that may be changed, and the only provider they may be changed for.
const (
	modelKey       = "model"
	effortKey      = "model_reasoning_effort"
	openaiProvider = "openai"
)

const (
	maxLevels   = 16 // reasoning levels of a model
	maxLevelLen = 32 // characters of one
	maxName     = 256
)

// layerVersion is a state of the user's configuration that a person was shown; it is good for one change.
type layerVersion struct {
	version string
	content [sha256.Size]byte
}

// userLayer is the person's own configuration file as the runtime reads it.
type userLayer struct {
	version  string
	config   map[string]any
	provider string // effective
}

type defaultsResult struct {
	Model    *string        `json:"model"`
	Thinking *string        `json:"thinking"`
	Version  string         `json:"version"`
	Editable bool           `json:"editable"`
	Models   []defaultModel `json:"models"`
}

type defaultModel struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	IsDefault    bool     `json:"isDefault"`
	Levels       []string `json:"levels"`
	DefaultLevel string   `json:"defaultLevel,omitempty"`
}

// defaults reads what new conversations get.
func (p *profile) defaults(ctx context.Context, c profileCall) (any, error) {
	if err := c.decode(&struct{}{}); err != nil {
		return nil, err
	}
	return p.readDefaults(ctx, c.client)
}

func (p *profile) readDefaults(ctx context.Context, client *appserver.Client) (*defaultsResult, error) {
	layer, err := readUserLayer(ctx, client)
	if err != nil {
		return nil, err
	}
	models, err := client.Models(ctx)
	if err != nil {
		return nil, err
	}
	r := &defaultsResult{
		Model: stringIn(layer.config, modelKey), Thinking: stringIn(layer.config, effortKey),
		Editable: layer.version != "" && layer.provider == openaiProvider, Models: []defaultModel{},
	}
	r.Version = p.name(handle{version: &layerVersion{version: layer.version, content: layer.hash()}})
	for _, m := range models {
		r.Models = append(r.Models, shownModel(m))
	}
	return r, nil
}

// shownModel is a model of the catalog as a phone is shown it.
func shownModel(m appserver.Model) defaultModel {
	d := defaultModel{ID: cutUnits(modelID(m), maxName), Name: cutUnits(string(m.DisplayName), maxName), IsDefault: m.IsDefault, Levels: []string{}}
	if d.Name == "" {
		d.Name = d.ID
	}
	for _, e := range m.Efforts {
		if len(d.Levels) < maxLevels && e.Effort != "" && len(e.Effort) <= maxLevelLen {
			d.Levels = append(d.Levels, string(e.Effort))
		}
	}
	if slices.Contains(d.Levels, string(m.DefaultEffort)) {
		d.DefaultLevel = string(m.DefaultEffort)
	}
	return d
}

func modelID(m appserver.Model) string {
	if m.Model != "" {
		return m.Model
	}
	return m.ID
}

// setDefaults changes the two keys if the configuration is still the one the person was shown, and succeeds only when
// a second reading shows exactly that change and no other.
func (p *profile) setDefaults(ctx context.Context, c profileCall) (any, error) {
	var in struct {
		Model    *string `json:"model"`
		Thinking *string `json:"thinking"`
		Version  string  `json:"version"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	p.writes.Lock()
	defer p.writes.Unlock()
	shown, ok := p.take(in.Version)
	if !ok || shown.version == nil {
		return nil, codes.New(codes.VersionConflict)
	}
	if err := validDefaults(ctx, c.client, in.Model, in.Thinking); err != nil {
		return nil, err
	}
	before, err := readUserLayer(ctx, c.client)
	switch {
	case err != nil:
		return nil, err
	case before.version == "" || before.provider != openaiProvider:
		return nil, codes.New(codes.SettingsUnsupported)
	case before.version != shown.version.version || before.hash() != shown.version.content:
		return nil, codes.New(codes.VersionConflict)
	}
	edits := []appserver.ConfigEdit{
		{KeyPath: modelKey, Value: in.Model, MergeStrategy: "replace"},
		{KeyPath: effortKey, Value: in.Thinking, MergeStrategy: "replace"},
	}
	if err := writeError(c.client.ConfigWrite(ctx, edits, before.version)); err != nil {
		return nil, err
	}
	want := before
	want.config = maps.Clone(before.config)
	put(want.config, modelKey, in.Model)
	put(want.config, effortKey, in.Thinking)
	after, err := readUserLayer(ctx, c.client)
	if err != nil || after.hash() != want.hash() {
		return nil, codes.New(codes.NotConfirmed).Because(err)
	}
	return p.readDefaults(ctx, c.client)
}

// validDefaults checks the choice against the catalog, because the runtime takes any text.
func validDefaults(ctx context.Context, client *appserver.Client, model, thinking *string) error {
	models, err := client.Models(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(models, func(m appserver.Model) bool {
		if model == nil {
			return m.IsDefault
		}
		return modelID(m) == *model
	})
	if model != nil && i < 0 {
		return codes.New(codes.ModelMissing)
	}
	if thinking != nil && (i < 0 || !slices.Contains(shownModel(models[i]).Levels, *thinking)) {
		return codes.New(codes.OptionInvalid)
	}
	return nil
}

// writeError is the failure of a write: refused, or of unknown outcome and then never repeated.
func writeError(err error) error {
	switch {
	case err == nil:
		return nil
	case appserver.Classify(err) == appserver.RefusalConflict:
		return codes.New(codes.VersionConflict).Because(err)
	case appserver.Rejected(err):
		return codes.New(codes.NotConfirmed).With(codes.NotDispatched).Because(err)
	}
	return codes.New(codes.NotConfirmed).With(codes.Unknown).Because(err)
}

// readUserLayer finds the person's own file among the layers of the configuration; without one the version is empty.
func readUserLayer(ctx context.Context, client *appserver.Client) (userLayer, error) {
	raw, err := client.ConfigRead(ctx, "")
	if err != nil {
		return userLayer{}, err
	}
	var answer struct {
		Config struct {
			Provider appserver.String `json:"model_provider"`
		} `json:"config"`
		Layers []struct {
			Name struct {
				Type    string  `json:"type"`
				Profile *string `json:"profile"`
			} `json:"name"`
			Version string          `json:"version"`
			Config  json.RawMessage `json:"config"`
		} `json:"layers"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return userLayer{}, codes.New(codes.ReplyInvalid).Because(err)
	}
	layer := userLayer{config: map[string]any{}, provider: string(answer.Config.Provider)}
	if layer.provider == "" {
		layer.provider = openaiProvider
	}
	for _, l := range answer.Layers {
		if l.Name.Type != "user" || l.Name.Profile != nil {
			continue
		}
		d := json.NewDecoder(bytes.NewReader(l.Config))
		d.UseNumber()
		if err := d.Decode(&layer.config); err != nil || layer.config == nil {
			return userLayer{}, codes.New(codes.ReplyInvalid).Because(err)
		}
		layer.version = l.Version
		return layer, nil
	}
	return layer, nil
}

// hash is the content of the layer in a canonical form.
func (l userLayer) hash() [sha256.Size]byte {
	b, err := json.Marshal(l.config)
	if err != nil {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256(b)
}

func stringIn(config map[string]any, key string) *string {
	if s, ok := config[key].(string); ok {
		return &s
	}
	return nil
}

func put(config map[string]any, key string, value *string) {
	if value == nil {
		delete(config, key)
		return
	}
	config[key] = *value
}
