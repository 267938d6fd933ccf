// Package policy holds the one function that decides how freely a runtime may act: it allows, has a person asked, or
// denies. Approvals of a runtime and tools of a phone go through the same table.
//
// It is pure: no I/O, no clock, no state, safe for concurrent use. Whatever it does not know, it reads as the most
// restrictive value. It never decides anything but "this once" or "no", and it never answers a question.
package policy

import "github.com/openphone-host/openphone/sdk/runtime"

// Verdict is what happens to an action. The zero value denies; a greater one permits more.
type Verdict int

// Verdicts.
const (
	Deny Verdict = iota
	Ask
	Allow
)

// String is the verdict in lower case.
func (v Verdict) String() string {
	switch v {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	default:
		return "deny"
	}
}

// Levels are the autonomy levels that bear on one action.
type Levels struct {
	Call    runtime.Autonomy // named by the call itself; unspecified: as the session has it
	Session runtime.Autonomy // unspecified, or no session: ask before each action
	Runtime runtime.Autonomy // ceiling set for the runtime; unspecified: ask before each action
	User    runtime.Autonomy // ceiling of the person; unspecified: ask before each action
}

// Level is the autonomy that counts: the lowest of all, so that naming a level can only tighten (OP-20).
func Level(l Levels) runtime.Autonomy {
	session := orAsk(l.Session)
	call := l.Call
	if call == runtime.AutonomyUnspecified {
		call = session
	}
	return min(known(call), session, orAsk(l.Runtime), orAsk(l.User))
}

// Action is what a runtime wants to do, as far as the table cares.
type Action struct {
	Mutating     bool
	Risk         runtime.Risk
	AlwaysAsk    bool // the manifest demands a confirmation at every level
	NeedsConsent bool // the runtime itself asks for consent, so nothing passes just because it changes nothing
}

// decide is the table.
//
//	                              observe only   ask before action   trusted actions
//	reads                         allow          allow               allow
//	reads, consent wanted         ask            ask                 allow if the risk is low or medium, else ask
//	changes                       deny           ask                 allow if the risk is low or medium, else ask
//	changes, always to confirm    deny           ask                 ask
func decide(level runtime.Autonomy, a Action) Verdict {
	level = known(level)
	switch {
	case !a.Mutating && !a.NeedsConsent:
		return Allow
	case a.Mutating && level == runtime.AutonomyObserveOnly:
		return Deny
	case level != runtime.AutonomyTrustedActions || a.AlwaysAsk:
		return Ask
	case a.Risk == runtime.RiskLow || a.Risk == runtime.RiskMedium:
		return Allow
	default:
		return Ask // high, or nobody knows
	}
}

// Approval decides an approval a runtime asks for. alone is false when a person has to be asked; otherwise the decision
// is allow-once or deny. Every approval counts as a change: no category of it merely reads.
func Approval(level runtime.Autonomy, a runtime.Approval) (d runtime.Decision, alone bool) {
	switch decide(level, Action{Mutating: true, Risk: a.Risk, NeedsConsent: true}) {
	case Allow:
		return runtime.DecisionAllowOnce, true
	case Deny:
		return runtime.DecisionDeny, true
	default:
		return runtime.DecisionUnspecified, false
	}
}

// known maps levels of a newer contract to the lowest.
func known(a runtime.Autonomy) runtime.Autonomy {
	switch a {
	case runtime.AutonomyAskBeforeAction, runtime.AutonomyTrustedActions:
		return a
	default:
		return runtime.AutonomyObserveOnly
	}
}

// orAsk is known with a default for "nobody said anything".
func orAsk(a runtime.Autonomy) runtime.Autonomy {
	if a == runtime.AutonomyUnspecified {
		return runtime.AutonomyAskBeforeAction
	}
	return known(a)
}
