package sessions

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// The runtime never sees two changes of one conversation at once, nor a settings change between the check of a prompt
// and its dispatch; other conversations go on meanwhile.
func TestOneChangeAtATime(t *testing.T) {
	rules.Covers(t, "CX-25")
	r := newRig(t)
	var inside, most atomic.Int32
	pending := map[string]bool{} // prepared and not committed, by conversation
	var mu sync.Mutex
	enter := func() func() {
		if n := inside.Add(1); n > most.Load() {
			most.Store(n)
		}
		return func() { inside.Add(-1) }
	}
	key := r.create()
	first := r.send(key, "x", "k")
	r.emit(ended(first))
	r.f.settings = runtime.Settings{Scope: runtime.SettingsScopeSession, Models: []runtime.Model{{ModelID: "m"}}}
	r.f.onPrepare = func(_ context.Context, q *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error) {
		defer enter()()
		mu.Lock()
		pending[q.Session.SessionID] = true
		mu.Unlock()
		return nil, nil
	}
	r.f.onCommit = func(_ context.Context, q *runtime.CommitRunRequest) (*runtime.CommitRunResponse, error) {
		defer enter()()
		mu.Lock()
		clear(pending)
		mu.Unlock()
		return nil, nil
	}
	between := func() {
		mu.Lock()
		defer mu.Unlock()
		if len(pending) > 0 {
			t.Error("a change between the check and the dispatch of a prompt")
		}
	}
	r.f.onSet = func(*runtime.SetSettingsRequest) (*runtime.Settings, error) {
		defer enter()()
		between()
		return &r.f.settings, nil
	}
	r.f.onUpdate = func(q *runtime.UpdateSessionRequest) (*runtime.UpdateSessionResponse, error) {
		defer enter()()
		between()
		return &runtime.UpdateSessionResponse{Session: &runtime.Session{Ref: q.Session, Title: *q.Title}}, nil
	}
	m := "m"
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if _, err := r.SetSettings(t.Context(), key, SettingsChange{ModelID: &m}); err != nil && codes.Of(err) != codes.RunActive {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := r.Rename(t.Context(), key, "title"); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			id, err := r.Send(t.Context(), prompt(key, "x", string(rune('a'+i))))
			switch codes.Of(err) {
			case "":
				r.dispatched(id)
				r.emit1(ended(id))
			case codes.RunActive:
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most.Load() != 1 {
		t.Errorf("%d changes at once", most.Load())
	}
}

// A prompt that waited behind a deletion fails; nothing comes back to life.
func TestSendAfterDelete(t *testing.T) {
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	r.emit(ended(id))
	began, release := make(chan struct{}), make(chan struct{})
	r.f.onDetach = func(*runtime.DetachSessionRequest) error { close(began); <-release; return nil }
	deleted := make(chan error, 1)
	go func() { deleted <- r.Delete(t.Context(), key) }()
	<-began
	sent := make(chan error, 1)
	go func() { _, err := r.Send(t.Context(), prompt(key, "y", "k-2")); sent <- err }()
	close(release)
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
	if err := <-sent; codes.Of(err) != codes.SessionUnknown {
		t.Errorf("got %v", err)
	}
	if n := len(r.f.runs()); n != 1 {
		t.Errorf("%d dispatches", n)
	}
	r.restart()
	if _, err := r.Lookup(t.Context(), key); codes.Of(err) != codes.SessionUnknown {
		t.Errorf("after a restart: %v", err)
	}
}

// Reading is never blocked by a change.
func TestReadsDuringAChange(t *testing.T) {
	r := newRig(t)
	key := r.create()
	began, release := make(chan struct{}), make(chan struct{})
	r.f.onPrepare = func(context.Context, *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error) {
		close(began)
		<-release
		return nil, nil
	}
	sent := make(chan error, 1)
	go func() { _, err := r.Send(t.Context(), prompt(key, "x", "k")); sent <- err }()
	<-began
	r.page(key)
	r.list(true)
	if _, err := r.Settings(t.Context(), key); err != nil {
		t.Error(err)
	}
	if _, err := r.Send(t.Context(), prompt(key, "y", "k-2")); codes.Of(err) != codes.RunActive {
		t.Errorf("another prompt: %v", err)
	}
	close(release)
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// Before the first receipt there is no native name to resume; the conversation is made anew with the model it had.
func TestNothingToResume(t *testing.T) {
	rules.Covers(t, "CX-04")
	r := newRig(t)
	key := r.create()
	r.f.onPrepare = func(_ context.Context, q *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error) {
		if q.Session.NativeID != "" {
			t.Errorf("asked to resume %q", q.Session.NativeID)
		}
		return nil, codes.New(codes.OwnerUnknown)
	}
	if _, err := r.Send(t.Context(), prompt(key, "x", "k")); codes.Of(err) != codes.OwnerUnknown {
		t.Fatal(err)
	}
	r.restart()
	r.up()
	r.f.onPrepare = nil
	id := r.send(key, "x", "k")
	r.emit(ended(id))
	r.restart()
	r.up()
	id = r.send(key, "y", "k-2")
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	if p := r.f.prepared[id].Session; p.NativeID != "native-"+key {
		t.Errorf("an accepted prompt lost its conversation: %+v", p)
	}
}

// What the catalog says is for showing: whether a conversation may be continued is asked each time.
func TestCatalogIsNoPermission(t *testing.T) {
	rules.Covers(t, "SYNC-13", "CX-23")
	r := newRig(t)
	free, held := native("free", "free"), native("held", "held")
	held.Continuation = runtime.ContinuationInUse
	r.f.rows = []runtime.Session{free, held}
	rows := r.list(true)
	r.f.onPrepare = func(_ context.Context, q *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error) {
		if q.Session.NativeID == "free" {
			return nil, codes.New(codes.OwnerUnknown) // taken since
		}
		return nil, nil
	}
	if _, err := r.Send(t.Context(), prompt(rows[0].Key, "x", "k")); codes.Of(err) != codes.OwnerUnknown {
		t.Errorf("looked free: %v", err)
	}
	if _, recorded, _ := r.PromptStatus(t.Context(), rows[0].Key, "k"); recorded {
		t.Error("there is a receipt without ownership")
	}
	r.send(rows[1].Key, "x", "k") // let go of since
}

// Conversations of ours are looked for by name, wherever a plain scan would not find them.
func TestBoundConversations(t *testing.T) {
	rules.Covers(t, "CX-07")
	r := newRig(t)
	key := r.create()
	r.create() // never submitted: nothing to look for
	id := r.send(key, "x", "k")
	r.emit(ended(id))
	var bound []runtime.SessionRef
	r.f.onList = func(q *runtime.ListSessionsRequest, _ func([]runtime.Session) error) (*runtime.ScanEnd, error) {
		bound = q.Bound
		return &runtime.ScanEnd{Complete: true}, nil
	}
	r.list(true)
	if len(bound) != 1 || bound[0].NativeID != "native-"+key || bound[0].SessionID != key {
		t.Errorf("bound %+v", bound)
	}
}

// What was said of a conversation before its reset comes too late to bring the old one back.
func TestLateEventsOfAReset(t *testing.T) {
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	r.emit(ended(id))
	if err := r.Reset(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	r.clear()
	late := runtime.Session{Ref: runtime.SessionRef{SessionID: key, NativeID: "native-" + key}, Title: "old"}
	r.emit(runtime.Event{SessionChanged: &late}, runtime.Event{NativeID: "native-" + key, RunID: "old", RunStarted: &runtime.RunStarted{}})
	if row, _ := r.Lookup(t.Context(), key); row.NativeID != "" || row.HasActiveRun || len(r.kinds()) != 0 {
		t.Errorf("row %+v, updates %v", row, r.kinds())
	}
}

// A stop that arrives before the runtime has the run is not lost.
func TestStopWhileCommitting(t *testing.T) {
	r := newRig(t)
	key := r.create()
	committing, release := make(chan struct{}), make(chan struct{})
	var has atomic.Bool
	r.f.onCommit = func(context.Context, *runtime.CommitRunRequest) (*runtime.CommitRunResponse, error) {
		close(committing)
		<-release
		has.Store(true)
		return nil, nil
	}
	stopped := make(chan string, 2)
	r.f.onStop = func(q *runtime.StopRunRequest) (*runtime.StopRunResponse, error) {
		if !has.Load() {
			return &runtime.StopRunResponse{Outcome: runtime.OutcomeNotDispatched, Code: codes.RunNotActive}, nil
		}
		stopped <- q.RunID
		return &runtime.StopRunResponse{Outcome: runtime.OutcomeDispatched}, nil
	}
	id, err := r.Send(t.Context(), prompt(key, "x", "k"))
	if err != nil {
		t.Fatal(err)
	}
	<-committing
	if ran, err := r.Abort(t.Context(), key, id); !ran || err != nil {
		t.Errorf("abort: %t, %v", ran, err)
	}
	close(release)
	if got := <-stopped; got != id {
		t.Errorf("%q was stopped", got)
	}
}

// Two conversations of ours never share one of the runtime's.
func TestNativeNameOfAnother(t *testing.T) {
	r := newRig(t)
	first, second := r.create(), r.create()
	id := r.send(first, "x", "k")
	r.emit(ended(id))
	r.f.onPrepare = func(_ context.Context, q *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error) {
		ref := q.Session
		ref.NativeID = "native-" + first
		return &runtime.PrepareRunResponse{Session: ref}, nil
	}
	if _, err := r.Send(t.Context(), prompt(second, "x", "k")); codes.Of(err) != codes.ReplyInvalid {
		t.Errorf("got %v", err)
	}
}

// A run of ours that ended before this host started does not begin again by an event.
func TestStartOfAnEndedRun(t *testing.T) {
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	r.emit(ended(id))
	r.restart()
	r.up()
	r.emit(runtime.Event{SessionID: key, RunID: id, RunStarted: &runtime.RunStarted{NativeRunID: "turn"}}, text(id, "a", "again"))
	if k := r.kinds(); len(k) != 0 {
		t.Errorf("updates %v", k)
	}
}

func TestBusy(t *testing.T) {
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	r.emit(approval(id, "a", runtime.RiskHigh), question(id, "q"))
	if runs, waiting := r.Busy(); runs != 1 || waiting != 2 {
		t.Errorf("%d runs, %d interactions", runs, waiting)
	}
	r.emit(ended(id))
	if runs, waiting := r.Busy(); runs != 0 || waiting != 0 {
		t.Errorf("%d runs, %d interactions", runs, waiting)
	}
}
