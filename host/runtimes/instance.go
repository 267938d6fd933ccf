package runtimes

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// State is where an instance is in its life.
type State string

// States. Only Ready and Draining take calls.
const (
	Disabled  State = "disabled" // the person has not enabled it
	Starting  State = "starting" // a process is coming up
	Ready     State = "ready"    // it takes calls
	Draining  State = "draining" // running work goes on, new work waits
	Waiting   State = "waiting"  // it ended and is started again later
	Paused    State = "paused"   // it ended too often: the breaker is open
	Refused   State = "refused"  // it cannot be started before somebody does something
	Stopped   State = "stopped"  // the host ends
	queueSize       = 64         // observer calls that may wait; beyond, the plugin waits
)

// Snapshot is what is known about an instance, for people.
type Snapshot struct {
	ID             string
	Name           string
	State          State
	Reason         string // code, when it is not ready
	Detail         string // more about the reason, for this computer only
	Generation     uint64
	PID            int // 0: no process
	Since          time.Time
	RetryAt        time.Time // zero: not by itself
	Restarts       uint64
	PluginVersion  string
	Executable     string // where it was found
	Checksum       string
	SideBySide     bool
	EnvironmentSet []string // names of what the process was given
	Description    *runtime.Description
	Status         runtime.Status
}

// Instance is one runtime. It implements sessions.Runtime; every method is safe for concurrent use.
type Instance struct {
	id       string
	sup      *Supervisor
	log      *slog.Logger
	observer Observer
	commands chan *command
	queue    chan func()   // observer calls, in order
	kick     chan struct{} // Changed is due
	wg       sync.WaitGroup
	spawned  atomic.Uint64 // processes so far

	// Owned by the goroutine in Serve.
	restarts restarts
	exe      *executable // verified and admitted; nil: look again before the next start
	last     *generation // the one before; its end must have been told before the next begins
	waiting  []*command  // answered when the instance is ready, or cannot be
	counted  bool        // the current start follows an exit
	next     *command    // to obey before anything else
	live     *generation // the one that is watched over

	mu        sync.Mutex
	state     State       // guarded by mu, as all below
	reason    string      //
	detail    string      //
	since     time.Time   //
	retryAt   time.Time   //
	gen       *generation // takes calls; nil unless Ready or Draining
	number    uint64      // of the newest process
	pid       int         //
	restarted uint64      //
	desc      *runtime.Description
	status    runtime.Status //
	sum       string         //
	env       []string       // names
	moved     chan struct{}  // closed and replaced at each change of state
	door      door           //
}

func newInstance(s *Supervisor, id string) *Instance {
	i := &Instance{
		id: id, sup: s, log: s.log.With(obs.KeyRuntime, id),
		commands: make(chan *command), queue: make(chan func(), queueSize), kick: make(chan struct{}, 1),
		state: Disabled, since: time.Now(), moved: make(chan struct{}),
		status: runtime.Status{Condition: runtime.ConditionUnavailable, Reason: codes.RuntimeUnavailable},
	}
	i.door.prepared, i.door.running = map[string]time.Time{}, map[string]bool{}
	return i
}

// String names it for the supervision tree, which would otherwise print all of it.
func (i *Instance) String() string { return "runtime " + i.id }

// ID is the name of the instance.
func (i *Instance) ID() string { return i.id }

// Description is the last known one; nil before the plugin was ever admitted.
func (i *Instance) Description() *runtime.Description {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.desc
}

// Status is the last known one; unavailable with the reason while the plugin is down.
func (i *Instance) Status() runtime.Status {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.status
}

// State tells where it is and the code of the reason.
func (i *Instance) State() (State, string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.state, i.reason
}

// Generation numbers the plugin processes from 1; 0: none was started yet.
func (i *Instance) Generation() uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.number
}

// Phrase is the sentence the plugin declared for one of its own codes; empty: none.
func (i *Instance) Phrase(code string) string { return phrase(i.Description(), code) }

