package host

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/openphone-host/openphone/host/control"
	"github.com/openphone-host/openphone/host/runtimes"
	"github.com/openphone-host/openphone/host/store"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// demoID is the runtime that is served when nothing else is of use.
const demoID = "demo"

const (
	enabledKey = "runtime.enabled." // + instance: "true" or "false", a person's choice on the command line
	secretKey  = "instance.secret"  // 64 hex digits; the secrets of all instances are derived from it
)

// settings joins the configuration file with what a person chose on the command line, which the store keeps.
type settings struct {
	store  *store.Store
	secret string
}

func newSettings(ctx context.Context, home string, st *store.Store) (*settings, error) {
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
	return &settings{store: st, secret: secret}, nil
}

func (s *settings) listen() string                                 { return "127.0.0.1:0" }
func (s *settings) pluginDirs() []string                           { return nil }
func (s *settings) projectPath(string) string                      { return "" }
func (s *settings) autonomy(string) runtime.Autonomy               { return 0 }
func (s *settings) effective() (string, []control.Setting)         { return "", nil }
func (s *settings) reload() (applied, restart []string, err error) { return nil, nil, nil }

// touched reports that a list of changed settings concerns an instance.
func (s *settings) touched(id string, keys []string) bool {
	for _, k := range keys {
		if strings.HasPrefix(k, "runtimes."+id+".") {
			return true
		}
	}
	return false
}

// enabled is what a person decided about an instance; nil: nothing.
func (s *settings) enabled(id string) *bool {
	v, ok, err := s.store.Meta(context.Background(), enabledKey+id)
	if err != nil || !ok {
		return nil
	}
	yes := v == "true"
	return &yes
}

func (s *settings) setEnabled(ctx context.Context, id string, enabled bool) error {
	v := "false"
	if enabled {
		v = "true"
	}
	return s.store.SetMeta(ctx, enabledKey+id, v)
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
	set := runtimes.Settings{Enabled: id != demoID || h.demo.Load(), InstanceSecret: h.settings.instanceSecret(id), ProjectPath: h.settings.projectPath(id)}
	if own := h.settings.enabled(id); own != nil {
		set.Enabled = *own
	}
	return set
}
