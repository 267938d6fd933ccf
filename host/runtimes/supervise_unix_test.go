//go:build !windows

package runtimes

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// kill ends the plugin the hard way.
func (r *rig) kill() {
	r.t.Helper()
	if err := syscall.Kill(r.inst().Snapshot().PID, syscall.SIGKILL); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) generation(n uint64) Snapshot {
	r.t.Helper()
	return r.wait("process "+strconv.Itoa(int(n)), func() bool { s := r.inst().Snapshot(); return s.State == Ready && s.Generation == n })
}

// TestCrash: the process is replaced at once, a send that comes meanwhile waits, and the observer is told in order.
func TestCrash(t *testing.T) {
	r := newRig(t, nil, nil)
	r.until(Ready)
	began := time.Now()
	r.kill()
	ctx := context.Background()
	for { // the first sends may still reach for the dead process: each is a clean refusal
		_, err := r.inst().PrepareRun(ctx, &runtime.PrepareRunRequest{RunID: "r"})
		if err == nil {
			break
		}
		if e := codes.As(err); e == nil || e.Code != codes.RuntimeUnavailable || e.Outcome != codes.NotDispatched {
			t.Fatalf("refused with %v", err)
		}
	}
	t.Logf("killed to accepted: %v", time.Since(began))
	r.generation(2)
	r.stop()
	want := []string{"started 1", "down 1 plugin_crashed", "started 2", "down 2 restarting"}
	if diff := cmp.Diff(want, r.rec.lines); diff != "" {
		t.Errorf("observer (-want +got)\n%s", diff)
	}
}

// TestOutcomesOfACrash: what was on its way when the process died is unknown; what came after its death was not sent.
func TestOutcomesOfACrash(t *testing.T) {
	r := newRig(t, variant{"hang": []string{"CommitRun", "SteerRun", "StopRun", "ResolveInteraction"}}, nil)
	r.until(Ready)
	i := r.inst()
	ctx := context.Background()
	outcomes := map[string]func() runtime.Outcome{
		"commit": func() runtime.Outcome { x, _ := i.CommitRun(ctx, &runtime.CommitRunRequest{}); return x.Outcome },
		"steer":  func() runtime.Outcome { x, _ := i.SteerRun(ctx, &runtime.SteerRunRequest{}); return x.Outcome },
		"stop":   func() runtime.Outcome { x, _ := i.StopRun(ctx, &runtime.StopRunRequest{}); return x.Outcome },
		"resolve": func() runtime.Outcome {
			x, _ := i.ResolveInteraction(ctx, &runtime.ResolveInteractionRequest{})
			return x.Outcome
		},
	}
	type result struct {
		name string
		out  runtime.Outcome
	}
	got := make(chan result, len(outcomes))
	for name, f := range outcomes {
		go func() { got <- result{name, f()} }()
	}
	r.tell("sleep 200ms") // by then all of them hang in the plugin
	r.kill()
	for range outcomes {
		if x := <-got; x.out != runtime.OutcomeUnknown {
			t.Errorf("%s: %v, want unknown", x.name, x.out)
		}
	}
	r.stop()
	for name, f := range outcomes {
		if out := f(); out != runtime.OutcomeNotDispatched {
			t.Errorf("%s without a process: %v, want not dispatched", name, out)
		}
	}
}

// TestHang: a process that does not answer Health is killed and replaced.
func TestHang(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, func(o *Options) { o.HealthEvery = 50 * time.Millisecond })
	r.until(Ready)
	r.tell("deaf")
	r.generation(2)
	if !r.rec.has("down 1 plugin_crashed") {
		t.Errorf("observer saw %v", r.rec.lines)
	}
}