// Snapshot tells everything at once.
func (i *Instance) Snapshot() Snapshot {
	path, _ := i.sup.executable(i.id)
	i.mu.Lock()
	defer i.mu.Unlock()
	s := Snapshot{
		ID: i.id, Name: i.id, State: i.state, Reason: i.reason, Detail: i.detail, Generation: i.number, PID: i.pid,
		Since: i.since, RetryAt: i.retryAt, Restarts: i.restarted, Executable: path, Checksum: i.sum,
		EnvironmentSet: slices.Clone(i.env), Description: i.desc, Status: i.status,
	}
	if i.desc != nil {
		s.Name, s.PluginVersion, s.SideBySide = i.desc.Name, i.desc.PluginVersion, i.desc.SideBySide
	}
	return s
}

// set moves to a state. gen is what takes calls from now on.
func (i *Instance) set(state State, reason, detail string, gen *generation) {
	i.setUntil(state, reason, detail, gen, time.Time{})
}

// setUntil moves to a state that ends by itself at a time; zero: it does not. Both are told at once, so that nobody sees
// a pause without its end.
func (i *Instance) setUntil(state State, reason, detail string, gen *generation, retryAt time.Time) {
	i.mu.Lock()
	was, because := i.state, i.reason
	i.state, i.reason, i.detail, i.gen = state, reason, detail, gen
	if was != state {
		i.since = time.Now()
	}
	i.retryAt = retryAt
	if gen == nil {
		condition := runtime.ConditionUnavailable
		if state == Starting {
			condition = runtime.ConditionStarting
		}
		i.status = runtime.Status{Condition: condition, Reason: reason, EvidenceAt: time.Now()}
	}
	close(i.moved)
	i.moved = make(chan struct{})
	i.mu.Unlock()
	up := 0.0
	if gen != nil {
		up = 1
	}
	i.sup.metrics.up.WithLabelValues(i.id).Set(up)
	if was != state || because != reason {
		level := slog.LevelInfo
		if state == Waiting || state == Paused || state == Refused {
			level = slog.LevelWarn
		}
		var attrs []slog.Attr
		if reason != "" {
			attrs = append(attrs, slog.String(obs.KeyCode, reason))
		}
		if detail != "" {
			attrs = append(attrs, slog.String("detail", detail))
		}
		i.log.LogAttrs(context.Background(), level, "runtime "+string(state), attrs...)
	}
	i.changed()
}

func (i *Instance) setStatus(s *runtime.Status) {
	i.mu.Lock()
	was, now := i.status, *s
	i.status = *s
	i.mu.Unlock()
	i.sup.metrics.kept.WithLabelValues(i.id).Set(float64(s.KeptRunning))
	was.EvidenceAt, now.EvidenceAt = time.Time{}, time.Time{} // younger evidence of the same is no news
	if !reflect.DeepEqual(was, now) {
		i.changed()
	}
}

// changed lets the observer know, soon and at least once.
func (i *Instance) changed() {
	select {
	case i.kick <- struct{}{}:
	default:
	}
}

// pump is the one goroutine that calls the observer.
func (i *Instance) pump(ctx context.Context) {
	for {
		select {
		case f := <-i.queue:
			f()
		case <-i.kick:
			if i.observer != nil {
				i.observer.Changed()
			}
		case <-ctx.Done():
			for { // what was already queued is still told
				select {
				case f := <-i.queue:
					f()
				default:
					return
				}
			}
		}
	}
}

// ready waits for a process that takes calls. With patience a start or upgrade in progress is waited for; otherwise, and
// when none is coming, it answers runtime_unavailable: provably nothing was sent.
func (i *Instance) ready(ctx context.Context, patience time.Duration) (*generation, error) {
	var timeout <-chan time.Time
	for {
		i.mu.Lock()
		gen, state, reason, retryAt, moved := i.gen, i.state, i.reason, i.retryAt, i.moved
		i.mu.Unlock()
		if gen != nil {
			return gen, nil
		}
		down := codes.New(codes.RuntimeUnavailable, "reason", reason)
		if !retryAt.IsZero() {
			down.RetryAfter = max(0, time.Until(retryAt))
		}
		if state != Starting || patience <= 0 {
			return nil, down
		}
		if timeout == nil {
			timer := time.NewTimer(patience)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-moved:
		case <-timeout:
			return nil, down
		case <-ctx.Done():
			return nil, down.Because(ctx.Err())
		}
	}
}
