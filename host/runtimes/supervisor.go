package runtimes

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/thejerf/suture/v4"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Options of a Supervisor. The zero value runs nothing.
type Options struct {
	// Dirs are searched for openphone-runtime-* executables; the first that has one wins.
	Dirs []string
	// DataDir is the host's private directory, absolute and existing. Plugins get plugins/<instance> inside it.
	DataDir string
	// Pins tells which checksum an executable must have. Nil: none is known, and nothing starts.
	Pins Pins
	// Settings gives what the person configured for an instance; asked before each start. Nil: the defaults.
	Settings func(instance string) Settings
	// Observer is asked once per instance for who follows it. Nil, or a nil answer: nobody.
	Observer func(*Instance) Observer
	// State and Attention back HostService. Nil: the feature answers feature_not_granted.
	State     StateStore
	Attention AttentionStore
	// Log is the local log; nil discards.
	Log *slog.Logger
	// Metrics takes the counters; nil: they are counted for nobody.
	Metrics prometheus.Registerer
	// HealthEvery is the time between two looks at a plugin; default 10 s. A call that misses its deadline looks at once.
	HealthEvery time.Duration
	// DrainFor is how long an upgrade waits for running replies; default 10 min.
	DrainFor time.Duration
	// Environ is the host's own environment; default os.Environ.
	Environ func() []string
}

// Settings is what a person configured for one instance. The zero value means disabled.
type Settings struct {
	// Enabled: the plugin may run.
	Enabled bool
	// Config is a JSON object for the plugin, with its secrets; nil: an empty one.
	Config []byte
	// Environment adds variables by name; an empty value passes the host's own on.
	Environment map[string]string
	// ProjectPath limits the runtime to one directory; empty: the whole computer.
	ProjectPath string
	// InstanceSecret is Configure's secret of the same name.
	InstanceSecret obs.Redacted
	// LogLevel is the lowest level the plugin logs: debug, info, warn, error. Empty: info.
	LogLevel string
}

// Pins remembers the checksums of executables that a build or a person has trusted.
type Pins interface {
	// Pin gives the sha256 in hex for a name such as openphone-runtime-demo, which has no extension on any system; empty:
	// not trusted yet.
	Pin(executable string) string
	// SetPin trusts a checksum from now on, durably.
	SetPin(ctx context.Context, executable, sha256 string) error
}

// Supervisor owns all plugin processes. Its methods are safe for concurrent use; Run is called once.
type Supervisor struct {
	opt     Options
	log     *slog.Logger
	vault   *vault
	metrics *metrics
	hurried context.Context // ends when nobody waits any more for plugins to end by themselves
	hurry   context.CancelFunc

	instances map[string]*Instance // fixed after New

	mu      sync.Mutex
	found   map[string]string // executables by runtime id; guarded by mu
	sockets string            // directory for sockets; guarded by mu
	running context.Context   // ends with Run; guarded by mu
}

// New makes a supervisor. It looks for executables at once, so that Instances can be listed before Run.
func New(opt Options) *Supervisor {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	opt.HealthEvery = cmp.Or(opt.HealthEvery, 10*time.Second)
	opt.DrainFor = cmp.Or(opt.DrainFor, 10*time.Minute)
	if opt.Environ == nil {
		opt.Environ = os.Environ
	}
	s := &Supervisor{
		opt: opt, log: opt.Log, vault: newVault(filepath.Join(opt.DataDir, "executables")),
		metrics: newMetrics(opt.Metrics), instances: map[string]*Instance{},
	}
	s.hurried, s.hurry = context.WithCancel(context.Background())
	s.running = context.Background()
	s.Rescan()
	for _, id := range sortedKeys(s.found) {
		i := newInstance(s, id)
		s.instances[id] = i
		if opt.Observer != nil {
			i.observer = opt.Observer(i)
		}
	}
	return s
}

// Hurry ends the patience of a stop: plugins that have not ended by then are killed.
func (s *Supervisor) Hurry() { s.hurry() }

// Rescan looks where the executables of the known instances lie now. An executable for a runtime that was not there when
// the supervisor was made is found at the host's next start: everything that belongs to a runtime is built together.
func (s *Supervisor) Rescan() {
	found := discover(s.opt.Dirs)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = found
}

// Instances lists all, in order of their id.
func (s *Supervisor) Instances() []*Instance {
	list := make([]*Instance, 0, len(s.instances))
	for _, id := range sortedKeys(s.instances) {
		list = append(list, s.instances[id])
	}
	return list
}

// Instance finds one by its id; runtime_unknown when there is none.
func (s *Supervisor) Instance(id string) (*Instance, error) {
	if i := s.instances[id]; i != nil {
		return i, nil
	}
	return nil, codes.New(codes.RuntimeUnknown)
}

// Run starts what is enabled and returns when ctx has ended and every process is gone.
func (s *Supervisor) Run(ctx context.Context) error {
	dir, err := socketDir(s.opt.DataDir)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// An instance restarts its process by itself. The tree only catches a panic of the goroutine that owns it.
	tree := suture.New("runtimes", suture.Spec{
		Timeout: classIO + 2*exitGrace,
		EventHook: func(e suture.Event) {
			s.log.Error("runtime supervision", "event", e.String())
		},
	})
	alive, over := context.WithCancel(context.WithoutCancel(ctx))
	defer over()
	unhook := context.AfterFunc(ctx, over)
	defer unhook()
	s.mu.Lock()
	s.sockets, s.running = dir, alive
	s.mu.Unlock()
	for _, i := range s.Instances() {
		tree.Add(i)
	}
	err = tree.Serve(ctx)
	for _, i := range s.Instances() {
		i.wg.Wait()
	}
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// life ends when Run begins to end.
func (s *Supervisor) life() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

func (s *Supervisor) ended() <-chan struct{} { return s.life().Done() }

// executable finds the program of an instance.
func (s *Supervisor) executable(id string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path, ok := s.found[id]
	return path, ok
}

func (s *Supervisor) socketDir() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sockets
}

func (s *Supervisor) settings(id string) Settings {
	if s.opt.Settings == nil {
		return Settings{}
	}
	return s.opt.Settings(id)
}

// phrase finds the sentence a plugin declared for a code.
func phrase(d *runtime.Description, code string) string {
	if d == nil {
		return ""
	}
	for _, p := range d.Phrases {
		if p.Code == code {
			return p.Text
		}
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func itoa(n int) string { return strconv.Itoa(n) }
