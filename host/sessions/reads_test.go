package sessions

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func TestHealth(t *testing.T) {
	r := newRig(t)
	r.f.status.Capabilities = []runtime.Capability{runtime.CapabilitySteer, 99}
	h, err := r.Health(t.Context())
	if err != nil || !h.DeviceScope || h.Description.Name != "Fake" {
		t.Fatalf("health %+v, %v", h, err)
	}
	if diff := cmp.Diff([]runtime.Capability{runtime.CapabilitySteer}, h.Capabilities); diff != "" {
		t.Errorf("capabilities (-want +got):\n%s", diff)
	}
	for _, x := range []struct {
		status runtime.Status
		want   string
	}{
		{runtime.Status{Condition: runtime.ConditionDegraded, Reason: codes.RuntimeLoginRequired}, ""},
		{runtime.Status{Condition: runtime.ConditionUnavailable, Reason: codes.RuntimeMissing}, codes.RuntimeMissing},
		{runtime.Status{}, codes.RuntimeUnavailable},
		{runtime.Status{Condition: 44}, codes.RuntimeUnavailable},
	} {
		r.f.onHealth = func() (*runtime.Status, error) { return &x.status, nil }
		if _, err := r.Health(t.Context()); codes.Of(err) != x.want {
			t.Errorf("%v: got %v", x.status.Condition, err)
		}
	}
}

// A phone's handshake waits for a runtime that is coming up, as long as its probe has patience.
func TestHealthWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		c := &Conversations{rt: f, statusChanged: make(chan struct{})}
		tries := 0
		f.onHealth = func() (*runtime.Status, error) {
			switch tries++; {
			case tries == 1:
				return nil, codes.New(codes.RuntimeUnavailable)
			case tries == 2:
				return &runtime.Status{Condition: runtime.ConditionStarting}, nil
			}
			return &runtime.Status{Condition: runtime.ConditionReady}, nil
		}
		done := make(chan error, 1)
		go func() { _, err := c.Health(t.Context()); done <- err }()
		for range 2 {
			synctest.Wait()
			c.Changed()
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		f.onHealth = func() (*runtime.Status, error) { return nil, codes.New(codes.RuntimeUnavailable) }
		begun := time.Now()
		if _, err := c.Health(t.Context()); codes.Of(err) != codes.RuntimeUnavailable || time.Since(begun) != healthTime {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		f.status.Reason = codes.PluginBreakerOpen
		begun = time.Now()
		if _, err := c.Health(t.Context()); err == nil || time.Since(begun) != 0 {
			t.Errorf("a paused plugin: after %s: %v", time.Since(begun), err)
		}
	})
}

// A plugin that dies under a read costs the phone a moment, not an error.
func TestReadsAreTriedAgain(t *testing.T) {
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	r.emit(ended(id))
	tries := 0
	r.f.onHistory = func(*runtime.ReadHistoryRequest) (*runtime.ReadHistoryResponse, error) {
		if tries++; tries == 1 {
			go r.Down(r.gen, codes.PluginCrashed)
			return nil, codes.New(codes.RuntimeUnavailable)
		}
		return &runtime.ReadHistoryResponse{Messages: []runtime.Message{message("1", runtime.RoleUser, "x")}}, nil
	}
	if h := r.page(key); len(h.Messages) != 1 || tries != 2 {
		t.Errorf("%d tries, history %+v", tries, h)
	}
	r.f.onHistory = func(*runtime.ReadHistoryRequest) (*runtime.ReadHistoryResponse, error) {
		tries++
		return nil, codes.New(codes.SessionLost)
	}
	tries = 0
	if _, err := r.History(t.Context(), key, "", 40); codes.Of(err) != codes.SessionLost || tries != 1 {
		t.Errorf("%d tries, %v", tries, err)
	}
}

func TestActivity(t *testing.T) {
	rules.Covers(t, "SYNC-10")
	r := newRig(t)
	r.f.rows = []runtime.Session{native("n1", "one"), native("n2", "two")}
	r.list(true)
	idle, running, waiting := r.create(), r.create(), r.create()
	r.send(running, "x", "k")
	id := r.send(waiting, "x", "k")
	r.emit(approval(id, "a", runtime.RiskHigh))
	r.f.onObserve = func(q *runtime.ObserveActivityRequest) ([]runtime.SessionActivity, error) {
		if len(q.Sessions) != 2 || q.Lease != activityLease {
			t.Errorf("asked %+v", q)
		}
		return []runtime.SessionActivity{
			{Activity: runtime.ActivityWaiting, EvidenceAt: time.Now()},
			{Activity: runtime.ActivityRunning, EvidenceAt: time.Now().Add(-time.Minute)},
		}, nil
	}
	keys := []string{idle, running, waiting, hashedKey("n1"), hashedKey("n2"), "nobody"}
	list, err := r.Activity(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	var got []runtime.Activity
	for _, a := range list {
		got = append(got, a.Activity)
	}
	want := []runtime.Activity{
		runtime.ActivityIdle, runtime.ActivityRunning, runtime.ActivityWaiting, runtime.ActivityWaiting,
		runtime.ActivityUnspecified, runtime.ActivityUnspecified,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if list[2].Attention != runtime.AttentionKindApproval {
		t.Errorf("attention %v", list[2].Attention)
	}
	r.Down(r.gen, codes.PluginCrashed)
	if list, _ := r.Activity(t.Context(), keys[:3]); list[1].Activity != runtime.ActivityUnspecified {
		t.Errorf("while the plugin is down: %v", list[1].Activity)
	}
	var many []string
	for i := range 33 {
		many = append(many, fmt.Sprint(i))
	}
	if _, err := r.Activity(t.Context(), many); codes.Of(err) != codes.ParamsInvalid {
		t.Errorf("33 keys: %v", err)
	}
}

func TestActivityEvents(t *testing.T) {
	r := newRig(t)
	r.f.rows = []runtime.Session{native("n1", "one")}
	r.list(true)
	r.clear()
	a := runtime.SessionActivity{Ref: runtime.SessionRef{NativeID: "n1"}, Activity: runtime.ActivityRunning}
	r.emit(runtime.Event{ActivityChanged: &a})
	u := r.seen(ActivityChanged)
	if len(u) != 1 || u[0].SessionKey != hashedKey("n1") || u[0].Activity.Activity != runtime.ActivityRunning || !u[0].Activity.Ref.IsZero() {
		t.Errorf("updates %+v", u)
	}
}

func TestSkills(t *testing.T) {
	rules.Covers(t, "CX-19")
	r := newRig(t)
	if list, err := r.Skills(t.Context(), r.create()); err != nil || len(list) != 1 {
		t.Errorf("got %v, %v", list, err)
	}
	if _, err := r.Skills(t.Context(), "nobody"); codes.Of(err) != codes.SessionUnknown {
		t.Errorf("an unknown conversation got %v", err)
	}
	r.f.status.Capabilities = nil
	if _, err := r.Skills(t.Context(), ""); codes.Of(err) != codes.MethodUnsupported {
		t.Errorf("got %v", err)
	}
}
