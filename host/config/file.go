package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"github.com/openphone-host/openphone/protocol/codes"
)

// File is the configuration of one host, and how it changes while the host runs.
type File struct {
	path   string
	getenv func(string) string

	mu      sync.Mutex
	current *Config           // guarded by mu
	origins map[string]string // guarded by mu
	parts   []Part            // guarded by mu
}

// Part is what follows changes. Verify may refuse a new configuration and must change nothing; Apply takes it.
type Part struct {
	Verify func(next *Config) error
	Apply  func(old, next *Config)
}

// Open reads the file at path; a file that does not exist is an empty one. A file of an older version is migrated: the
// old one is kept beside it as config.toml.v<old>. Errors are config_invalid with the place.
func Open(path string, getenv func(string) string) (*File, error) {
	return open(path, getenv, migrations)
}

func open(path string, getenv func(string) string, list []migration) (*File, error) {
	b, err := load(path)
	if err != nil {
		return nil, err
	}
	if b, err = migrate(path, b, list); err != nil {
		return nil, err
	}
	f := &File{path: path, getenv: getenv}
	f.current, f.origins, err = f.join(b)
	return f, err
}

// join reads a configuration with the secrets that belong to it.
func (f *File) join(b []byte) (*Config, map[string]string, error) {
	c, origins, err := read(b, f.getenv)
	if err != nil {
		return nil, nil, err
	}
	secrets, err := readSecrets(filepath.Join(filepath.Dir(f.path), secretsName))
	if err != nil {
		return nil, nil, err
	}
	for id, kv := range secrets {
		r := c.Runtimes[id]
		r.secrets = kv
		if c.Runtimes == nil {
			c.Runtimes = map[string]Runtime{}
		}
		c.Runtimes[id] = r
	}
	return c, origins, nil
}

func load(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, codes.New(codes.ConfigInvalid, "where", "the file cannot be read").Because(err)
	}
	return b, nil
}

// Path is where the file is, or would be.
func (f *File) Path() string { return f.path }

// Current is the configuration in force. It must not be changed.
func (f *File) Current() *Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current
}

// Follow makes a part take changes from now on.
func (f *File) Follow(p Part) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.parts = append(f.parts, p)
}

// Reload reads the file again. Every part is asked first and then all take it; on an error nothing has changed. It
// answers the keys that changed: those in force now, and those that wait for a restart of the host.
func (f *File) Reload() (applied, restart []string, err error) {
	b, err := load(f.path)
	if err != nil {
		return nil, nil, err
	}
	next, origins, err := f.join(b)
	if err != nil {
		return nil, nil, err
	}
	f.mu.Lock()
	old, parts := f.current, slices.Clone(f.parts)
	f.mu.Unlock()
	for _, p := range parts {
		if p.Verify == nil {
			continue
		}
		if err := p.Verify(next); err != nil {
			return nil, nil, err
		}
	}
	before, after := flat(old), flat(next)
	for _, key := range sortedKeys(union(before, after)) {
		if before[key] == after[key] && secretOf(old, key) == secretOf(next, key) {
			continue
		}
		if live(key) {
			applied = append(applied, key)
		} else {
			restart = append(restart, key)
		}
	}
	f.mu.Lock()
	f.current, f.origins = next, origins
	f.mu.Unlock()
	for _, p := range parts {
		if p.Apply != nil {
			p.Apply(old, next)
		}
	}
	return applied, restart, nil
}

// live reports whether a change of the key is applied while the host runs.
func live(key string) bool {
	return key == "log.level" || strings.HasPrefix(key, "runtimes.")
}

// Setting is one value in force.
type Setting struct {
	Key    string
	Value  string // as TOML writes it
	Origin string // default, file:LINE or env:NAME
	Live   bool   // changes are applied while the host runs
}

