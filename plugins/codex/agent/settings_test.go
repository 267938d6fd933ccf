package agent

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/golden"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func (u *unit) set(options ...string) (*runtime.Settings, error) {
	q := &runtime.SetSettingsRequest{Session: u.ref("t1"), Options: map[string]string{}}
	for i := 0; i+1 < len(options); i += 2 {
		if options[i] == "model" {
			q.ModelID = &options[i+1]
			continue
		}
		q.Options[options[i]] = options[i+1]
	}
	return u.a.SetSettings(u.t.Context(), q)
}

func valueOf(s *runtime.Settings, id string) string {
	for _, o := range s.Options {
		if o.OptionID == id && o.Value != nil {
			return *o.Value
		}
	}
	return ""
}

// ready has a thread, and answers changes with a notification after the answer of the call.
func ready(t *testing.T, confirm func(u *unit, params json.RawMessage)) *unit {
	u := newUnit(t)
	u.on("thread/settings/update", func(p json.RawMessage) golden.Answer {
		confirm(u, p)
		return golden.Answer{Result: object{}}
	})
	if _, err := u.prepare(u.ref(""), "r0"); err != nil {
		t.Fatal(err)
	}
	if err := u.a.AbandonRun(t.Context(), &runtime.AbandonRunRequest{RunID: "r0"}); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestSettingsAreConfirmedByTheNotification(t *testing.T) {
	rules.Covers(t, "CX-03", "CX-08")
	u := ready(t, func(u *unit, p json.RawMessage) {
		switch s := string(p); {
		case strings.Contains(s, `"model":"gpt-6-luna"`):
			u.notify("thread/settings/updated", u.settings("t1", ":workspace", "model", "gpt-5.5", "effort", "high")) // an older one
			u.notify("thread/settings/updated", u.settings("t1", ":workspace", "model", "gpt-6-luna"))
		case strings.Contains(s, `"serviceTier":"priority"`):
			u.notify("thread/settings/updated", u.settings("t1", ":workspace", "model", "gpt-6-luna", "serviceTier", "priority"))
		case strings.Contains(s, `"serviceTier":null`):
			u.notify("thread/settings/updated", u.settings("t1", ":workspace", "model", "gpt-6-luna", "serviceTier", "default"))
		case strings.Contains(s, `"permissions":":danger-full-access"`):
			u.notify("thread/settings/updated", u.settings("t1", ":danger-full-access", "model", "gpt-6-luna"))
		}
	})
	s, err := u.set("model", "gpt-6-luna")
	if err != nil || s.ModelID != "gpt-6-luna" || valueOf(s, optThinking) != "medium" {
		t.Fatalf("model: %+v, %v", s, err)
	}
	if s, err = u.set(optFast, on); err != nil || valueOf(s, optFast) != on {
		t.Fatalf("fast: %+v, %v", s, err)
	}
	if s, err = u.set(optFast, off); err != nil || valueOf(s, optFast) != off {
		t.Fatalf("not fast: %+v, %v", s, err)
	}
	if s, err = u.set(optPermissions, permFull); err != nil || valueOf(s, optPermissions) != permFull {
		t.Fatalf("full access: %+v, %v", s, err)
	}
	if n := u.count("thread/resume"); n != 0 {
		t.Error("confirmed changes were read again")
	}
}

func TestChoicesOffTheListAreRefused(t *testing.T) {
	rules.Covers(t, "CX-13")
	u := ready(t, func(*unit, json.RawMessage) { t.Error("something was changed") })
	for _, tc := range []struct{ id, value, code string }{
		{"model", "gpt-imaginary", codes.ModelMissing},
		{optThinking, "banana", codes.OptionInvalid},
		{optFast, "maybe", codes.OptionInvalid},
		{optPermissions, permCustom, codes.OptionInvalid},
		{optPermissions, ":danger-full-access", codes.OptionInvalid},
		{optMode, "turbo", codes.OptionInvalid},
		{"colour", "red", codes.SettingsUnsupported},
	} {
		if _, err := u.set(tc.id, tc.value); codes.Of(err) != tc.code {
			t.Errorf("%s %s: %v", tc.id, tc.value, err)
		}
	}
	if _, err := u.a.SetSettings(t.Context(), &runtime.SetSettingsRequest{Options: map[string]string{optThinking: "high"}}); codes.Of(err) != codes.ScopeInvalid {
		t.Errorf("without a conversation: %v", err)
	}
}

// Where nothing changes there is no notification: the thread is read instead.
func TestUnchangedSettingsAreRead(t *testing.T) {
	u := ready(t, func(*unit, json.RawMessage) {})
	if s, err := u.set(optThinking, "medium"); err != nil || valueOf(s, optThinking) != "medium" {
		t.Errorf("%+v, %v", s, err)
	}
	if n := u.count("thread/resume"); n != 1 {
		t.Errorf("read %d times", n)
	}
}

// A change without a confirmation is never reported as made.
func TestUnconfirmedSettings(t *testing.T) {
	rules.Covers(t, "CX-08")
	for _, tc := range []struct {
		name    string
		confirm func(u *unit, p json.RawMessage)
	}{
		{"silence", func(*unit, json.RawMessage) {}},
		{"another effort", func(u *unit, _ json.RawMessage) {
			u.notify("thread/settings/updated", u.settings("t1", ":workspace", "effort", "low"))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := ready(t, tc.confirm)
				start := time.Now()
				_, err := u.set(optThinking, "high")
				if codes.Of(err) != codes.NotConfirmed || time.Since(start) < confirmWait {
					t.Errorf("%v after %v", err, time.Since(start))
				}
			})
		})
	}
	t.Run("refused", func(t *testing.T) {
		u := ready(t, func(*unit, json.RawMessage) {})
		u.on("thread/settings/update", func(json.RawMessage) golden.Answer {
			u.notify("thread/settings/updated", u.settings("t1", ":workspace", "effort", "low"))
			return fail(-32600, "no")
		})
		_, err := u.set(optThinking, "high")
		if e := codes.As(err); e == nil || e.Code != codes.NotConfirmed || e.Outcome != codes.NotDispatched {
			t.Errorf("%v", err)
		}
		s, err := u.a.GetSettings(t.Context(), &runtime.GetSettingsRequest{Session: u.ref("t1")})
		if err != nil || valueOf(s, optThinking) != "low" {
			t.Errorf("the newer notification was lost: %+v, %v", s, err)
		}
	})
}

