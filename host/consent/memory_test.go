package consent

import (
	"context"
	"sync"
	"time"

	"github.com/openphone-host/openphone/host/store"
)

// memory is a Store without a disk, for tests with many steps or a fake clock.
type memory struct {
	mu   sync.Mutex
	rows map[string]*store.Interaction
	fail error
	// closing is called before the end of a request is written.
	closing func()
}

func newMemory() *memory { return &memory{rows: map[string]*store.Interaction{}} }

func (m *memory) change(id string, from []string, do func(*store.Interaction)) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return false, m.fail
	}
	r := m.rows[id]
	for _, s := range from {
		if r != nil && r.State == s {
			do(r)
			return true, nil
		}
	}
	return false, nil
}

func (m *memory) PutInteraction(_ context.Context, v store.Interaction) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail == nil {
		m.rows[v.InteractionID] = &v
	}
	return m.fail
}

func (m *memory) Interaction(_ context.Context, _, id string) (store.Interaction, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.rows[id]; r != nil {
		return *r, true, nil
	}
	return store.Interaction{}, false, nil
}

func (m *memory) ClaimInteraction(_ context.Context, _, id, by string) (bool, error) {
	return m.change(id, []string{store.Pending}, func(r *store.Interaction) { r.State, r.AnsweredBy = store.Answering, by })
}

func (m *memory) ReleaseInteraction(_ context.Context, _, id string) (bool, error) {
	return m.change(id, []string{store.Answering}, func(r *store.Interaction) { r.State = store.Pending })
}

func (m *memory) CloseInteraction(_ context.Context, _, id string, c int32, _ string, _ time.Time) (bool, error) {
	if m.closing != nil {
		m.closing()
	}
	return m.change(id, []string{store.Pending, store.Answering, store.Lost}, func(r *store.Interaction) {
		r.State, r.Closure = store.Closed, c
	})
}

func (m *memory) LoseInteractions(_ context.Context, _ string, c int32, _ time.Time) ([]store.Interaction, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []store.Interaction
	for _, r := range m.rows {
		if r.State == store.Pending || r.State == store.Answering {
			list = append(list, *r)
			r.State, r.Closure = store.Lost, c
		}
	}
	return list, m.fail
}

func (m *memory) ReopenInteraction(_ context.Context, _, id, hash string) (bool, error) {
	m.mu.Lock()
	same := m.rows[id] != nil && m.rows[id].SubjectHash == hash
	m.mu.Unlock()
	if !same {
		return false, nil
	}
	return m.change(id, []string{store.Lost}, func(r *store.Interaction) { r.State, r.Closure = store.Pending, 0 })
}

type clock struct{ start time.Time }

func (c clock) Wall() time.Time { return time.Now() }

func (c clock) Mono() time.Duration { return time.Since(c.start) + time.Hour }
