// Package config is the settings of a host: one TOML file, the few environment variables that override it, and where
// each value came from.
//
// A file is taken as a whole or not at all: unknown keys and wrong values are errors with line and column, and a reload
// that fails changes nothing. Secrets do not belong here; a plugin's secret settings are shown as "(set)". The package
// knows no part of the host. A File is safe for concurrent use; a Config is never changed after it was made.
package config

import (
	"encoding/json"
	"maps"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/openphone-host/openphone/sdk/runtime"
)

// Version is what this program writes and reads without a migration.
const Version = 1

// FileName is the configuration's name in the data directory.
const FileName = "config.toml"

// Config is everything a person can set.
type Config struct {
	// Version of the file's form. Absent: Version.
	Version int `toml:"version"`
	// Listen is where phones connect.
	Listen Listen `toml:"listen"`
	// Plugins is where runtimes are found.
	Plugins Plugins `toml:"plugins"`
	// Log is the local log.
	Log Log `toml:"log"`
	// Runtimes by instance id.
	Runtimes map[string]Runtime `toml:"runtimes"`
}

// Listen is where phones connect. Needs a restart.
type Listen struct {
	// Address is an IP address or name and a port, such as 0.0.0.0:7421. Port 0: one is chosen once and kept. Default
	// 127.0.0.1:0, which only this computer reaches.
	Address string `toml:"address"`
}

// Plugins is where runtimes are found. Needs a restart.
type Plugins struct {
	// Dirs are searched before the directory of the openphone executable; absolute.
	Dirs []string `toml:"dirs"`
}

// Log is the local log. Live.
type Log struct {
	// Level is the lowest that is written: debug, info, warn, error. Default info.
	Level string `toml:"level"`
	// Format is text or json. Default text. Needs a restart.
	Format string `toml:"format"`
}

// Runtime is one plugin. Live: the plugin is restarted when it changes.
type Runtime struct {
	// Enabled: it may run. Absent: what was chosen with "openphone runtime", else the default.
	Enabled *bool `toml:"enabled"`
	// Autonomy is the most the runtime is ever allowed on a phone: observe_only, ask_before_action, trusted_actions.
	// Default ask_before_action.
	Autonomy string `toml:"autonomy"`
	// Project limits it to one directory; absolute. Absent: the whole computer.
	Project string `toml:"project"`
	// LogLevel is the lowest level the plugin logs. Default info.
	LogLevel string `toml:"log_level"`
	// Environment adds variables: NAME = "value", or NAME = "" to pass on the host's own.
	Environment map[string]string `toml:"environment"`
	// Settings are the plugin's own, valid against the schema it declares. Secret ones belong into secrets.toml.
	Settings map[string]any `toml:"settings"`

	secrets map[string]string // of secrets.toml
}

// Default is the configuration of an empty file.
func Default() *Config {
	return &Config{
		Version: Version,
		Listen:  Listen{Address: "127.0.0.1:0"},
		Log:     Log{Level: "info", Format: "text"},
	}
}

// Runtime gives the settings of an instance, with defaults filled in.
func (c *Config) Runtime(id string) Runtime {
	r := c.Runtimes[id]
	if r.Autonomy == "" {
		r.Autonomy = "ask_before_action"
	}
	if r.LogLevel == "" {
		r.LogLevel = "info"
	}
	return r
}

// Ceiling is Autonomy as the policy reads it.
func (r Runtime) Ceiling() runtime.Autonomy { return autonomies[r.Autonomy] }

var autonomies = map[string]runtime.Autonomy{
	"":                  runtime.AutonomyAskBeforeAction,
	"observe_only":      runtime.AutonomyObserveOnly,
	"ask_before_action": runtime.AutonomyAskBeforeAction,
	"trusted_actions":   runtime.AutonomyTrustedActions,
}

// JSON is the plugin's own settings as a JSON object, the secret ones included: it is for the plugin alone.
func (r Runtime) JSON() ([]byte, error) {
	all := make(map[string]any, len(r.Settings)+len(r.secrets))
	maps.Copy(all, r.Settings)
	for k, v := range r.secrets {
		all[k] = v
	}
	return json.Marshal(all)
}

var (
	instanceID = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,63}$`)
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,199}$`)
	levels     = []string{"debug", "info", "warn", "error"}
)

// validate finds wrong values; it answers the key that holds one and what is wrong with it.
func (c *Config) validate() (key, problem string) {
	host, port, err := net.SplitHostPort(c.Listen.Address)
	if err != nil || host == "" {
		return "listen.address", "must be an address and a port, such as 127.0.0.1:0"
	}
	if _, err := netip.ParseAddr(host); err != nil && strings.ContainsAny(host, " /\\:") {
		return "listen.address", "must begin with an IP address or a name"
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "listen.address", "must end with a port from 0 to 65535"
	}
	for _, d := range c.Plugins.Dirs {
		if !filepath.IsAbs(d) {
			return "plugins.dirs", "must be absolute paths"
		}
	}
	if !slices.Contains(levels, c.Log.Level) {
		return "log.level", "must be debug, info, warn or error"
	}
	if c.Log.Format != "text" && c.Log.Format != "json" {
		return "log.format", "must be text or json"
	}
	for _, id := range sortedKeys(c.Runtimes) {
		r, at := c.Runtimes[id], "runtimes."+id
		switch {
		case !instanceID.MatchString(id) || strings.Contains(id, ".."):
			return at, "must be an id of lower case letters, digits, dots and dashes"
		case !has(autonomies, r.Autonomy):
			return at + ".autonomy", "must be observe_only, ask_before_action or trusted_actions"
		case r.LogLevel != "" && !slices.Contains(levels, r.LogLevel):
			return at + ".log_level", "must be debug, info, warn or error"
		case r.Project != "" && !filepath.IsAbs(r.Project):
			return at + ".project", "must be an absolute path"
		}
		for _, name := range sortedKeys(r.Environment) {
			if !envName.MatchString(name) || strings.ContainsRune(r.Environment[name], 0) {
				return at + ".environment." + name, "must be the name of a variable"
			}
		}
	}
	return "", ""
}

func has[V any](m map[string]V, k string) bool { _, ok := m[k]; return ok }
