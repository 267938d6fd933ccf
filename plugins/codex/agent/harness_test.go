package agent

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// patience is how long a test waits for something that happens in a moment.
const patience = 20 * time.Second

// memoryHost keeps state entries in memory, with the host's rules.
type memoryHost struct {
	runtime.Host

	mu      sync.Mutex
	entries map[runtime.StateKey]runtime.StateEntry
	count   uint64
	fail    error // what every call answers, if set
}

func newMemoryHost() *memoryHost {
	return &memoryHost{entries: map[runtime.StateKey]runtime.StateEntry{}}
}

func (h *memoryHost) GetState(_ context.Context, k runtime.StateKey) (*runtime.StateEntry, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fail != nil {
		return nil, h.fail
	}
	if e, ok := h.entries[k]; ok {
		return &e, nil
	}
	return nil, nil
}

func (h *memoryHost) PutState(_ context.Context, k runtime.StateKey, v []byte, expected *uint64) (uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fail != nil {
		return 0, h.fail
	}
	if expected != nil && h.entries[k].Revision != *expected {
		return 0, codes.New(codes.RevisionConflict)
	}
	h.count++
	h.entries[k] = runtime.StateEntry{Key: k, Value: v, Revision: h.count}
	return h.count, nil
}

func (h *memoryHost) DeleteState(_ context.Context, k runtime.StateKey, _ *uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.entries, k)
	return h.fail
}

// recorder is a sink that keeps every event and can be waited on.
type recorder struct {
	mu     sync.Mutex
	events []runtime.Event
	more   chan struct{}
}

func newRecorder() *recorder { return &recorder{more: make(chan struct{})} }

func (r *recorder) Emit(e runtime.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Seq = uint64(len(r.events) + 1)
	r.events = append(r.events, e)
	close(r.more)
	r.more = make(chan struct{})
}

func (r *recorder) Seq() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return uint64(len(r.events))
}

func (r *recorder) all() []runtime.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// wait gives the first event that fits.
func (r *recorder) wait(t *testing.T, what string, fits func(runtime.Event) bool) runtime.Event {
	t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		r.mu.Lock()
		i := slices.IndexFunc(r.events, fits)
		more := r.more
		var e runtime.Event
		if i >= 0 {
			e = r.events[i]
		}
		r.mu.Unlock()
		if i >= 0 {
			return e
		}
		select {
		case <-more:
		case <-timeout.C:
			t.Fatalf("no %s; events so far: %s", what, kinds(r.all()))
		}
	}
}

// ended waits for the end of a run.
func (r *recorder) ended(t *testing.T, runID string) *runtime.RunEnded {
	t.Helper()
	return r.wait(t, "end of run "+runID, func(e runtime.Event) bool { return e.RunID == runID && e.RunEnded != nil }).RunEnded
}

// opened waits for an interaction of a run.
func (r *recorder) opened(t *testing.T, runID string) *runtime.Interaction {
	t.Helper()
	return r.wait(t, "interaction of "+runID, func(e runtime.Event) bool {
		return e.RunID == runID && e.InteractionOpened != nil
	}).InteractionOpened
}

// textOf is the text of a run as a phone shows it: the parts in order, pieces and replacements applied.
func textOf(events []runtime.Event, runID string) string {
	parts := map[string]string{}
	var order []string
	for _, e := range events {
		if e.RunID != runID || e.Text == nil {
			continue
		}
		if _, known := parts[e.Text.PartID]; !known {
			order = append(order, e.Text.PartID)
		}
		if e.Text.Replace {
			parts[e.Text.PartID] = ""
		}
		parts[e.Text.PartID] += e.Text.Text
	}
	var s string
	for _, id := range order {
		s += parts[id]
	}
	return s
}

// kinds names events, for failures.
func kinds(events []runtime.Event) (list []string) {
	for _, e := range events {
		switch {
		case e.Text != nil:
			list = append(list, "text")
		case e.Thought != nil:
			list = append(list, "thought")
		case e.ToolCall != nil:
			list = append(list, "tool:"+e.ToolCall.Status.String())
		case e.RunStarted != nil:
			list = append(list, "started")
		case e.RunEnded != nil:
			list = append(list, "ended:"+e.RunEnded.Reason.String()+":"+e.RunEnded.Code)
		case e.InteractionOpened != nil:
			list = append(list, "opened")
		case e.InteractionClosed != nil:
			list = append(list, "closed:"+e.InteractionClosed.Closure.String())
		case e.Notice != nil:
			list = append(list, "notice:"+e.Notice.Code)
		case e.StatusChanged != nil:
			list = append(list, "status:"+e.StatusChanged.Condition.String()+":"+e.StatusChanged.Reason)
		case e.SessionChanged != nil:
			list = append(list, "session")
		case e.SettingsChanged != nil:
			list = append(list, "settings")
		default:
			list = append(list, "other")
		}
	}
	return list
}
