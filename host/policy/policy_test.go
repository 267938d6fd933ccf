package policy

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/sdk/runtime"
)

const (
	none    = runtime.AutonomyUnspecified
	observe = runtime.AutonomyObserveOnly
	ask     = runtime.AutonomyAskBeforeAction
	trusted = runtime.AutonomyTrustedActions
	newer   = runtime.Autonomy(99)

	unknownRisk = runtime.RiskUnspecified
	low         = runtime.RiskLow
	medium      = runtime.RiskMedium
	high        = runtime.RiskHigh
	newerRisk   = runtime.Risk(99)
)

var (
	levels = []runtime.Autonomy{none, observe, ask, trusted, newer}
	risks  = []runtime.Risk{low, medium, high, unknownRisk, newerRisk}
)

func TestDecideTable(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "OP-07", "OP-09")
	// One line for each kind of action; a column for each of: observe, ask, trusted with low, medium, high, unknown risk.
	// Unspecified and newer levels are observe only here; Level turns the first into "ask".
	for _, c := range []struct {
		mutating, always, consent bool
		want                      [6]Verdict
	}{
		{false, false, false, [6]Verdict{Allow, Allow, Allow, Allow, Allow, Allow}},
		{false, true, false, [6]Verdict{Allow, Allow, Allow, Allow, Allow, Allow}},
		{false, false, true, [6]Verdict{Ask, Ask, Allow, Allow, Ask, Ask}},
		{false, true, true, [6]Verdict{Ask, Ask, Ask, Ask, Ask, Ask}},
		{true, false, false, [6]Verdict{Deny, Ask, Allow, Allow, Ask, Ask}},
		{true, true, false, [6]Verdict{Deny, Ask, Ask, Ask, Ask, Ask}},
		{true, false, true, [6]Verdict{Deny, Ask, Allow, Allow, Ask, Ask}},
		{true, true, true, [6]Verdict{Deny, Ask, Ask, Ask, Ask, Ask}},
	} {
		for _, level := range levels {
			for i, risk := range risks {
				want := c.want[0]
				switch level {
				case ask:
					want = c.want[1]
				case trusted:
					want = c.want[2+min(i, 3)]
				}
				a := Action{Mutating: c.mutating, Risk: risk, AlwaysAsk: c.always, NeedsConsent: c.consent}
				if got := decide(level, a); got != want {
					t.Errorf("decide(%v, %+v) = %v, want %v", level, a, got, want)
				}
			}
		}
	}
}

func TestLevel(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "OP-10", "OP-20")
	for _, c := range []struct {
		name string
		in   Levels
		want runtime.Autonomy
	}{
		{"nothing said", Levels{}, ask},
		{"no level on the call: the session's", Levels{none, trusted, trusted, trusted}, trusted},
		{"the call cannot raise the session", Levels{trusted, observe, trusted, trusted}, observe},
		{"the call lowers", Levels{observe, trusted, trusted, trusted}, observe},
		{"no session", Levels{trusted, none, trusted, trusted}, ask},
		{"the runtime's ceiling", Levels{none, trusted, ask, trusted}, ask},
		{"the person's ceiling", Levels{none, trusted, trusted, observe}, observe},
		{"a ceiling nobody set", Levels{none, trusted, trusted, none}, ask},
		{"a level of a newer version", Levels{newer, trusted, trusted, trusted}, observe},
		{"a ceiling of a newer version", Levels{none, trusted, newer, trusted}, observe},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := Level(c.in); got != c.want {
				t.Errorf("Level(%v) = %v, want %v", c.in, got, c.want)
			}
		})
	}
}

func TestApproval(t *testing.T) {
	t.Parallel()
	for _, level := range levels {
		for _, risk := range risks {
			for category := runtime.ApprovalCategory(0); category < 8; category++ {
				d, alone := Approval(level, runtime.Approval{Risk: risk, Category: category})
				want, wantAlone := runtime.DecisionUnspecified, false
				switch {
				case level == trusted && (risk == low || risk == medium):
					want, wantAlone = runtime.DecisionAllowOnce, true
				case level != trusted && level != ask:
					want, wantAlone = runtime.DecisionDeny, true
				}
				if d != want || alone != wantAlone {
					t.Errorf("Approval(%v, %v, %v) = %v %v, want %v %v", level, risk, category, d, alone, want, wantAlone)
				}
			}
		}
	}
}

