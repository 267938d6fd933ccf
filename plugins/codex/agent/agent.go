package agent

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Options of an Agent; the zero value drives the Codex of this computer.
type Options struct {
	Log   *slog.Logger     // nil: discard
	Start StartFunc        // how the child is started; nil: as a process of this one's group
	Find  FindFunc         // how the executable is found; nil: appserver.Finder and its version check
	Owner OwnerEvidence    // who may hold a thread; nil: looks for the desktop program's broker
	Now   func() time.Time // nil: time.Now
	Fault func(string)     // called around the moment Codex takes a prompt; nil outside of a plugin process
}

// Agent implements runtime.Runtime for Codex.
type Agent struct {
	o       Options
	log     *slog.Logger
	life    context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup // the supervisor and what it starts
	closing sync.WaitGroup // Shutdown waiting for wg
	grace   atomic.Int64   // nanoseconds the child has to end by itself

	health   health
	*library // everything that only reads
	profile  *profile

	mu       sync.Mutex
	sink     runtime.Sink
	host     runtime.Host
	config   config
	running  bool
	draining bool
	link     *link
	changed  chan struct{}      // closed and replaced when link changes
	threads  map[string]*thread // loaded in this link, by native id
	runs     map[string]*run    // without an end, by run id
	turns    map[string]*run    // the same by turn id
	prepared map[string]*prepared
	asks     map[string]*ask // waiting for an answer, by interaction id
}

// config is what Configure takes.
type config struct {
	Command string `json:"command"` // executable; empty: codex
	project string // the one project; empty: the whole computer
}

// link is one living app server.
type link struct {
	client  *appserver.Client
	server  appserver.Server
	version string
	born    time.Time
	known   atomic.Pointer[[]appserver.Model] // the catalog as it was read last
	login   sync.Once                         // waits for a sign-in
	end     context.CancelFunc                // ends this child, so that another one takes its place
}

// New makes an agent. Nothing starts before Configure.
func New(o Options) *Agent {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Start == nil {
		o.Start = startProcess
	}
	if o.Find == nil {
		o.Find = findExecutable
	}
	if o.Owner == nil {
		o.Owner = brokerProbe{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Fault == nil {
		o.Fault = func(string) {}
	}
	a := &Agent{
		o: o, log: o.Log, changed: make(chan struct{}),
		threads: map[string]*thread{}, runs: map[string]*run{}, turns: map[string]*run{},
		prepared: map[string]*prepared{}, asks: map[string]*ask{},
	}
	a.life, a.cancel = context.WithCancel(context.Background())
	a.grace.Store(int64(stopGrace))
	a.health.init(o.Now)
	a.library = newLibrary(libraryOptions{
		client: func(ctx context.Context) (*appserver.Client, error) {
			l, err := a.connected(ctx)
			if err != nil {
				return nil, err
			}
			return l.client, nil
		},
		seq: a.seq, home: a.home, project: a.onlyProject, now: o.Now, log: o.Log,
	})
	a.profile = newProfile(a.library)
	return a
}

// Watch implements runtime.Runtime.
func (a *Agent) Watch(_ context.Context, sink runtime.Sink) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sink = sink
	return nil
}

// Configure implements runtime.Runtime.
func (a *Agent) Configure(_ context.Context, r *runtime.ConfigureRequest, host runtime.Host) error {
	var c config
	if len(r.Config.Data) > 0 {
		if err := json.Unmarshal(r.Config.Data, &c); err != nil {
			return codes.New(codes.ConfigInvalid, "where", "command")
		}
	}
	c.project = r.ProjectPath
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running {
		if c != a.config {
			return codes.New(codes.RestartRequired)
		}
		return nil
	}
	a.config, a.host, a.running = c, host, true
	a.health.capabilities(capabilities(a, c.project != ""))
	a.wg.Go(a.supervise)
	return nil
}

// Shutdown implements runtime.Runtime: the child's input is closed, it is asked to end, and killed if it does not, before
// the time is up.
func (a *Agent) Shutdown(ctx context.Context) error {
	if d, ok := ctx.Deadline(); ok {
		a.grace.Store(int64(min(stopGrace, time.Until(d)*2/3)))
	}
	a.cancel()
	done := make(chan struct{})
	a.closing.Go(func() {
		a.wg.Wait()
		close(done)
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Drain implements runtime.Drainer.
func (a *Agent) Drain(_ context.Context, r *runtime.DrainRequest) (*runtime.DrainResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.draining = !r.Reopen
	resp := &runtime.DrainResponse{OtherWork: uint32(len(a.prepared))}
	for id := range a.runs {
		resp.RunIds = append(resp.RunIds, id)
	}
	return resp, nil
}

// home is the child's CODEX_HOME; empty while there is none.
func (a *Agent) home() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.link == nil {
		return ""
	}
	return a.link.server.CodexHome
}

// onlyProject is the one project of this instance; empty: the whole computer.
func (a *Agent) onlyProject() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.config.project
}

// connected gives the connection, waiting for one that is coming up. Without one the error is the stable reason.
func (a *Agent) connected(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, linkWait)
	defer cancel()
	for {
		a.mu.Lock()
		l, changed := a.link, a.changed
		a.mu.Unlock()
		if l != nil {
			return l, nil
		}
		if code := a.health.fatal(); code != "" {
			return nil, codes.New(code)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, codes.New(codes.RuntimeUnavailable).Because(ctx.Err())
		case <-a.life.Done():
			return nil, codes.New(codes.RuntimeUnavailable)
		}
	}
}

// linkWait is how long a call waits for a child that is coming up; its first start takes half a second at most.
const linkWait = 8 * time.Second

// spawn starts work that ends with the agent. After Shutdown has begun nothing starts any more.
func (a *Agent) spawn(f func()) {
	if a.life.Err() == nil {
		a.wg.Go(f)
	}
}

// setLink publishes a connection or its loss. Called by the supervisor alone.
func (a *Agent) setLink(l *link) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.link = l
	close(a.changed)
	a.changed = make(chan struct{})
}

