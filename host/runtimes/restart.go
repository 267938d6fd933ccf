package runtimes

import (
	"math/rand/v2"
	"time"
)

// The restart rule of house-style §4.
const (
	backoffFirst  = 250 * time.Millisecond // after the immediate restart
	backoffMost   = 30 * time.Second
	healthyAfter  = 60 * time.Second // up for that long, the count of exits begins anew
	breakerExits  = 5                // so many exits …
	breakerWindow = 60 * time.Second // … within this open the breaker
	breakerCloses = 5 * time.Minute  // after which it tries once more by itself
)

// restarts decides when a plugin that ended is started again. It is not safe for concurrent use: the goroutine that owns
// the process asks it.
type restarts struct {
	jitter func(time.Duration) time.Duration // nil: full jitter
	exits  []time.Time
	inRow  int
}

// exited notes an exit or a failed start at now, after having been ready for up. It answers how long to wait; open says
// that the breaker has opened, and then the wait is the breaker's.
func (r *restarts) exited(now time.Time, up time.Duration) (wait time.Duration, open bool) {
	if up >= healthyAfter {
		r.reset()
	}
	r.exits = append(r.exits, now)
	for len(r.exits) > 0 && now.Sub(r.exits[0]) > breakerWindow {
		r.exits = r.exits[1:]
	}
	r.inRow++
	if len(r.exits) >= breakerExits {
		r.reset()
		return breakerCloses, true
	}
	if r.inRow == 1 {
		return 0, false
	}
	most := backoffFirst
	for range r.inRow - 2 {
		if most *= 2; most >= backoffMost {
			most = backoffMost
			break
		}
	}
	if r.jitter != nil {
		return r.jitter(most), false
	}
	return rand.N(most + 1), false
}

// reset forgets all exits: a person, an upgrade or the time did it.
func (r *restarts) reset() { r.exits, r.inRow = nil, 0 }
