package runtimes

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// begin starts a run that goes on until it is told to end.
func (r *rig) begin(id string) {
	r.t.Helper()
	ctx := context.Background()
	if _, err := r.inst().PrepareRun(ctx, &runtime.PrepareRunRequest{RunID: id}); err != nil {
		r.t.Fatal(err)
	}
	c, err := r.inst().CommitRun(ctx, &runtime.CommitRunRequest{RunID: id})
	if err != nil || c.Outcome != runtime.OutcomeDispatched {
		r.t.Fatalf("%+v, %v", c, err)
	}
}

// upgrading asks for an upgrade and gives its answer later.
func (r *rig) upgrading(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	go func() { done <- r.inst().Upgrade(ctx) }()
	return done
}

// TestUpgrade: a running reply ends undisturbed, new ones wait at the door, and the new version takes them.
func TestUpgrade(t *testing.T) {
	rules.Covers(t, "UPD-02")
	for _, c := range []struct {
		name string
		v    variant
	}{
		{"side by side, the plugin counts", variant{"side_by_side": true, "drain": true}},
		{"side by side, the host counts", variant{"side_by_side": true}},
		{"one after the other", variant{"drain": true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.v, nil)
			r.until(Ready)
			r.begin("r1")
			next := variant{"version": "2.0.0"}
			for k, x := range c.v {
				next[k] = x
			}
			path := install(t, r.dir, "test", next)
			done := r.upgrading(context.Background())
			r.until(Draining)
			sent := make(chan error, 1)
			go func() {
				_, err := r.inst().PrepareRun(context.Background(), &runtime.PrepareRunRequest{RunID: "r2"})
				sent <- err
			}()
			select {
			case err := <-done:
				t.Fatalf("upgraded while a reply runs: %v", err)
			case err := <-sent:
				t.Fatalf("sent while draining: %v", err)
			case <-time.After(300 * time.Millisecond):
			}
			g, err := r.inst().ready(context.Background(), 0)
			if err != nil {
				t.Fatal(err)
			}
			// Answers and steering still reach the old process; the end of the reply is the plugin's own business.
			go func() { _, _ = g.rpc.Management.Call(context.Background(), say("end r1")) }()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if err := <-sent; err != nil {
				t.Errorf("the send that waited: %v", err)
			}
			s := r.until(Ready)
			if s.Generation != 2 || s.PluginVersion != "2.0.0" || s.Status.NativeVersion != "2.0.0" {
				t.Errorf("%+v", s)
			}
			sum, err := r.vault.checksum(path)
			if err != nil || r.pins.Pin(filePrefix+"test") != sum {
				t.Errorf("the new version is not trusted: %v", err)
			}
			if c, err := r.inst().CommitRun(context.Background(), &runtime.CommitRunRequest{RunID: "r2"}); err != nil || c.Outcome != runtime.OutcomeDispatched {
				t.Errorf("%+v, %v", c, err)
			}
			r.wait("its event", func() bool { return r.rec.has("events 2") })
			r.stop()
			want := []string{"started 1", "events 1", "events 1", "down 1 restarting", "started 2", "events 2", "down 2 restarting"}
			if diff := cmp.Diff(want, r.rec.lines); diff != "" {
				t.Errorf("observer (-want +got)\n%s", diff)
			}
		})
	}
}

