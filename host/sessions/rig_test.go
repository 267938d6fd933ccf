package sessions

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/openphone-host/openphone/host/store"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// rig is a Conversations over a fake runtime and a real store, with everything it told phones.
type rig struct {
	*Conversations
	t    testing.TB
	f    *fake
	dir  string
	db   *store.Store
	stop func()

	mu      sync.Mutex
	updates []Update
	changed chan struct{}
	seq     uint64
	gen     uint64

	emitting sync.Mutex
}

func newRig(t testing.TB, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, f: newFake(), dir: t.TempDir(), changed: make(chan struct{})}
	r.start(change...)
	t.Cleanup(func() { r.stop() })
	r.up()
	return r
}

func (r *rig) start(change ...func(*Options)) {
	r.t.Helper()
	db, err := store.Open(r.t.Context(), r.dir, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	o := Options{Runtime: r.f, Store: db}
	for _, fn := range change {
		fn(&o)
	}
	c, err := New(o)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Run(ctx) }()
	unsubscribe := c.Subscribe(func(u Update) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.updates = append(r.updates, u)
		close(r.changed)
		r.changed = make(chan struct{})
	})
	r.Conversations, r.db = c, db
	var once sync.Once
	r.stop = func() {
		once.Do(func() {
			cancel()
			<-done
			unsubscribe()
			_ = db.Close()
		})
	}
}

// restart ends the host and starts the next one over the same data.
func (r *rig) restart(change ...func(*Options)) {
	r.t.Helper()
	r.stop()
	r.mu.Lock()
	r.updates = nil
	r.mu.Unlock()
	r.start(change...)
}

// up starts the next plugin process; answer says what it knows of a run.
func (r *rig) up(answer ...func(*runtime.ReconcileRequest) *runtime.ReconcileResponse) {
	r.t.Helper()
	r.gen++
	r.seq = 0
	err := r.Started(r.t.Context(), r.gen, func(_ context.Context, q *runtime.ReconcileRequest) (*runtime.ReconcileResponse, error) {
		if len(answer) > 0 {
			return answer[0](q), nil
		}
		return &runtime.ReconcileResponse{}, nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) emit(events ...runtime.Event) {
	for i := range events {
		r.seq++
		events[i].Seq = r.seq
	}
	r.Events(r.gen, events)
}

// emit1 is emit for tests with several goroutines.
func (r *rig) emit1(e runtime.Event) {
	r.emitting.Lock()
	defer r.emitting.Unlock()
	r.emit(e)
}

func (r *rig) create() string {
	r.t.Helper()
	row, err := r.Create(r.t.Context(), "", "", "")
	if err != nil {
		r.t.Fatal(err)
	}
	return row.Key
}

func prompt(key, text, idempotency string) SendInput {
	return SendInput{SessionKey: key, Text: text, IdempotencyKey: idempotency, Fingerprint: fingerprint(text)}
}

func fingerprint(text string) string {
	return projectID(text) + projectID("x"+text)
}

func (r *rig) send(key, text, idempotency string) string {
	r.t.Helper()
	id, err := r.Send(r.t.Context(), prompt(key, text, idempotency))
	if err != nil {
		r.t.Fatal(err)
	}
	r.dispatched(id)
	return id
}

// dispatched waits until the commit of a run was noted.
func (r *rig) dispatched(id string) {
	r.t.Helper()
	r.until("the commit of "+id, func() bool {
		rec, ok, err := r.db.Run(r.t.Context(), "fake", id)
		return err == nil && ok && rec.Outcome != 0
	})
}

// until waits for something that updates or the store show.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			r.t.Fatalf("waited in vain for %s; updates: %v", what, r.kinds())
		}
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func (r *rig) seen(kind UpdateKind) []Update {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []Update
	for _, u := range r.updates {
		if u.Kind == kind {
			list = append(list, u)
		}
	}
	return list
}

func (r *rig) kinds() []UpdateKind {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []UpdateKind
	for _, u := range r.updates {
		if u.Kind != RuntimeChanged {
			list = append(list, u.Kind)
		}
	}
	return list
}

func (r *rig) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.updates = nil
}

func text(run, part, s string) runtime.Event {
	return runtime.Event{RunID: run, Text: &runtime.TextChunk{PartID: part, Text: s}}
}

func ended(run string) runtime.Event {
	return runtime.Event{RunID: run, RunEnded: &runtime.RunEnded{Reason: runtime.EndReasonCompleted}}
}
