package control

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/host/runtimes"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func TestRuntimeCheck(t *testing.T) {
	codex := runtimes.Snapshot{ID: "codex", Name: "Codex", PluginVersion: "1.2.3", Description: &runtime.Description{
		RuntimeID: "codex",
		Phrases: []runtime.Phrase{
			{Code: "codex.broken", Text: "Codex is broken. Run: codex doctor"},
			{Code: "codex.runtime_too_old", Text: "Codex is too old. Run: npm install -g @openai/codex"},
		},
	}}
	with := func(f func(*runtimes.Snapshot)) runtimes.Snapshot { x := codex; f(&x); return x }
	ready := func(s runtime.Status) runtimes.Snapshot {
		return with(func(x *runtimes.Snapshot) { x.State, x.Status = runtimes.Ready, s })
	}
	for _, c := range []struct {
		name string
		x    runtimes.Snapshot
		want Check
	}{
		{
			"disabled", with(func(x *runtimes.Snapshot) { x.State, x.Reason = runtimes.Disabled, codes.RuntimeUnavailable }),
			Check{"runtime.codex", OK, "Codex is disabled.", "openphone runtime enable codex"},
		},
		{
			"changed", with(func(x *runtimes.Snapshot) { x.State, x.Reason = runtimes.Refused, codes.PluginChanged }),
			Check{"runtime.codex", Failed, codes.Lookup(codes.PluginChanged).Message, "openphone runtime enable codex"},
		},
		{
			"incompatible", with(func(x *runtimes.Snapshot) { x.State, x.Reason = runtimes.Refused, codes.PluginIncompatible }),
			Check{"runtime.codex", Failed, codes.Lookup(codes.PluginIncompatible).Message, "openphone runtime restart codex"},
		},
		{
			"paused", with(func(x *runtimes.Snapshot) { x.State, x.Reason = runtimes.Paused, codes.PluginBreakerOpen }),
			Check{"runtime.codex", Failed, codes.Lookup(codes.PluginBreakerOpen).Message, "openphone runtime restart codex"},
		},
		{
			"starting", with(func(x *runtimes.Snapshot) { x.State = runtimes.Starting }),
			Check{"runtime.codex", Warning, "Codex is starting.", ""},
		},
		{
			"ready", ready(runtime.Status{Condition: runtime.ConditionReady, NativeVersion: "0.171.0"}),
			Check{"runtime.codex", OK, "Codex 0.171.0 is ready.", ""},
		},
		{
			"the native program comes up", ready(runtime.Status{Condition: runtime.ConditionStarting}),
			Check{"runtime.codex", Warning, "Codex is starting.", ""},
		},
		{
			"not signed in", ready(runtime.Status{Condition: runtime.ConditionDegraded, Reason: codes.RuntimeLoginRequired}),
			Check{"runtime.codex", Warning, codes.Lookup(codes.RuntimeLoginRequired).Message, ""},
		},
		{
			"missing", ready(runtime.Status{Condition: runtime.ConditionUnavailable, Reason: codes.RuntimeMissing}),
			Check{"runtime.codex", Failed, codes.Lookup(codes.RuntimeMissing).Message, ""},
		},
		{
			"what to run here", ready(runtime.Status{Condition: runtime.ConditionUnavailable, Reason: codes.RuntimeTooOld}),
			Check{"runtime.codex", Failed, "Codex is too old. Run: npm install -g @openai/codex", ""},
		},
		{
			"a sentence of its own", ready(runtime.Status{Condition: runtime.ConditionUnavailable, Reason: "codex.broken"}),
			Check{"runtime.codex", Failed, "Codex is broken. Run: codex doctor", ""},
		},
		{
			"nothing known", ready(runtime.Status{}),
			Check{"runtime.codex", Failed, "Codex cannot be reached.", ""},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, runtimeCheck(c.x)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
