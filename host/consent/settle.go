package consent

import (
	"context"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Holds reports that a ticket still counts: ask right before the answer leaves.
func (b *Book) Holds(t Ticket) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.open[t.ID]
	return e != nil && e.stage == answering && e.fence == t.fence
}

// Answer is what the runtime said to an answer.
type Answer struct {
	Outcome runtime.Outcome
	Code    string
	// Closure is how the request ends if the answer was taken. Unspecified: it stays until the runtime closes it, as
	// with a cancelled question whose run has to stop first.
	Closure runtime.Closure
}

// Settle uses up a ticket. Taken: the request ends. Not taken because the runtime no longer asks: it expires. Not taken
// otherwise: it may be answered again. Unknown: it takes no further answer until the runtime tells (Close, Reconcile).
// A ticket of a request that has ended meanwhile, or was asked again, settles nothing. ended is false when it still
// waits or had already ended.
func (b *Book) Settle(ctx context.Context, t Ticket, a Answer) (end Ended, ended bool, err error) {
	b.mu.Lock()
	e := b.open[t.ID]
	if e == nil || e.stage != answering || e.fence != t.fence {
		b.mu.Unlock()
		return Ended{}, false, nil
	}
	switch {
	case a.Outcome == runtime.OutcomeDispatched && a.Closure == runtime.ClosureUnspecified:
		b.mu.Unlock()
		return Ended{}, false, nil
	case a.Outcome == runtime.OutcomeDispatched:
		e.stage, e.closure = closing, a.Closure
		b.mu.Unlock()
		return b.end(ctx, e, t.by)
	case a.Outcome == runtime.OutcomeNotDispatched && a.Code == codes.InteractionNotPending:
		e.stage, e.closure = closing, runtime.ClosureExpired
		b.mu.Unlock()
		return b.end(ctx, e, "")
	case a.Outcome != runtime.OutcomeNotDispatched:
		e.stage = uncertain
		b.mu.Unlock()
		return Ended{}, false, nil
	}
	b.mu.Unlock()
	if _, err := b.store.ReleaseInteraction(ctx, b.runtime, t.ID); err != nil {
		return Ended{}, false, err // stays claimed: safe, and a restart of either side clears it
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[t.ID] == e && e.stage == answering && e.fence == t.fence {
		e.stage = pending
	}
	return Ended{}, false, nil
}
