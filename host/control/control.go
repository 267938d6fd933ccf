// Package control is the local administration of a running host: ControlService on a unix socket that only the user of
// the host can open, and the client the command line uses.
//
// It shows what other parts say of themselves and passes on what a person asks for; it decides nothing, and nothing here
// can be reached by a phone, a relay or a plugin. What only the composition root knows comes through Backend. A Server is
// safe for concurrent use; Run is called once.
package control

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/host/runtimes"
	"github.com/openphone-host/openphone/host/sessions"
)

// Options of a Server. Everything but Dir and Backend may be left out; what is missing is shown as absent.
type Options struct {
	// Dir is the private data directory of the host; the socket lies in it, see address.
	Dir string
	// Backend is the composition root.
	Backend Backend
	// Runtimes are the plugins.
	Runtimes *runtimes.Supervisor
	// Sessions gives the conversations of a runtime; nil when it has none.
	Sessions func(runtime string) sessions.Service
	// Logs are read and tuned.
	Logs *obs.Logs
	// Metrics are read.
	Metrics prometheus.Gatherer
	// Log is the local log; nil discards.
	Log *slog.Logger
}

// Backend is what only the composition root knows or may do. Errors are *codes.Error.
type Backend interface {
	// Info tells how the host is; it must not block.
	Info() Info
	// Shutdown ends the host in order; see ControlService.Shutdown. It returns when the end has begun.
	Shutdown(ctx context.Context, drain time.Duration, force bool) error
	// SetEnabled keeps on disk whether a runtime may run. It starts and ends nothing.
	SetEnabled(ctx context.Context, runtime string, enabled bool) error
	// Checks looks at what is not a runtime: directories, listener, address, store.
	Checks(ctx context.Context) []Check
	// Config tells every setting in force, in order of key.
	Config() (path string, settings []Setting)
	// Reload reads the configuration file again.
	Reload(ctx context.Context) (applied, restart []string, err error)
	// Receipts gives the receipts of a conversation, newest first.
	Receipts(ctx context.Context, runtime, sessionID string) ([]Receipt, error)
	// OfferProject lets conversations be started in a directory, from now on.
	OfferProject(ctx context.Context, path string) error
	// Pair makes a direct pairing; see ControlService.PairDirect.
	Pair(ctx context.Context, label string, reachable bool) (*Pairing, error)
	// Phones lists pairings, newest first.
	Phones(ctx context.Context) ([]Phone, error)
	// Revoke ends the pairing with this id, or the only one with this label.
	Revoke(ctx context.Context, idOrLabel string) (Phone, error)
}

// Info is how the host is, beyond its runtimes.
type Info struct {
	Ready        bool
	Listen       string // address phones connect to
	Reachable    bool   // from other devices
	Version      string
	StartedAt    time.Time
	Sockets      int
	Runs         int
	Interactions int
	Stopping     bool
	Notices      []string
}

// Result is how a look turned out.
type Result int

// Results.
const (
	Failed Result = iota
	Warning
	OK
)

// Check is one thing that was looked at.
type Check struct {
	Name    string // stable
	Result  Result
	Message string // one sentence
	Advice  string // what to run or do; empty: nothing
}

// Setting is one setting in force.
type Setting struct {
	Key    string // dotted
	Value  string // as TOML writes it; secrets as (set)
	Origin string // default, file:LINE, env:NAME, store
	Live   bool   // applied while the host runs
}

// Receipt is one accepted prompt and what became of it.
type Receipt struct {
	RunID      string
	AcceptedAt time.Time
	EndedAt    time.Time // zero: it runs
	Outcome    string    // dispatched, not dispatched, unknown
	End        string    // running, completed, cancelled, failed, interrupted
	Code       string
}

// Pairing is a new pairing, told once.
type Pairing struct {
	PhoneID  string
	Backends []PairedBackend
	Notice   string // why no phone can use it; empty: one can
}

// PairedBackend is what one runtime's client needs. Token and QR are secrets.
type PairedBackend struct {
	Backend, URL string
	Token, QR    string
}

// Phone is one pairing.
type Phone struct {
	ID, Label                                 string
	CreatedAt, FirstUsed, LastUsed, RevokedAt time.Time
	Sockets                                   int
}

// Server offers ControlService.
type Server struct {
	opt Options
	log *slog.Logger

	ending chan struct{} // closed when Run ends: whoever follows something is let go

	mu    sync.Mutex
	moved chan struct{} // closed and replaced by Changed; guarded by mu
}

// New makes a server; Run offers it.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{opt: o, log: o.Log, moved: make(chan struct{}), ending: make(chan struct{})}
}

// Changed says that the status may have changed. It never blocks.
func (s *Server) Changed() {
	s.mu.Lock()
	close(s.moved)
	s.moved = make(chan struct{})
	s.mu.Unlock()
}

func (s *Server) change() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moved
}