// TestStopped: a process that is stopped altogether, and cannot end by itself, is killed too, also when the host ends.
func TestStopped(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	s := r.until(Ready)
	if err := syscall.Kill(s.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r.Hurry()
	r.stop()
	if err := syscall.Kill(s.PID, 0); err == nil {
		t.Error("the process is still there")
	}
}

// TestHangInACall: a call that never answers ends at its deadline, disturbs no other, and a slow caller is nobody's hang.
func TestHangInACall(t *testing.T) {
	t.Parallel()
	r := newRig(t, variant{"hang": []string{"PrepareRun", "ReadHistory"}}, nil)
	r.until(Ready)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err := r.inst().ReadHistory(ctx, &runtime.ReadHistoryRequest{})
	code(t, err, codes.DeadlineExceeded)
	_, err = r.inst().PrepareRun(ctx, &runtime.PrepareRunRequest{})
	if e := codes.As(err); e == nil || e.Outcome != codes.NotDispatched {
		t.Errorf("prepare: %v", err)
	}
	r.tell("ok")
	if g := r.inst().Generation(); g != 1 {
		t.Errorf("the process was replaced: %d", g)
	}
}

// TestWatchEnds: the end of the event stream is the end of the process.
func TestWatchEnds(t *testing.T) {
	r := newRig(t, nil, nil)
	r.until(Ready)
	r.tell("closewatch")
	r.generation(2)
}

// TestBreaker: five exits open the breaker, a second runtime does not notice, and a person closes it.
func TestBreaker(t *testing.T) {
	r := newRig(t, nil, func(o *Options) { install(t, o.Dirs[0], "steady", nil) })
	steady, err := r.Instance("steady")
	if err != nil {
		t.Fatal(err)
	}
	for state, _ := steady.State(); state != Ready; state, _ = steady.State() {
		steady.mu.Lock()
		moved := steady.moved
		steady.mu.Unlock()
		if state, _ := steady.State(); state == Ready {
			break
		}
		<-moved
	}
	for n := range uint64(breakerExits) {
		r.generation(n + 1)
		r.kill()
	}
	s := r.until(Paused)
	if s.Reason != codes.PluginBreakerOpen || s.RetryAt.Before(time.Now().Add(4*time.Minute)) || s.Restarts != breakerExits {
		t.Errorf("%+v", s)
	}
	if state, _ := steady.State(); state != Ready || steady.Generation() != 1 {
		t.Errorf("the other runtime is %s, process %d", state, steady.Generation())
	}
	if err := r.inst().Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.generation(breakerExits + 1)
}

// TestObserverRefuses: a process whose open runs cannot be compared does not count as started.
func TestObserverRefuses(t *testing.T) {
	r := newRig(t, nil, func(o *Options) {})
	r.until(Ready)
	r.rec.mu.Lock()
	r.rec.refuse = codes.New(codes.StoreFull)
	r.rec.mu.Unlock()
	go func() { _ = r.inst().Restart(context.Background()) }()
	r.wait("a failed start", func() bool { s, _ := r.inst().State(); return s == Waiting || s == Paused })
	if !r.rec.has("down 2 plugin_crashed") {
		t.Errorf("observer saw %v", r.rec.lines)
	}
}

// TestEvents: order, bodies of the future, gaps and numbers that come twice.
func TestEvents(t *testing.T) {
	r := newRig(t, nil, nil)
	r.until(Ready)
	r.tell("nobody")
	r.tell("emit")
	r.wait("six events", func() bool { r.rec.mu.Lock(); defer r.rec.mu.Unlock(); return len(r.rec.events) == 6 })
	for k, e := range r.rec.events {
		if e.Seq != uint64(k+1) {
			t.Errorf("event %d has number %d", k, e.Seq)
		}
	}
	r.tell("gap")
	r.wait("a new comparison", func() bool {
		r.rec.mu.Lock()
		defer r.rec.mu.Unlock()
		return slices.Index(r.rec.lines, "started 1") < slices.Index(r.rec.lines, "events 1") && strings.Count(strings.Join(r.rec.lines, ","), "started 1") == 2
	})
	r.tell("status")
	r.wait("the status", func() bool { return r.inst().Status().Reason == codes.RuntimeLoginRequired })
	if r.inst().Status().Condition != runtime.ConditionDegraded {
		t.Errorf("%+v", r.inst().Status())
	}
}

// TestUnknownEnums: a value of the future is the careful one everywhere.
func TestUnknownEnums(t *testing.T) {
	r := newRig(t, variant{"enums": true}, nil)
	r.until(Ready)
	d, st := r.inst().Description(), r.inst().Status()
	if d.SessionLayout != 0 || len(st.Capabilities) != 0 || st.Condition != runtime.ConditionUnspecified {
		t.Errorf("%+v %+v", d, st)
	}
	ctx := context.Background()
	if _, err := r.inst().PrepareRun(ctx, &runtime.PrepareRunRequest{RunID: "r"}); err != nil {
		t.Fatal(err)
	}
	c, err := r.inst().CommitRun(ctx, &runtime.CommitRunRequest{RunID: "r"})
	if err != nil || c.Outcome == runtime.OutcomeDispatched || c.Outcome == runtime.OutcomeNotDispatched {
		t.Errorf("an outcome nobody knows became %v, %v", c, err)
	}
}

// TestErrorsKeepSecrets: codes and bounded parameters come through, texts of the plugin do not.
func TestErrorsKeepSecrets(t *testing.T) {
	r := newRig(t, variant{"fail": []string{"ListSkills"}}, nil)
	r.until(Ready)
	_, err := r.inst().ListSkills(context.Background(), &runtime.ListSkillsRequest{})
	code(t, err, codes.Internal)
	if strings.Contains(err.Error(), "SECRET") {
		t.Errorf("%v", err)
	}
	_, err = r.try("detail prompt_too_long")
	e := codes.As(err)
	if e == nil || e.Code != codes.PromptTooLong || e.Outcome != codes.NotDispatched || len(e.Message()) > 300 || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("%v", err)
	}
	_, err = r.try("detail test.sad")
	if e := codes.As(err); e == nil || e.Code != "test.sad" || r.inst().Phrase(e.Code) != "The test is sad." {
		t.Errorf("%v", err)
	}
	_, err = r.inst().Call(context.Background(), &runtime.CallRequest{Method: "test.undeclared"})
	code(t, err, codes.MethodUnknown)
}

