// Package host is the composition root: it builds every part, runs them, and stops them in the reverse order. It holds
// no behaviour of its own beyond that wiring; the parts never import it.
//
// Start: store, listener, runtimes with their conversations and dialects, control socket. Stop: the door for new
// requests closes at once, those inside come back, sockets end, plugins end, conversations end, the store closes.
package host

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/openphone-host/openphone/host/control"
	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/host/pairing"
	"github.com/openphone-host/openphone/host/phone"
	"github.com/openphone-host/openphone/host/phone/conversations"
	"github.com/openphone-host/openphone/host/runtimes"
	"github.com/openphone-host/openphone/host/sessions"
	"github.com/openphone-host/openphone/host/store"
	"github.com/openphone-host/openphone/protocol/codes"
)

// Options say where and how a host runs.
type Options struct {
	// Home is the private data directory; it is made when missing, with mode 0700.
	Home string
	// PluginDirs are searched for plugins before those of the configuration; the first also holds the build's checksums.
	PluginDirs []string
	// Version is the host's own, told to phones.
	Version string
	// Logs take what the host writes; nil keeps the last records in memory only.
	Logs *obs.Logs
	// Fault is called at each of sessions.KillPoints; nil outside of fault tests.
	Fault func(point string)
}

// Host is one running host. Make it with New, then Run it once.
type Host struct {
	opt       Options
	log       *slog.Logger
	metrics   *prometheus.Registry
	store     *store.Store
	settings  *settings
	admission phone.Admission
	pairing   *pairing.Service
	listener  *phone.Listener
	runtimes  *runtimes.Supervisor
	control   *control.Server
	rooms     map[string]*room // by instance; fixed after New
	began     time.Time
	ready     atomic.Bool
	demo      atomic.Bool   // nothing else is of use, so the demo is served
	end       chan struct{} // closed when somebody asked for the end through the control socket
	force     chan struct{} // closed when they want no drain
	ending    sync.Once
	forcing   sync.Once

	mu    sync.Mutex
	moved chan struct{} // closed and replaced when a runtime changed; guarded by mu
}

// room is what belongs to one runtime: its conversations, which follow the plugin, and the dialect phones speak.
type room struct {
	*sessions.Conversations
	host     *Host
	instance *runtimes.Instance
	dialect  *conversations.Dialect
}

var (
	_ sessions.Runtime  = (*runtimes.Instance)(nil)
	_ runtimes.Observer = (*room)(nil)
)

// Changed implements runtimes.Observer: the conversations hear of it, and who waits for the runtimes to settle.
func (r *room) Changed() {
	r.Conversations.Changed()
	r.host.announce()
}

// New builds the host; nothing is served before Run. Errors are start-up sentences: store_locked, store_newer,
// store_corrupt, store_read_only, config_invalid, listen_failed.
func New(ctx context.Context, o Options) (_ *Host, err error) {
	if o.Logs == nil {
		o.Logs = obs.New(obs.Options{})
	}
	h := &Host{
		opt: o, log: o.Logs.Logger("host"), metrics: obs.NewRegistry(), rooms: map[string]*room{}, began: time.Now(),
		end: make(chan struct{}), force: make(chan struct{}), moved: make(chan struct{}),
	}
	obs.RedirectStandard(o.Logs.Logger("library"))
	if err := os.MkdirAll(o.Home, 0o700); err != nil {
		return nil, codes.New(codes.StoreReadOnly).Because(err)
	}
	if h.store, err = store.Open(ctx, o.Home, o.Logs.Logger("store")); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.store.Close())
		}
	}()
	if h.settings, err = newSettings(ctx, o.Home, h.store, o.Logs); err != nil {
		return nil, err
	}
	h.pairing = pairing.New(pairing.Options{
		Store: h.store, Log: o.Logs.Logger("pairing"), Disconnect: func(id string) int { return h.listener.Disconnect(id) },
	})
	if err := h.listen(ctx); err != nil {
		return nil, err
	}
	if err := h.assemble(); err != nil {
		return nil, err
	}
	h.control = control.New(control.Options{
		Dir: o.Home, Backend: backend{h}, Runtimes: h.runtimes, Sessions: h.service, Logs: o.Logs, Metrics: h.metrics,
		Log: o.Logs.Logger("control"),
	})
	return h, nil
}

// service finds the conversations of a runtime.
func (h *Host) service(runtime string) sessions.Service {
	if r := h.rooms[runtime]; r != nil {
		return r.Conversations
	}
	return nil
}

// announce wakes who waits for a change of a runtime.
func (h *Host) announce() {
	h.mu.Lock()
	close(h.moved)
	h.moved = make(chan struct{})
	h.mu.Unlock()
	if h.control != nil {
		h.control.Changed()
	}
}

// changed is closed at the next change of a runtime.
func (h *Host) changed() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.moved
}
