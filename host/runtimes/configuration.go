package runtimes

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// configuration makes the Configure request: settings checked against the plugin's schema, secrets apart.
func (i *Instance) configuration(d *runtime.Description, set Settings) (*runtime.ConfigureRequest, error) {
	dir, err := i.dataDir()
	if err != nil {
		return nil, codes.New(codes.PluginStartFailed).Because(err)
	}
	config, secrets, err := splitConfig(d.ConfigSchema.Data, set.Config)
	if err != nil {
		return nil, codes.New(codes.ConfigInvalid, "where", "runtimes."+i.id).Because(err)
	}
	return &runtime.ConfigureRequest{
		ContractMinor:  min(contractMinor, d.ContractMinor),
		InstanceID:     i.id,
		Config:         runtime.JSON(config),
		Secrets:        secrets,
		InstanceSecret: string(set.InstanceSecret),
		DataDir:        dir,
		ProjectPath:    set.ProjectPath,
		HostFeatures:   hostFeatures,
	}, nil
}

// splitConfig validates settings against a JSON Schema and takes out the properties it marks writeOnly: they are secrets.
// Without a schema only an empty object is valid.
func splitConfig(schema, config []byte) ([]byte, map[string]string, error) {
	if len(bytes.TrimSpace(config)) == 0 {
		config = []byte("{}")
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(config))
	if err != nil {
		return nil, nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, nil, fmt.Errorf("the settings are not a table")
	}
	if len(schema) == 0 {
		if len(object) > 0 {
			return nil, nil, fmt.Errorf("the plugin has no settings")
		}
		return []byte("{}"), nil, nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, nil, fmt.Errorf("the plugin's schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:settings", doc); err != nil {
		return nil, nil, fmt.Errorf("the plugin's schema: %w", err)
	}
	compiled, err := c.Compile("mem:settings")
	if err != nil {
		return nil, nil, fmt.Errorf("the plugin's schema: %w", err)
	}
	if err := compiled.Validate(value); err != nil {
		return nil, nil, err
	}
	var secrets map[string]string
	for name, p := range compiled.Properties {
		v, present := object[name]
		if !present || !p.WriteOnly {
			continue
		}
		text, ok := v.(string)
		if !ok {
			return nil, nil, fmt.Errorf("the secret %s is not a string", name)
		}
		if secrets == nil {
			secrets = map[string]string{}
		}
		secrets[name] = text
		delete(object, name)
	}
	out, err := json.Marshal(object)
	return out, secrets, err
}