// TestNoise: a plugin that prints without end neither blocks nor fills the log.
func TestNoise(t *testing.T) {
	r := newRig(t, nil, nil)
	r.until(Ready)
	r.tell("stdout")
	r.tell("stderr")
	r.tell("ok")
	if n := strings.Count(r.logs.String(), "noise on"); n > 2*linesBurst {
		t.Errorf("%d lines in the log", n)
	}
}

// TestPanic: the end of standard error is kept for the local log, and only there.
func TestPanic(t *testing.T) {
	r := newRig(t, nil, nil)
	r.until(Ready)
	_, err := r.try("panic")
	code(t, err, codes.RuntimeUnavailable)
	if e := codes.As(err); e != nil && e.Outcome != codes.Unknown {
		t.Errorf("outcome %v", e.Outcome)
	}
	r.generation(2)
	r.stop()
	if !strings.Contains(r.logs.String(), "SECRET-PANIC") {
		t.Error("the log does not tell why it crashed")
	}
	if s := r.inst().Snapshot(); strings.Contains(s.Detail, "SECRET") {
		t.Errorf("%+v", s)
	}
}

// TestStateThroughTheHost: HostService answers the instance, with its limits, and phone tools are not granted.
func TestStateThroughTheHost(t *testing.T) {
	st := &memory{m: map[string]uint64{}}
	r := newRig(t, nil, func(o *Options) { o.State = st })
	r.until(Ready)
	if got := r.tell("state a"); got != "1" {
		t.Errorf("revision %s", got)
	}
	if st.m["test/a"] != 1 {
		t.Errorf("%v", st.m)
	}
	_, err := r.try("state not/a key!")
	code(t, err, codes.StateKeyInvalid)
	_, err = r.try("bigstate")
	code(t, err, codes.StateTooLarge)
	_, err = r.try("tools")
	code(t, err, codes.FeatureNotGranted)
}

type memory struct{ m map[string]uint64 }

func (m *memory) GetState(context.Context, string, runtime.StateKey) (*runtime.StateEntry, error) {
	return nil, nil
}

func (m *memory) PutState(_ context.Context, instance string, k runtime.StateKey, _ []byte, _ *uint64) (uint64, error) {
	m.m[instance+"/"+k.Name]++
	return m.m[instance+"/"+k.Name], nil
}

func (m *memory) DeleteState(context.Context, string, runtime.StateKey, *uint64) error { return nil }

func (m *memory) ListState(context.Context, string, string, string) ([]runtime.StateEntry, error) {
	return nil, nil
}

// TestSocketsAreTidy: the directory of a host that was killed goes away at the next start, and ours goes with us.
func TestSocketsAreTidy(t *testing.T) {
	data := t.TempDir()
	dir, err := socketDir(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/stale", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := socketDir(data)
	if err != nil || again != dir {
		t.Fatalf("%s, %v", again, err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 0 {
		t.Errorf("left %v", list)
	}
	_ = os.RemoveAll(dir)
	r := newRig(t, nil, nil)
	r.until(Ready)
	path := r.socketDir()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	r.stop()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", path, err)
	}
}

// TestCrashOfAChangedFile: the copy that was verified goes on when the file it came from has changed meanwhile.
func TestCrashOfAChangedFile(t *testing.T) {
	r := newRig(t, nil, nil)
	r.until(Ready)
	install(t, r.dir, "test", variant{"version": "2.0.0"})
	r.kill()
	r.wait("the second process", func() bool { s := r.inst().Snapshot(); return s.State == Ready && s.Generation == 2 })
	if v := r.inst().Status().NativeVersion; v != "1.0.0" {
		t.Errorf("version %s", v)
	}
}