func TestModeMatching(t *testing.T) {
	rules.Covers(t, "CX-08")
	text, other, high, low := "preset", "mine", "high", "low"
	mode := func(m string, model string, effort, instructions *string) *appserver.CollaborationMode {
		return &appserver.CollaborationMode{Mode: m, Settings: appserver.CollaborationSettings{Model: model, ReasoningEffort: effort, DeveloperInstructions: instructions}}
	}
	for _, tc := range []struct {
		name       string
		have, want *appserver.CollaborationMode
		dispatched bool
		ok         bool
	}{
		{"null becomes the preset", mode("plan", "m", &high, &text), mode("plan", "m", &high, nil), true, true},
		{"a text before proves nothing", mode("plan", "m", &high, &other), mode("plan", "m", &high, nil), false, false},
		{"null stays null", mode("plan", "m", &high, nil), mode("plan", "m", &high, nil), false, true},
		{"other mode", mode("default", "m", &high, nil), mode("plan", "m", &high, nil), true, false},
		{"other model", mode("plan", "n", &high, &text), mode("plan", "m", &high, nil), true, false},
		{"other effort", mode("plan", "m", &low, &text), mode("plan", "m", &high, nil), true, false},
		{"effort lost", mode("plan", "m", nil, &text), mode("plan", "m", &high, nil), true, false},
		{"own text", mode("plan", "m", nil, &other), mode("plan", "m", nil, &other), true, true},
		{"another text", mode("plan", "m", nil, &text), mode("plan", "m", nil, &other), true, false},
		{"own text lost", mode("plan", "m", nil, nil), mode("plan", "m", nil, &other), true, false},
		{"none", nil, mode("default", "m", nil, nil), true, false},
	} {
		if got := sameMode(tc.have, tc.want, func(string) bool { return tc.dispatched }); got != tc.ok {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

// A text of somebody's own is no proof of the preset; the preset that was confirmed once is.
func TestPresetIsNoGuess(t *testing.T) {
	rules.Covers(t, "CX-08")
	mode := func(text string) object {
		return object{"mode": "plan", "settings": object{"model": "gpt-5.5", "reasoning_effort": "medium", "developer_instructions": text}}
	}
	synctest.Test(t, func(t *testing.T) {
		var answer object
		u := ready(t, func(u *unit, _ json.RawMessage) {
			if answer != nil {
				u.notify("thread/settings/updated", answer)
			}
		})
		u.notify("thread/settings/updated", u.settings("t1", ":workspace", "collaborationMode", mode("mine")))
		synctest.Wait()
		u.on("thread/resume", func(json.RawMessage) golden.Answer { return fail(-32600, "no rollout found for thread id t1") })
		if _, err := u.set(optMode, "plan"); codes.Of(err) != codes.NotConfirmed {
			t.Errorf("somebody's own text counts as the preset: %v", err)
		}
		answer = u.settings("t1", ":workspace", "collaborationMode", mode("preset"))
		if _, err := u.set(optMode, "plan"); err != nil {
			t.Errorf("preset: %v", err)
		}
		answer = nil
		start := time.Now()
		if _, err := u.set(optMode, "plan"); err != nil || time.Since(start) > time.Second {
			t.Errorf("the known preset again: %v after %v", err, time.Since(start))
		}
	})
}

func TestPermissionsMatchTheirSandboxToo(t *testing.T) {
	rules.Covers(t, "CX-03")
	u := newUnit(t)
	decode := func(o object) appserver.Settings {
		b, err := json.Marshal(o["threadSettings"])
		if err != nil {
			t.Fatal(err)
		}
		var s appserver.Settings
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, tc := range []struct {
		name string
		o    object
		want string
	}{
		{"workspace", u.settings("t1", ":workspace"), permWorkspace},
		{"read only", u.settings("t1", ":read-only"), permReadOnly},
		{"full access", u.settings("t1", ":danger-full-access"), permFull},
		{"workspace with network", u.settings("t1", ":workspace", "sandboxPolicy", object{"type": "workspaceWrite", "networkAccess": true}), permCustom},
		{"workspace that never asks", u.settings("t1", ":workspace", "approvalPolicy", "never"), permCustom},
		{"reviewed by a machine", u.settings("t1", ":workspace", "approvalsReviewer", "auto_review"), permCustom},
		{"wider sandbox", u.settings("t1", ":read-only", "sandboxPolicy", object{"type": "dangerFullAccess"}), permCustom},
		{"anonymous", u.settings("t1", ":workspace", "activePermissionProfile", nil), permCustom},
	} {
		if got := permissionMode(decode(tc.o)); got != tc.want {
			t.Errorf("%s: %s", tc.name, got)
		}
	}
}

func TestSettingsWithoutAConversation(t *testing.T) {
	rules.Covers(t, "CX-13", "CX-16")
	u := newUnit(t)
	u.status(runtime.ConditionReady, "")
	for n := 1; n <= 2; n++ {
		s, err := u.a.GetSettings(t.Context(), &runtime.GetSettingsRequest{})
		if err != nil || len(s.Models) != 2 || s.ModelID != "gpt-5.5" || s.ProviderID != "openai" || len(s.Options) != 0 {
			t.Fatalf("%+v, %v", s, err)
		}
		if got := u.count("model/list"); got != n+1 { // one at start
			t.Errorf("the catalog was asked for %d times", got)
		}
	}
	d, err := u.a.Describe(t.Context())
	if err != nil || d.SessionLayout != runtime.SessionLayoutMany {
		t.Errorf("%+v, %v", d, err)
	}
	if n := u.count("thread/start") + u.count("thread/resume"); n != 0 {
		t.Error("a thread was made")
	}
	if len(u.host.entries) != 0 {
		t.Error("a record was made")
	}
}

// While a reply runs, what is chosen would be the next one's.
func TestNoChangesInAReply(t *testing.T) {
	u := ready(t, func(*unit, json.RawMessage) { t.Error("something was changed") })
	u.begin("r1")
	if _, err := u.set(optThinking, "high"); codes.Of(err) != codes.RunActive {
		t.Errorf("%v", err)
	}
}

// A speed that was chosen before the first turn is asked for again only when the file proves that nothing is written.
func TestSpeedBeforeTheFirstTurn(t *testing.T) {
	rules.Covers(t, "CX-26")
	for _, tc := range []struct {
		name string
		file string // besides the first line
		fast bool
	}{
		{"nothing written", "", true},
		{"other settings written", "event", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := cold(t, true, BrokerAbsent, "0.171.0")
			yes := true
			u.remembered(record{Thread: "t1", Created: true, HandedOver: []string{"r0"}, Permissions: permWorkspace, Fast: &yes})
			if tc.file == "" {
				u.rollout(`{"type":"session_meta","payload":{"id":"t1","cwd":"` + u.dir + `","model_provider":"openai"}}` + "\n")
			}
			if _, err := u.prepare(u.ref("t1"), "r1"); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(string(u.wait("thread/resume", 1)), `"serviceTier":"priority"`); got != tc.fast {
				t.Errorf("resume %s", u.wait("thread/resume", 1))
			}
		})
	}
}
