package serve

import (
	"sync"

	"github.com/openphone-host/openphone/protocol/codes"
)

// admission is the door Drain closes. It counts the changing calls that are inside.
type admission struct {
	mu     sync.Mutex
	closed bool
	inside uint32
}

// enter lets a changing call in, or refuses it with draining.
func (a *admission) enter() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return codes.New(codes.Draining).With(codes.NotDispatched)
	}
	a.inside++
	return nil
}

func (a *admission) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inside--
}

// set closes or opens the door and tells how many calls are still inside.
func (a *admission) set(closed bool) uint32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = closed
	return a.inside
}
