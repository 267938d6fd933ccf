package ledger

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	for _, c := range []struct {
		name        string
		known       *Receipt
		fingerprint string
		want        Verdict
	}{
		{"new", nil, a, Fresh},
		{"the same", &Receipt{"r", a}, a, Repeat},
		{"another prompt", &Receipt{"r", a}, b, Conflict},
		{"without a fingerprint", &Receipt{"r", ""}, "", Conflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := Decide(c.known, c.fingerprint); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestKeyValid(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"": false, " \t": false, "k": true, "__proto__": true, strings.Repeat("k", 200): true, strings.Repeat("k", 201): false,
		strings.Repeat("é", 200): true, strings.Repeat("😀", 100): true, strings.Repeat("😀", 101): false, "\xff": false,
	} {
		if got := KeyValid(key); got != want {
			t.Errorf("KeyValid(%.20q…) = %t", key, got)
		}
	}
}

func TestCommitted(t *testing.T) {
	t.Parallel()
	notSent := func(code string) Step {
		return Step{State: Ended, End: &runtime.RunEnded{Reason: runtime.EndReasonFailed, Code: code}}
	}
	doubt := Step{State: Doubtful, Tell: codes.OutcomeUnknown}
	for _, c := range []struct {
		name    string
		state   State
		outcome runtime.Outcome
		code    string
		want    Step
	}{
		{"dispatched", Accepted, runtime.OutcomeDispatched, "", Step{State: Dispatched}},
		{"not dispatched", Accepted, runtime.OutcomeNotDispatched, "", notSent(codes.RunNotDispatched)},
		{"not dispatched, and why", Accepted, runtime.OutcomeNotDispatched, codes.ModelMissing, notSent(codes.ModelMissing)},
		{"unknown", Accepted, runtime.OutcomeUnknown, "", doubt},
		{"nothing said", Accepted, runtime.OutcomeUnspecified, "", doubt},
		{"a newer word", Accepted, 42, "", doubt},
		{"unknown, but it was heard", Dispatched, runtime.OutcomeUnknown, "", Step{State: Dispatched}},
		{"denied, but it was heard", Dispatched, runtime.OutcomeNotDispatched, "", Step{State: Dispatched}},
		{"the end was first", Ended, runtime.OutcomeNotDispatched, "", Step{State: Ended}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, Committed(c.state, c.outcome, c.code)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReconciled(t *testing.T) {
	t.Parallel()
	interrupted := Step{State: Ended, End: &runtime.RunEnded{Code: codes.Interrupted}}
	well, cut := &runtime.RunEnded{Reason: runtime.EndReasonCompleted}, &runtime.RunEnded{Reason: runtime.EndReasonCancelled}
	for _, c := range []struct {
		name    string
		phase   runtime.RunPhase
		end     *runtime.RunEnded
		stopped bool
		want    Step
	}{
		{"running", runtime.RunPhaseRunning, nil, false, Step{State: Dispatched}},
		{"ended", runtime.RunPhaseEnded, well, false, Step{State: Ended, End: well}},
		{"ended, no word how", runtime.RunPhaseEnded, nil, false, interrupted},
		{"stopped by a person", runtime.RunPhaseEnded, cut, true, Step{State: Ended, End: cut}},
		{"stopped by nobody", runtime.RunPhaseEnded, cut, false, interrupted},
		{"never seen", runtime.RunPhaseNeverSeen, nil, false, Step{State: Ended, End: &runtime.RunEnded{Reason: runtime.EndReasonFailed, Code: codes.RunNotDispatched}}},
		{"nobody knows", runtime.RunPhaseUnspecified, nil, false, interrupted},
		{"a newer word", 42, nil, false, interrupted},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, s := range []State{Accepted, Doubtful, Dispatched} {
				if diff := cmp.Diff(c.want, Reconciled(s, c.phase, c.end, c.stopped)); diff != "" {
					t.Errorf("state %d (-want +got):\n%s", s, diff)
				}
			}
			if diff := cmp.Diff(Step{State: Ended}, Reconciled(Ended, c.phase, c.end, c.stopped)); diff != "" {
				t.Errorf("ended (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever comes in whatever order, a run ends once and never goes back.
func TestRunsOnlyMoveForward(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := Accepted
		ends := 0
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			var step Step
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				step = Committed(s, runtime.Outcome(rapid.IntRange(0, 5).Draw(t, "outcome")), "")
			case 1:
				step = Reconciled(s, runtime.RunPhase(rapid.IntRange(0, 5).Draw(t, "phase")), nil, false)
			case 2:
				step = Step{State: Seen(s)}
			}
			if step.End != nil {
				ends++
			}
			if step.State < s || ends > 1 || (step.End != nil) != (step.State == Ended && s != Ended) {
				t.Fatalf("from %d to %+v, %d ends", s, step, ends)
			}
			s = step.State
		}
	})
}

func TestStateOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		outcome runtime.Outcome
		ended   bool
		want    State
	}{
		{runtime.OutcomeUnspecified, false, Accepted},
		{runtime.OutcomeNotDispatched, false, Accepted},
		{runtime.OutcomeUnknown, false, Doubtful},
		{runtime.OutcomeDispatched, false, Dispatched},
		{runtime.OutcomeDispatched, true, Ended},
	} {
		if got := StateOf(c.outcome, c.ended); got != c.want {
			t.Errorf("StateOf(%v, %t) = %d, want %d", c.outcome, c.ended, got, c.want)
		}
	}
}
