package host

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/openphone-host/openphone/host/config"
	"github.com/openphone-host/openphone/host/control"
	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/host/runtimes"
	"github.com/openphone-host/openphone/host/store"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// demoID is the runtime that is served when nothing else is of use.
const demoID = "demo"

const (
	enabledKey = "runtime.enabled." // + instance: "true" or "false", a person's choice on the command line
	projectKey = "projects"         // JSON array of absolute paths, latest first
	secretKey  = "instance.secret"  // 64 hex digits; the secrets of all instances are derived from it
)

// settings joins the configuration file with what a person chose on the command line, which the store keeps.
type settings struct {
	file   *config.File
	store  *store.Store
	secret string

	offering sync.Mutex // serialises offerProject
}

func newSettings(ctx context.Context, home string, st *store.Store, logs *obs.Logs) (*settings, error) {
	file, err := config.Open(filepath.Join(home, config.FileName), os.Getenv)
	if err != nil {
		return nil, err
	}
	level := func(c *config.Config) {
		if l, ok := obs.ParseLevel(c.Log.Level); ok {
			logs.SetLevel("", l)
		}
	}
	if file.Current().Log.Level != config.Default().Log.Level {
		level(file.Current()) // otherwise the command line's choice stays
	}
	file.Follow(config.Part{Apply: func(old, next *config.Config) {
		if old.Log.Level != next.Log.Level {
			level(next)
		}
	}})
	secret, ok, err := st.Meta(ctx, secretKey)
	if err != nil {
		return nil, err
	}
	if !ok {
		b := make([]byte, 32)
		_, _ = rand.Read(b) // never fails
		secret = hex.EncodeToString(b)
		if err := st.SetMeta(ctx, secretKey, secret); err != nil {
			return nil, err
		}
	}
	return &settings{file: file, store: st, secret: secret}, nil
}

func (s *settings) listen() string               { return s.file.Current().Listen.Address }
func (s *settings) pluginDirs() []string         { return s.file.Current().Plugins.Dirs }
func (s *settings) projectPath(id string) string { return s.file.Current().Runtime(id).Project }
func (s *settings) autonomy(id string) runtime.Autonomy {
	return s.file.Current().Runtime(id).Ceiling()
}

// effective tells every setting in force, those from the command line included.
func (s *settings) effective(ids []string) (string, []control.Setting) {
	var list []control.Setting
	seen := map[string]bool{}
	for _, v := range s.file.Effective() {
		seen[v.Key] = true
		list = append(list, control.Setting{Key: v.Key, Value: v.Value, Origin: v.Origin, Live: v.Live})
	}
	for _, id := range ids {
		if key := "runtimes." + id + ".enabled"; !seen[key] || s.file.Current().Runtime(id).Enabled == nil {
			if own := s.enabled(id); own != nil {
				list = append(list, control.Setting{Key: key, Value: strconv.FormatBool(*own), Origin: "store", Live: true})
			}
		}
	}
	slices.SortFunc(list, func(a, b control.Setting) int { return cmp.Compare(a.Key, b.Key) })
	return s.file.Path(), list
}

// touched reports that a list of changed settings concerns an instance.
func (s *settings) touched(id string, keys []string) bool {
	for _, k := range keys {
		if strings.HasPrefix(k, "runtimes."+id+".") {
			return true
		}
	}
	return false
}

// enabled is what a person decided about an instance, in the file or else on the command line; nil: nothing.
func (s *settings) enabled(id string) *bool {
	if own := s.file.Current().Runtime(id).Enabled; own != nil {
		return own
	}
	v, ok, err := s.store.Meta(context.Background(), enabledKey+id)
	if err != nil || !ok {
		return nil
	}
	yes := v == "true"
	return &yes
}

// setEnabled keeps a choice made on the command line. The file outranks it, so a choice against the file is refused.
func (s *settings) setEnabled(ctx context.Context, id string, enabled bool) error {
	if own := s.file.Current().Runtime(id).Enabled; own != nil && *own != enabled {
		return codes.New(codes.ConfigInvalid, "where", "runtimes."+id+".enabled in config.toml decides; change it there")
	}
	v := "false"
	if enabled {
		v = "true"
	}
	return s.store.SetMeta(ctx, enabledKey+id, v)
}

// maxProjects is how many offered directories are remembered.
const maxProjects = 100

// projects lists the directories a person offered on this computer, latest first.
func (s *settings) projects() []string {
	var list []string
	if v, ok, err := s.store.Meta(context.Background(), projectKey); err == nil && ok {
		_ = json.Unmarshal([]byte(v), &list) // written by offerProject alone
	}
	return list
}

// offerProject remembers a directory. Errors: project_unavailable.
func (s *settings) offerProject(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() || !filepath.IsAbs(path) {
		return codes.New(codes.ProjectUnavailable).Because(err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return codes.New(codes.ProjectUnavailable).Because(err)
	}
	s.offering.Lock()
	defer s.offering.Unlock()
	list := slices.DeleteFunc(s.projects(), func(p string) bool { return p == path })
	list = append([]string{path}, list...)
	raw, err := json.Marshal(list[:min(len(list), maxProjects)])
	if err != nil {
		return err
	}
	return s.store.SetMeta(ctx, projectKey, string(raw))
}

// instanceSecret is stable until the data directory is lost: plugins derive keys from it.
func (s *settings) instanceSecret(id string) string {
	mac := hmac.New(sha256.New, []byte(s.secret))
	mac.Write([]byte("instance\x00" + id))
	return hex.EncodeToString(mac.Sum(nil))
}

// plugin implements runtimes.Options.Settings. A runtime runs unless a person said no; the demo runs when a person
// said yes, or when nothing else is of use.
func (h *Host) plugin(id string) runtimes.Settings {
	c := h.settings.file.Current().Runtime(id)
	set := runtimes.Settings{
		Enabled: id != demoID || h.demo.Load(), InstanceSecret: obs.Redacted(h.settings.instanceSecret(id)), ProjectPath: c.Project,
		Environment: c.Environment, LogLevel: c.LogLevel,
	}
	if own := h.settings.enabled(id); own != nil {
		set.Enabled = *own
	}
	var err error
	if set.Config, err = c.JSON(); err != nil {
		h.log.Error("settings of a runtime cannot be used", obs.KeyRuntime, id, obs.KeyError, err)
		set.Enabled = false
	}
	return set
}
