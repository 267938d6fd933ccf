package consent

import (
	"context"
	"time"

	"github.com/openphone-host/openphone/sdk/runtime"
)

// recheck bounds how long Run trusts an ordinary timer: it stands still while the computer sleeps, the boot-time clock
// does not.
const recheck = 15 * time.Second

// Clock has two readings, because the wall clock can be set and the ordinary monotonic clock stops during sleep.
type Clock interface {
	Wall() time.Time
	Mono() time.Duration // since the computer started, sleep included
}

// systemClock is the computer's.
type systemClock struct{}

func (systemClock) Wall() time.Time     { return time.Now() }
func (systemClock) Mono() time.Duration { return sinceBoot() }

// Run expires requests whose time has come, until ctx ends; report gets each of them. One call at a time.
func (b *Book) Run(ctx context.Context, report func(Ended)) error {
	for {
		next := b.expire(ctx, report)
		wait := recheck
		if next != 0 {
			wait = min(max(next-b.clock.Mono(), 0), recheck)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-b.changed:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// expire ends what is due and gives the next deadline; 0: there is none. A request whose answer is on its way stays:
// the runtime decides whether it came in time.
func (b *Book) expire(ctx context.Context, report func(Ended)) (next time.Duration) {
	now := b.clock.Mono()
	ends, err := b.closeAll(ctx, runtime.ClosureExpired, func(e *entry) bool {
		return e.stage == pending && e.deadline != 0 && e.deadline <= now
	})
	if err != nil {
		b.log.Warn("expiring requests", "err", err)
	}
	for _, e := range ends {
		report(e)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.open {
		if e.stage == pending && e.deadline != 0 && (next == 0 || e.deadline < next) {
			next = e.deadline
		}
	}
	return next
}

// signal makes Run look again; b.mu may be held.
func (b *Book) signal() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}
