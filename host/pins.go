package host

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/openphone-host/openphone/host/store"
)

// pinFile lies beside the host's executable; the build writes it: file name to sha256 of every plugin built with it.
const pinFile = "plugins.json"

// pins joins the checksums a build vouches for with those a person trusted by enabling a plugin. The younger word
// counts: an installation brings a new file of pins, a person may trust another executable after that.
type pins struct {
	store   *store.Store
	log     *slog.Logger
	built   map[string]string
	builtAt time.Time
}

func newPins(dirs []string, st *store.Store, log *slog.Logger) *pins {
	p := &pins{store: st, log: log, built: map[string]string{}}
	if len(dirs) == 0 {
		return p
	}
	path := filepath.Join(dirs[0], pinFile)
	raw, err := os.ReadFile(path)
	if err != nil {
		return p
	}
	if err := json.Unmarshal(raw, &p.built); err != nil {
		log.Warn("the checksums of the build cannot be read", "error", err)
	}
	if info, err := os.Stat(path); err == nil {
		p.builtAt = info.ModTime()
	}
	return p
}

// Pin implements runtimes.Pins.
func (p *pins) Pin(executable string) string {
	own, ok, err := p.store.Pin(context.Background(), executable)
	if err != nil {
		p.log.Warn("a checksum cannot be read", "error", err)
		return ""
	}
	built := p.built[executable]
	if ok && (built == "" || own.PinnedAt.After(p.builtAt)) {
		return own.SHA256
	}
	return built
}

// SetPin implements runtimes.Pins.
func (p *pins) SetPin(ctx context.Context, executable, sha256 string) error {
	return p.store.PutPin(ctx, store.Pin{Name: executable, SHA256: sha256, PinnedAt: time.Now()})
}
