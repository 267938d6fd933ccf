// Package ledger decides what a receipt means: whether a prompt that arrives is new, a repetition or a mix-up, and what
// becomes of an accepted prompt when the runtime answers, ends or is asked after a crash.
//
// It is pure logic: it keeps nothing, reads no clock, knows no store, no phone and no native format. host/sessions does
// what it says and host/store remembers it. Everything here is safe for concurrent use.
package ledger

import (
	"strings"
	"unicode/utf8"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/jsonframe"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// maxKeyUnits is the longest idempotency key, in UTF-16 units.
const maxKeyUnits = 200

// Receipt is what is known of an earlier prompt with the same key.
type Receipt struct {
	RunID       string
	Fingerprint string // 64 hex digits
}

// Verdict is what a prompt turns out to be.
type Verdict int

// Verdicts.
const (
	Fresh    Verdict = iota + 1 // never seen: it may be prepared
	Repeat                      // the same prompt again: answer its run id, do nothing else
	Conflict                    // the key was used for another prompt: refuse
)

// Decide judges a prompt against the receipt of its key; nil: there is none. It never allows a second dispatch, however
// the first one ended (FAULT-04, SYNC-12).
func Decide(existing *Receipt, fingerprint string) Verdict {
	switch {
	case existing == nil:
		return Fresh
	case existing.Fingerprint == fingerprint && fingerprint != "":
		return Repeat
	}
	return Conflict
}

// KeyValid reports whether a phone's key can be kept: 1 to 200 UTF-16 units of valid text that is not blank.
func KeyValid(key string) bool {
	if !utf8.ValidString(key) || strings.TrimSpace(key) == "" {
		return false
	}
	return jsonframe.Units(key) <= maxKeyUnits
}

// State is how far an accepted prompt has come.
type State int

// States. A run only moves down this list.
const (
	Accepted   State = iota + 1 // the receipt is on disk; CommitRun was not answered
	Doubtful                    // CommitRun was answered with unknown: it may be running
	Dispatched                  // the runtime has it
	Ended
)

// Step is what has to happen to a run.
type Step struct {
	State State
	// End, when set, finishes the run with this. State is Ended then.
	End *runtime.RunEnded
	// Tell, when set, is the code of a notice for phones; the run stays open.
	Tell string
}

// Committed judges the answer of CommitRun. An unknown outcome keeps the run open, because only the runtime can say
// what became of it; nothing here ever sends it again. code is the plugin's reason, if it gave one.
func Committed(s State, outcome runtime.Outcome, code string) Step {
	if s == Ended {
		return Step{State: Ended} // the end overtook the answer (CX-18)
	}
	switch outcome {
	case runtime.OutcomeDispatched:
		return Step{State: Dispatched}
	case runtime.OutcomeNotDispatched:
		if s == Dispatched {
			return Step{State: Dispatched} // events of the run came already: it runs, whatever the answer says
		}
		if code == "" {
			code = codes.RunNotDispatched
		}
		return end(runtime.EndReasonFailed, code)
	}
	if s == Dispatched {
		return Step{State: Dispatched}
	}
	return Step{State: Doubtful, Tell: codes.OutcomeUnknown}
}

// Seen notes proof that the runtime has the run: one of its events.
func Seen(s State) State {
	if s < Dispatched {
		return Dispatched
	}
	return s
}

// Reconciled judges what a new plugin process knows about an open run. A phase it does not name, or that is newer than
// this host, is RUN_PHASE_UNSPECIFIED: the run is closed with a fixed notice and never sent again. stopped says that a
// person asked for the stop: a runtime that lost its plugin stops its work too, and calls that by the same name.
func Reconciled(s State, phase runtime.RunPhase, ended *runtime.RunEnded, stopped bool) Step {
	if s == Ended {
		return Step{State: Ended}
	}
	switch phase {
	case runtime.RunPhaseRunning:
		return Step{State: Dispatched}
	case runtime.RunPhaseEnded:
		if ended != nil && ended.Reason == runtime.EndReasonCancelled && !stopped {
			cut := *ended
			cut.Reason, cut.Code = runtime.EndReasonUnspecified, codes.Interrupted
			return Step{State: Ended, End: &cut}
		}
		if ended != nil {
			return Step{State: Ended, End: ended}
		}
	case runtime.RunPhaseNeverSeen:
		return end(runtime.EndReasonFailed, codes.RunNotDispatched)
	}
	return end(runtime.EndReasonUnspecified, codes.Interrupted)
}

// StateOf is the state of a run as its record has it.
func StateOf(outcome runtime.Outcome, ended bool) State {
	switch {
	case ended:
		return Ended
	case outcome == runtime.OutcomeDispatched:
		return Dispatched
	case outcome == runtime.OutcomeUnknown:
		return Doubtful
	}
	return Accepted
}

func end(reason runtime.EndReason, code string) Step {
	return Step{State: Ended, End: &runtime.RunEnded{Reason: reason, Code: code}}
}