func good() (Levels, Call) {
	return Levels{none, trusted, trusted, trusted}, Call{
		Tool:     Tool{Known: true, Remote: true, MCP: true, Action: Action{Mutating: true, Risk: low}},
		Endpoint: Endpoint{Online: true, Supports: true}, ParamsValid: true, Reason: "to look",
	}
}

func TestRule(t *testing.T) {
	t.Parallel()
	// Each case breaks one thing more than the one before, from the last check to the first: the earlier check decides.
	l, c := good()
	for i, step := range []struct {
		change func()
		want   Ruling
	}{
		{func() {}, Ruling{Verdict: Allow}},
		{func() { l.Session = ask }, Ruling{Verdict: Ask}},
		{func() { c.Endpoint.Confirms = true }, Ruling{Verdict: Ask, Forward: true}},
		{func() { l.Call = observe }, Ruling{Reason: ObserveOnly}},
		{func() { c.Tool.PrivateRead = true }, Ruling{Reason: NotGranted}},
		{func() { c.Reason = " \n" }, Ruling{Reason: MissingReason}},
		{func() { c.ParamsValid = false }, Ruling{Reason: InvalidParams}},
		{func() { c.Endpoint.Supports = false }, Ruling{Reason: ToolNotSupported}},
		{func() { c.Endpoint.Online = false }, Ruling{Reason: EndpointOffline}},
		{func() { c.Tool.MCP, c.ViaMCP = false, true }, Ruling{Reason: UnknownTool}},
	} {
		step.change()
		if d := cmp.Diff(step.want, l.Rule(c)); d != "" {
			t.Errorf("step %d (-want +got):\n%s", i, d)
		}
	}
	for name, change := range map[string]func(*Call){
		"unknown":        func(c *Call) { c.Tool.Known = false },
		"not for remote": func(c *Call) { c.Tool.Remote = false },
	} {
		l, c := good()
		change(&c)
		if got := l.Rule(c); got != (Ruling{Reason: UnknownTool}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	_, read := good()
	read.Tool.PrivateRead, read.Granted, read.Tool.Action = true, true, Action{Risk: medium}
	if got := (Levels{Session: observe}).Rule(read); got != (Ruling{Verdict: Allow}) {
		t.Errorf("a granted private read = %+v, want allowed", got)
	}
	if got := (Levels{}).Rule(Call{}); got.Verdict != Deny {
		t.Errorf("the zero call = %+v, want denied", got)
	}
}

// Tightening anything never permits more.
func TestMonotonicity(t *testing.T) {
	t.Parallel()
	level := rapid.SampledFrom([]runtime.Autonomy{newer, observe, ask, trusted}) // in rising order
	order := map[runtime.Autonomy]int{newer: 0, observe: 1, ask: 2, trusted: 3}
	rapid.Check(t, func(rt *rapid.T) {
		action := Action{
			Mutating: rapid.Bool().Draw(rt, "mutating"), Risk: rapid.SampledFrom(risks).Draw(rt, "risk"),
			AlwaysAsk: rapid.Bool().Draw(rt, "always"), NeedsConsent: rapid.Bool().Draw(rt, "consent"),
		}
		l := [4]runtime.Autonomy{}
		for i := range l {
			l[i] = level.Draw(rt, fmt.Sprint("level", i))
		}
		before := decide(Level(Levels{l[0], l[1], l[2], l[3]}), action)
		i := rapid.IntRange(0, 3).Draw(rt, "tightened")
		lower := level.Filter(func(a runtime.Autonomy) bool { return order[a] <= order[l[i]] })
		l[i] = lower.Draw(rt, "to")
		if after := decide(Level(Levels{l[0], l[1], l[2], l[3]}), action); after > before {
			rt.Fatalf("%+v: %v before, %v after %v", action, before, after, l)
		}
		for _, tighter := range []Action{
			{true, action.Risk, action.AlwaysAsk, action.NeedsConsent},
			{action.Mutating, high, action.AlwaysAsk, action.NeedsConsent},
			{action.Mutating, unknownRisk, action.AlwaysAsk, action.NeedsConsent},
			{action.Mutating, action.Risk, true, action.NeedsConsent},
			{action.Mutating, action.Risk, action.AlwaysAsk, true},
		} {
			lev := Level(Levels{l[0], l[1], l[2], l[3]})
			if decide(lev, tighter) > decide(lev, action) {
				rt.Fatalf("%v: %+v permits more than %+v", lev, tighter, action)
			}
		}
	})
}
