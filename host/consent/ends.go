package consent

import (
	"context"
	"sort"

	"github.com/openphone-host/openphone/sdk/runtime"
)

// Close ends a request because the runtime says so. One that is not open is not an error: ended is false.
func (b *Book) Close(ctx context.Context, sessionKey, nativeID string, c runtime.Closure) (end Ended, ended bool, err error) {
	b.mu.Lock()
	e := b.open[ID(sessionKey, nativeID)]
	if e == nil || e.stage == closing {
		b.mu.Unlock()
		return Ended{}, false, nil
	}
	e.stage, e.closure = closing, c
	b.mu.Unlock()
	return b.end(ctx, e, "")
}

// CloseRun ends what a run still asks, before its own end is told.
func (b *Book) CloseRun(ctx context.Context, sessionKey, runID string, c runtime.Closure) ([]Ended, error) {
	return b.closeAll(ctx, c, func(e *entry) bool { return e.SessionKey == sessionKey && e.RunID == runID })
}

// CloseSession ends what a conversation still asks, because it is reset or deleted (STORE-04).
func (b *Book) CloseSession(ctx context.Context, sessionKey string, c runtime.Closure) ([]Ended, error) {
	return b.closeAll(ctx, c, func(e *entry) bool { return e.SessionKey == sessionKey })
}

// Lost cancels everything, because the plugin that asked is gone.
func (b *Book) Lost(ctx context.Context) ([]Ended, error) {
	list := b.take(runtime.ClosureCancelled, func(*entry) bool { return true })
	if len(list) == 0 {
		return nil, nil
	}
	ends := b.forget(list)
	_, err := b.store.LoseInteractions(ctx, b.runtime, int32(runtime.ClosureCancelled), b.clock.Wall())
	return ends, err
}

// Still is a request the runtime says it still waits for.
type Still struct {
	SessionKey, RunID string
	Interaction       runtime.Interaction
}

// Reconcile compares with everything the runtime says it still asks: what it does not list has ended, what it lists and
// was lost or new opens, and an answer of which nothing was known has not arrived if the runtime still asks: it may be
// answered again. One request that cannot be opened stops nothing; its id is with the error.
func (b *Book) Reconcile(ctx context.Context, list []Still) (opened []Asked, ended []Ended, refused map[string]error) {
	listed := map[string]bool{}
	for _, s := range list {
		listed[ID(s.SessionKey, s.Interaction.InteractionID)] = true
	}
	ended, err := b.closeAll(ctx, runtime.ClosureExpired, func(e *entry) bool { return !listed[e.ID] })
	if err != nil {
		b.log.Warn("closing requests", "err", err)
	}
	refused = map[string]error{}
	for _, s := range list {
		a, fresh, err := b.Open(ctx, s.SessionKey, s.RunID, s.Interaction)
		switch {
		case err != nil:
			refused[s.Interaction.InteractionID] = err
		case fresh:
			opened = append(opened, a)
		default:
			b.revive(ctx, a.ID)
		}
	}
	return opened, ended, refused
}

// revive gives an uncertain request free.
func (b *Book) revive(ctx context.Context, id string) {
	b.mu.Lock()
	e := b.open[id]
	if e == nil || e.stage != uncertain {
		b.mu.Unlock()
		return
	}
	fence := e.fence
	b.mu.Unlock()
	if _, err := b.store.ReleaseInteraction(ctx, b.runtime, id); err != nil {
		b.log.Warn("releasing a request", "err", err)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.stage == uncertain && e.fence == fence {
		e.stage = pending
	}
}

func (b *Book) closeAll(ctx context.Context, c runtime.Closure, which func(*entry) bool) ([]Ended, error) {
	var ends []Ended
	var first error
	for _, e := range b.take(c, which) {
		end, ok, err := b.end(ctx, e, "")
		if ok {
			ends = append(ends, end)
		}
		if err != nil && first == nil {
			first = err
		}
	}
	return ends, first
}

// take marks the chosen entries as closing and gives them, oldest first.
func (b *Book) take(c runtime.Closure, which func(*entry) bool) []*entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []*entry
	for _, e := range b.open {
		if e.stage != closing && which(e) {
			e.stage, e.closure = closing, c
			list = append(list, e)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].order < list[j].order })
	return list
}

// end writes the end of an entry that is marked as closing. A failing store does not keep it open: the runtime's word
// counts, and a record left pending is expired by the next start.
func (b *Book) end(ctx context.Context, e *entry, by string) (Ended, bool, error) {
	_, err := b.store.CloseInteraction(ctx, b.runtime, e.ID, int32(e.closure), by, b.clock.Wall())
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[e.ID] != e {
		return Ended{}, false, err
	}
	delete(b.open, e.ID)
	b.signal()
	return Ended{Asked: e.asked(), Closure: e.closure, By: by}, e.shown, err
}

// forget drops entries that are marked as closing, without writing.
func (b *Book) forget(list []*entry) []Ended {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ends []Ended
	for _, e := range list {
		if b.open[e.ID] == e {
			delete(b.open, e.ID)
			if e.shown {
				ends = append(ends, Ended{Asked: e.asked(), Closure: e.closure})
			}
		}
	}
	return ends
}
