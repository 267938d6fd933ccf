package runtimes

import (
	"context"
	"time"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

const (
	// doorPatience is how long a call waits for a start or an upgrade before it is refused.
	doorPatience = 5 * time.Second
	// preparedFor is how long a prepared run may wait for its commit (runtime.proto, PrepareRun).
	preparedFor = 30 * time.Second
)

// door is the admission of one instance (UPD-02): once it is closed no new work begins, and what is on its way is
// counted before anybody asks the plugin what runs. Its fields are guarded by Instance.mu.
type door struct {
	closed   bool
	inside   int                  // calls that change something and are on their way
	prepared map[string]time.Time // runs prepared and neither committed nor abandoned
	running  map[string]bool      // runs that may still be running, for a plugin that cannot say
}

// enter waits until the door is open and counts the call in.
func (i *Instance) enter(ctx context.Context) error {
	var timeout <-chan time.Time
	for {
		i.mu.Lock()
		if !i.door.closed {
			i.door.inside++
			i.mu.Unlock()
			return nil
		}
		moved := i.moved
		i.mu.Unlock()
		if timeout == nil {
			timer := time.NewTimer(doorPatience)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-moved:
		case <-timeout:
			return codes.New(codes.Draining)
		case <-ctx.Done():
			return codes.New(codes.Draining).Because(ctx.Err())
		}
	}
}

func (i *Instance) leave() {
	i.mu.Lock()
	i.door.inside--
	i.wake()
	i.mu.Unlock()
}

// wake tells everybody who waits that something moved; mu must be held.
func (i *Instance) wake() {
	close(i.moved)
	i.moved = make(chan struct{})
}

func (i *Instance) prepared(runID string) {
	i.mu.Lock()
	i.door.prepared[runID] = time.Now()
	i.mu.Unlock()
}

// abandoned forgets a prepared run.
func (i *Instance) abandoned(runID string) {
	i.mu.Lock()
	delete(i.door.prepared, runID)
	i.wake()
	i.mu.Unlock()
}

// committing counts a run as running before its commit leaves: its end may come before the answer.
func (i *Instance) committing(runID string) {
	i.mu.Lock()
	i.door.running[runID] = true
	delete(i.door.prepared, runID)
	i.mu.Unlock()
}

// notRunning forgets a run that was provably not dispatched.
func (i *Instance) notRunning(runID string) {
	i.mu.Lock()
	delete(i.door.running, runID)
	i.wake()
	i.mu.Unlock()
}

// follow keeps count of runs by their events.
func (i *Instance) follow(e *runtime.Event) {
	if e.RunID == "" || e.RunStarted == nil && e.RunEnded == nil {
		return
	}
	i.mu.Lock()
	if e.RunEnded != nil {
		delete(i.door.running, e.RunID)
		i.wake()
	} else {
		i.door.running[e.RunID] = true
	}
	i.mu.Unlock()
}

func (i *Instance) forgetRuns() {
	i.mu.Lock()
	clear(i.door.running)
	clear(i.door.prepared)
	i.mu.Unlock()
}

// runs lists the runs that may still be running.
func (i *Instance) runs() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return sortedKeys(i.door.running)
}

// shut closes the door at once; it answers whether it was open.
func (i *Instance) shut() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	was := i.door.closed
	i.door.closed = true
	return !was
}

func (i *Instance) reopen() {
	i.mu.Lock()
	i.door.closed = false
	i.wake()
	i.mu.Unlock()
}

// busy counts what is between the door and the plugin: calls on their way and prepared runs that may still be committed.
func (i *Instance) busy(now time.Time) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	for id, at := range i.door.prepared {
		if now.Sub(at) > preparedFor {
			delete(i.door.prepared, id)
		}
	}
	return i.door.inside + len(i.door.prepared)
}