// Effective lists every value in force, in order of key. Plugins' own settings are listed as present only: which of them
// are secret is known to the plugin alone.
func (f *File) Effective() []Setting {
	f.mu.Lock()
	c, origins := f.current, f.origins
	f.mu.Unlock()
	values := flat(c)
	var list []Setting
	for _, key := range sortedKeys(values) {
		s := Setting{Key: key, Value: values[key], Origin: "default", Live: live(key)}
		for k := key; k != ""; { // the value may have been given as a part of a table
			if o, ok := origins[k]; ok {
				s.Origin = o
				break
			}
			cut := strings.LastIndexByte(k, '.')
			if cut < 0 {
				break
			}
			k = k[:cut]
		}
		if strings.Contains(key, ".settings.") || strings.Contains(key, ".environment.") {
			s.Value = `"(set)"`
		}
		if secretOf(c, key) != "" {
			s.Origin = secretsName
		}
		list = append(list, s)
	}
	return list
}

// flat writes a Config as dotted keys and TOML values.
func flat(c *Config) map[string]string {
	out := map[string]string{}
	flatten(out, "", reflect.ValueOf(*c))
	for id, r := range c.Runtimes {
		for k := range r.secrets {
			out["runtimes."+id+".settings."+k] = `"(set)"`
		}
	}
	return out
}

func flatten(out map[string]string, key string, v reflect.Value) {
	join := func(name string) string {
		if key == "" {
			return name
		}
		return key + "." + name
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			flatten(out, key, v.Elem())
		}
	case reflect.Struct:
		if v.Type().PkgPath() != reflect.TypeFor[Config]().PkgPath() { // a date of TOML, for instance
			out[key] = value(v.Interface())
			return
		}
		for i := range v.NumField() {
			x := v.Field(i)
			if !v.Type().Field(i).IsExported() {
				continue
			}
			if x.IsZero() && strings.HasPrefix(key, "runtimes.") {
				continue
			}
			flatten(out, join(v.Type().Field(i).Tag.Get("toml")), x)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			flatten(out, join(k.String()), v.MapIndex(k))
		}
	default:
		out[key] = value(v.Interface())
	}
}

// value writes one value the way TOML does.
func value(v any) string {
	if r := reflect.ValueOf(v); r.Kind() == reflect.Slice && r.Len() == 0 {
		return "[]"
	}
	b, err := toml.Marshal(map[string]any{"x": v})
	if err != nil {
		return fmt.Sprint(v)
	}
	_, text, _ := strings.Cut(string(bytes.TrimSpace(b)), "=")
	return strings.TrimSpace(text)
}

func union(a, b map[string]string) map[string]bool {
	out := map[string]bool{}
	for k := range a {
		out[k] = true
	}
	for k := range b {
		out[k] = true
	}
	return out
}

// migration makes a file of version from+1 out of one of version from.
type migration struct {
	from    int
	migrate func(map[string]any)
}

// migrations are in order. The first version needs none.
var migrations []migration

// migrate brings a file up to date, keeps the old one and writes the new one.
func migrate(path string, b []byte, list []migration) ([]byte, error) {
	if len(list) == 0 || len(bytes.TrimSpace(b)) == 0 {
		return b, nil
	}
	var doc map[string]any
	if err := toml.Unmarshal(b, &doc); err != nil {
		return nil, decodeError(err)
	}
	was, ok := doc["version"].(int64)
	if !ok {
		return b, nil
	}
	now := was
	for _, m := range list {
		if int64(m.from) == now {
			m.migrate(doc)
			now++
			doc["version"] = now
		}
	}
	if now == was {
		return b, nil
	}
	next, err := toml.Marshal(doc)
	if err != nil {
		return nil, codes.New(codes.ConfigInvalid, "where", "it cannot be brought up to date").Because(err)
	}
	if err := write(fmt.Sprintf("%s.v%d", path, was), b); err != nil {
		return nil, codes.New(codes.StoreReadOnly).Because(err)
	}
	if err := write(path, next); err != nil {
		return nil, codes.New(codes.StoreReadOnly).Because(err)
	}
	return next, nil
}
