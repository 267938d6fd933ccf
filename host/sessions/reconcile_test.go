package sessions

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func phase(p runtime.RunPhase, end *runtime.RunEnded) func(*runtime.ReconcileRequest) *runtime.ReconcileResponse {
	return func(q *runtime.ReconcileRequest) *runtime.ReconcileResponse {
		resp := &runtime.ReconcileResponse{}
		for _, o := range q.Runs {
			resp.Runs = append(resp.Runs, runtime.RunState{Session: o.Session, RunID: o.RunID, NativeRunID: o.NativeRunID, Phase: p, End: end})
		}
		return resp
	}
}

func TestReconcile(t *testing.T) {
	for _, x := range []struct {
		name   string
		answer func(*runtime.ReconcileRequest) *runtime.ReconcileResponse
		reason runtime.EndReason
		code   string
		open   bool
	}{
		{"running", phase(runtime.RunPhaseRunning, nil), 0, "", true},
		{"ended well", phase(runtime.RunPhaseEnded, &runtime.RunEnded{Reason: runtime.EndReasonCompleted}), runtime.EndReasonCompleted, "", false},
		{"ended badly", phase(runtime.RunPhaseEnded, &runtime.RunEnded{Reason: runtime.EndReasonFailed, Code: codes.ModelMissing}), runtime.EndReasonFailed, codes.ModelMissing, false},
		{"stopped by nobody", phase(runtime.RunPhaseEnded, &runtime.RunEnded{Reason: runtime.EndReasonCancelled}), runtime.EndReasonUnspecified, codes.Interrupted, false},
		{"ended, no word how", phase(runtime.RunPhaseEnded, nil), runtime.EndReasonUnspecified, codes.Interrupted, false},
		{"never seen", phase(runtime.RunPhaseNeverSeen, nil), runtime.EndReasonFailed, codes.RunNotDispatched, false},
		{"nobody knows", phase(runtime.RunPhaseUnspecified, nil), runtime.EndReasonUnspecified, codes.Interrupted, false},
		{"a newer phase", phase(99, nil), runtime.EndReasonUnspecified, codes.Interrupted, false},
		{"left out", func(*runtime.ReconcileRequest) *runtime.ReconcileResponse { return &runtime.ReconcileResponse{} }, runtime.EndReasonUnspecified, codes.Interrupted, false},
	} {
		for _, host := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/host restarted %t", x.name, host), func(t *testing.T) {
				r := newRig(t)
				key := r.create()
				id := r.send(key, "x", "k")
				r.emit(runtime.Event{RunID: id, RunStarted: &runtime.RunStarted{NativeRunID: "turn-7"}}, text(id, "a", "half"))
				if host {
					r.restart()
				} else {
					r.Down(r.gen, codes.PluginCrashed)
					if n := r.seen(NoticeRaised); len(n) != 1 || n[0].RunID != id || n[0].Notice.Code != codes.PluginCrashed {
						t.Errorf("noticed %+v", n)
					}
				}
				if _, err := r.Send(t.Context(), prompt(key, "y", "k-2")); codes.Of(err) != codes.RunActive {
					t.Errorf("the run does not survive its process: %v", err)
				}
				r.up(func(q *runtime.ReconcileRequest) *runtime.ReconcileResponse {
					if len(q.Runs) != 1 || q.Runs[0].RunID != id || q.Runs[0].NativeRunID != "turn-7" ||
						q.Runs[0].Outcome != runtime.OutcomeDispatched || q.Runs[0].Session.SessionID != key {
						t.Errorf("asked about %+v", q.Runs)
					}
					return x.answer(q)
				})
				ends := r.seen(RunFinished)
				if x.open {
					if len(ends) != 0 {
						t.Fatalf("it ended: %+v", ends[0].End)
					}
					r.emit(runtime.Event{RunID: id, Text: &runtime.TextChunk{PartID: "a", Text: "half and", Replace: true}}, text(id, "a", " all"), ended(id))
					if ends = r.seen(RunFinished); len(ends) != 1 || ends[0].End.Message.Parts[0].Text != "half and all" {
						t.Fatalf("ends %+v", ends)
					}
				} else if len(ends) != 1 || ends[0].End.Reason != x.reason || ends[0].End.Code != x.code || (x.code != "") != (ends[0].End.NoticeText != "") {
					t.Fatalf("ends %+v", ends)
				}
				r.send(key, "y", "k-3")
				if n := len(r.f.runs()); n != 2 {
					t.Errorf("%d dispatches, want 2", n)
				}
			})
		}
	}
}

func TestRunsTheHostDidNotKnow(t *testing.T) {
	r := newRig(t)
	elsewhere := func(*runtime.ReconcileRequest) *runtime.ReconcileResponse {
		return &runtime.ReconcileResponse{Runs: []runtime.RunState{
			{Session: runtime.SessionRef{NativeID: "n1"}, RunID: "desktop:1", NativeRunID: "1", Phase: runtime.RunPhaseRunning},
			{Session: runtime.SessionRef{NativeID: "n2"}, RunID: "desktop:2", Phase: runtime.RunPhaseEnded},
		}}
	}
	r.up(elsewhere)
	if s := r.seen(RunStarted); len(s) != 1 || s[0].RunID != "desktop:1" {
		t.Fatalf("started %+v", s)
	}
	r.Down(r.gen, codes.PluginCrashed)
	r.up(elsewhere)
	if len(r.seen(RunStarted)) != 1 || len(r.seen(RunFinished)) != 0 {
		t.Error("it began or ended again")
	}
	r.Down(r.gen, codes.PluginCrashed)
	r.up()
	if e := r.seen(RunFinished); len(e) != 1 || e[0].End.Code != codes.Interrupted {
		t.Errorf("ends %+v", e)
	}
}