// emit hands an event over. Called with the mutex held, which keeps events in order.
func (a *Agent) emit(e runtime.Event) {
	if a.sink != nil {
		a.sink.Emit(e)
	}
}

// seq is the number of the last event. Called with or without the mutex.
func (a *Agent) seq() uint64 {
	if a.sink == nil {
		return 0
	}
	return a.sink.Seq()
}

// admit refuses changes while the door is closed.
func (a *Agent) admit() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.draining {
		return codes.New(codes.Draining)
	}
	return nil
}

// native turns a failed call into a coded error. dispatched says what an unknown outcome means for the caller.
func native(err error) error {
	if err == nil {
		return nil
	}
	if codes.As(err) != nil {
		return err
	}
	switch appserver.Classify(err) {
	case appserver.RefusalActiveWriter:
		return codes.New(codes.SessionInUse)
	case appserver.RefusalNoRollout, appserver.RefusalNotLoaded:
		return codes.New(codes.SessionLost)
	case appserver.RefusalArchived:
		return codes.New(codes.SessionReadOnly)
	case appserver.RefusalCursor:
		return codes.New(codes.CursorInvalid)
	case appserver.RefusalConfig:
		return codedNative(codeConfig)
	case appserver.RefusalProfile:
		return codes.New(codes.PermissionsNotRestored)
	case appserver.RefusalTooLarge:
		return codes.New(codes.PromptTooLong, "limit", "128000")
	}
	if errors.Is(err, appserver.ErrNotSent) {
		return codes.New(codes.RuntimeUnavailable).Because(err)
	}
	if appserver.Rejected(err) {
		return codes.New(codes.RuntimeUnavailable).Because(err)
	}
	return codes.New(codes.RuntimeUnavailable).With(codes.Unknown).Because(err)
}

func codedNative(code string) *codes.Error {
	e := codes.New(code).With(codes.NotDispatched)
	e.Source = "runtime"
	return e
}

// environ is the child's environment: this process's own, which the host has trimmed already, without the handshake.
func environ() []string {
	var env []string
	for _, kv := range os.Environ() {
		if keepEnv(kv) {
			env = append(env, kv)
		}
	}
	return env
}