// TestRollback: a new version that ends, hangs or cannot be understood leaves the old one running.
func TestRollback(t *testing.T) {
	for _, c := range []struct {
		name   string
		next   variant
		code   string
		starts uint64 // processes that served afterwards: 1 when the old one never stopped
	}{
		{"ends at once", variant{"side_by_side": true, "start": "exit"}, codes.PluginStartFailed, 1},
		{"hangs before the handshake", variant{"side_by_side": true, "start": "hang"}, codes.PluginStartFailed, 1},
		{"cannot handshake", variant{"side_by_side": true, "start": "garbage"}, codes.PluginStartFailed, 1},
		{"another contract", variant{"side_by_side": true, "start": "version"}, codes.PluginIncompatible, 1},
		{"cannot be configured, side by side", variant{"side_by_side": true, "fail": []string{"Configure"}}, codes.Internal, 1},
		{"hangs in Health, side by side", variant{"side_by_side": true, "hang": []string{"Health"}}, codes.DeadlineExceeded, 1},
		{"cannot be configured, one after the other", variant{"fail": []string{"Configure"}}, codes.Internal, 2},
		{"hangs in Health, one after the other", variant{"hang": []string{"Health"}}, codes.DeadlineExceeded, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, variant{"side_by_side": true, "drain": true}, nil)
			r.until(Ready)
			pin := r.pins.Pin(filePrefix + "test")
			c.next["version"], c.next["drain"] = "2.0.0", true
			install(t, r.dir, "test", c.next)
			code(t, r.inst().Upgrade(context.Background()), c.code)
			s := r.until(Ready)
			if s.Status.NativeVersion != "1.0.0" || s.PluginVersion != "1.0.0" || r.pins.Pin(filePrefix+"test") != pin {
				t.Errorf("%+v", s)
			}
			if (s.Generation == 1) != (c.starts == 1) {
				t.Errorf("process %d serves", s.Generation)
			}
			r.begin("r")
		})
	}
}

// TestUpgradeCalledOff: replies that do not end in time keep the old version, and the door opens again.
func TestUpgradeCalledOff(t *testing.T) {
	r := newRig(t, variant{"side_by_side": true, "drain": true}, func(o *Options) { o.DrainFor = 100 * time.Millisecond })
	r.until(Ready)
	r.begin("r1")
	install(t, r.dir, "test", variant{"version": "2.0.0", "side_by_side": true, "drain": true})
	code(t, r.inst().Upgrade(context.Background()), codes.SessionBusy)
	if s := r.until(Ready); s.Generation != 1 || s.Status.NativeVersion != "1.0.0" {
		t.Errorf("%+v", s)
	}
	r.begin("r2")
}

// TestUpgradeOfWhatIsDown: a plugin that could not run is replaced by one that can.
func TestUpgradeOfWhatIsDown(t *testing.T) {
	r := newRig(t, variant{"id": "other"}, nil)
	r.until(Refused)
	install(t, r.dir, "test", variant{"version": "2.0.0"})
	if err := r.inst().Upgrade(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s := r.until(Ready); s.PluginVersion != "2.0.0" {
		t.Errorf("%+v", s)
	}
}

// TestDrainCounts: admission closes at once, and what is between the door and the plugin is counted with what runs in it.
func TestDrainCounts(t *testing.T) {
	rules.Covers(t, "UPD-02")
	r := newRig(t, variant{"drain": true}, nil)
	r.until(Ready)
	ctx := context.Background()
	r.begin("running")
	if _, err := r.inst().PrepareRun(ctx, &runtime.PrepareRunRequest{RunID: "prepared"}); err != nil {
		t.Fatal(err)
	}
	left, err := r.inst().Drain(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&runtime.DrainResponse{RunIds: []string{"running"}, OtherWork: 1}, left); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err = r.inst().PrepareRun(short, &runtime.PrepareRunRequest{RunID: "late"})
	code(t, err, codes.Draining)
	if err := r.inst().AbandonRun(ctx, &runtime.AbandonRunRequest{RunID: "prepared"}); err != nil && codes.Of(err) != codes.MethodUnsupported {
		t.Fatal(err)
	}
	if left, err := r.inst().Drain(ctx, false); err != nil || left.OtherWork != 0 {
		t.Errorf("%+v, %v", left, err)
	}
	if _, err := r.inst().Drain(ctx, true); err != nil {
		t.Fatal(err)
	}
	if _, err := r.inst().PrepareRun(ctx, &runtime.PrepareRunRequest{RunID: "open again"}); err != nil {
		t.Error(err)
	}
}