// What a person stopped was stopped, also when the plugin died over it.
func TestStoppedAndReconciled(t *testing.T) {
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	if _, err := r.Abort(t.Context(), key, id); err != nil {
		t.Fatal(err)
	}
	r.Down(r.gen, codes.PluginCrashed)
	r.up(phase(runtime.RunPhaseEnded, &runtime.RunEnded{Reason: runtime.EndReasonCancelled}))
	if e := r.seen(RunFinished); len(e) != 1 || e[0].End.Reason != runtime.EndReasonCancelled || e[0].End.Code != "" {
		t.Errorf("ends %+v", e)
	}
}

// While a dispatch is under way, a gap in the events must not make the same process declare the run lost.
func TestGapWhileCommitting(t *testing.T) {
	r := newRig(t)
	key := r.create()
	r.f.onCommit = func(context.Context, *runtime.CommitRunRequest) (*runtime.CommitRunResponse, error) {
		err := r.Started(t.Context(), r.gen, func(_ context.Context, q *runtime.ReconcileRequest) (*runtime.ReconcileResponse, error) {
			if len(q.Runs) != 0 {
				t.Errorf("asked about %+v", q.Runs)
			}
			return &runtime.ReconcileResponse{}, nil
		})
		return nil, err
	}
	id := r.send(key, "x", "k")
	if len(r.seen(RunFinished)) != 0 {
		t.Fatal("it ended")
	}
	r.emit(ended(id))
}

func TestReconcileFails(t *testing.T) {
	r := newRig(t)
	id := r.send(r.create(), "x", "k")
	r.Down(r.gen, codes.PluginCrashed)
	r.gen++
	fail := func(err error) error {
		return r.Started(t.Context(), r.gen, func(context.Context, *runtime.ReconcileRequest) (*runtime.ReconcileResponse, error) { return nil, err })
	}
	if err := fail(codes.New(codes.Internal)); err == nil {
		t.Error("a process that cannot reconcile counts as started")
	}
	if len(r.seen(RunFinished)) != 0 {
		t.Error("the run ended without evidence")
	}
	if err := fail(codes.New(codes.MethodUnsupported)); err != nil {
		t.Error(err)
	}
	if e := r.seen(RunFinished); len(e) != 1 || e[0].RunID != id || e[0].End.Code != codes.Interrupted {
		t.Errorf("ends %+v", e)
	}
}

// A runtime that is not there is no fault of its plugin: what is open waits for the answer.
func TestReconcileLater(t *testing.T) {
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	r.Down(r.gen, codes.PluginCrashed)
	r.gen++
	r.f.status.Condition = runtime.ConditionUnavailable
	there := false
	err := r.Started(t.Context(), r.gen, func(_ context.Context, q *runtime.ReconcileRequest) (*runtime.ReconcileResponse, error) {
		if !there {
			return nil, codes.New(codes.RuntimeUnavailable)
		}
		return phase(runtime.RunPhaseEnded, &runtime.RunEnded{Reason: runtime.EndReasonCompleted})(q), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Changed()
	if len(r.seen(RunFinished)) != 0 {
		t.Error("the run ended without evidence")
	}
	if _, err := r.Send(t.Context(), prompt(key, "y", "k-2")); codes.Of(err) != codes.RunActive {
		t.Errorf("a second prompt: %v", err)
	}
	there = true
	r.f.status.Condition = runtime.ConditionReady
	r.Changed()
	r.Changed()
	if e := r.seen(RunFinished); len(e) != 1 || e[0].RunID != id || e[0].End.Reason != runtime.EndReasonCompleted {
		t.Errorf("ends %+v", e)
	}
}

// The host ends at any point of a stream; the next one gets the text said again and ends with the same bytes.
func TestHostEndsInAStream(t *testing.T) {
	rules.Covers(t, "FAULT-09")
	pieces := []string{"One ", "\n", "  two", "\n\n", "thrée 😀", " "}
	whole := strings.Join(pieces, "")
	for cut := range len(pieces) + 1 {
		r := newRig(t)
		id := r.send(r.create(), "x", "k")
		for _, s := range pieces[:cut] {
			r.emit(text(id, "a", s))
		}
		r.restart()
		r.up(phase(runtime.RunPhaseRunning, nil))
		r.emit(runtime.Event{RunID: id, Text: &runtime.TextChunk{PartID: "a", Text: strings.Join(pieces[:cut], ""), Replace: true}})
		for _, s := range pieces[cut:] {
			r.emit(text(id, "a", s))
		}
		r.emit(ended(id))
		e := r.seen(RunFinished)
		if len(e) != 1 || e[0].End.Message.Parts[0].Text != whole {
			t.Errorf("cut at %d: ends %+v", cut, e)
		}
		shown := ""
		for _, u := range r.seen(TextChunk) {
			shown += u.Text
		}
		if shown != whole {
			t.Errorf("cut at %d: phones were shown %q", cut, shown)
		}
		r.stop()
	}
}
