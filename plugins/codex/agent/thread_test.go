package agent

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/golden"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// written puts a settings event into the file of thread t1.
func (u *unit) written(profile string) {
	u.t.Helper()
	policy := "on-request"
	active := `"active_permission_profile":{"id":"` + profile + `"},`
	if profile == "" {
		active = ""
	}
	lines := `{"type":"session_meta","payload":{"id":"t1","cwd":"` + u.dir + `","model_provider":"openai"}}
{"type":"event_msg","payload":{"type":"thread_settings_applied","thread_id":"t1","thread_settings":{"model":"gpt-5.5","model_provider_id":"openai","approval_policy":"` + policy + `","approvals_reviewer":"user","permission_profile":{"type":"external"},` + active + `"cwd":"` + u.dir + `"}}}
`
	u.rollout(lines)
}

// rollout writes the file of thread t1.
func (u *unit) rollout(lines string) {
	u.t.Helper()
	dir := filepath.Join(u.home, "sessions")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		u.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rollout-t1.jsonl"), []byte(lines), 0o600); err != nil {
		u.t.Fatal(err)
	}
}

// cold has a thread with history that no process has loaded.
func cold(t *testing.T, created bool, e Evidence, version string) *unit {
	f := newFakeCodex(t)
	f.version = version
	u := startUnit(t, f, func(o *Options) { o.Owner = noOwner{e} })
	u.on("thread/read", func(json.RawMessage) golden.Answer { return golden.Answer{Result: object{"thread": u.thread("t1")}} })
	u.on("thread/turns/list", func(json.RawMessage) golden.Answer {
		return golden.Answer{Result: object{"data": []object{{"id": "old", "status": "completed"}}}}
	})
	u.written(":workspace")
	if created {
		u.remembered(record{Thread: "t1", Created: true, HandedOver: []string{"r0"}, Permissions: permWorkspace})
	}
	return u
}

func TestWhoMayWrite(t *testing.T) {
	rules.Covers(t, "CX-17", "CX-23")
	for _, tc := range []struct {
		name    string
		created bool
		e       Evidence
		version string
		code    string
	}{
		{"made here, no desktop, audited lock", true, BrokerAbsent, "0.171.0", ""},
		{"made here, no desktop, unknown lock", true, BrokerAbsent, "0.172.0", codes.OwnerUnknown},
		{"imported, no desktop", false, BrokerAbsent, "0.171.0", codes.OwnerUnknown},
		{"imported, explicitly nobody's", false, OwnerNone, "0.172.0", ""},
		{"made here, somebody's", true, OwnerElsewhere, "0.171.0", codes.SessionInUse},
		{"made here, nobody knows", true, OwnerUnknown, "0.171.0", codes.OwnerUnknown},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := cold(t, tc.created, tc.e, tc.version)
			_, err := u.prepare(u.ref("t1"), "r1")
			if codes.Of(err) != tc.code {
				t.Errorf("%v", err)
			}
			if tc.code != "" && u.count("thread/resume") != 0 {
				t.Error("the thread was resumed")
			}
			_, err = u.a.SetSettings(t.Context(), &runtime.SetSettingsRequest{Session: u.ref("t1"), Options: map[string]string{optThinking: "medium"}})
			if tc.code != "" && codes.Of(err) != tc.code {
				t.Errorf("settings: %v", err)
			}
		})
	}
}

func TestSettingsNeedTheSameProof(t *testing.T) {
	rules.Covers(t, "CX-24")
	u := cold(t, false, OwnerUnknown, "0.171.0")
	if _, err := u.a.SetSettings(t.Context(), &runtime.SetSettingsRequest{
		Session: u.ref("t1"), Options: map[string]string{optPermissions: permFull},
	}); codes.Of(err) != codes.OwnerUnknown {
		t.Errorf("change: %v", err)
	}
	s, err := u.a.GetSettings(t.Context(), &runtime.GetSettingsRequest{Session: u.ref("t1")})
	if err != nil || len(s.Options) != 0 || s.ModelID != "gpt-5.5" {
		t.Errorf("reading %+v, %v", s, err)
	}
	if n := u.count("thread/resume") + u.count("thread/settings/update"); n != 0 {
		t.Error("the thread was touched")
	}
}

func TestResumeRefusals(t *testing.T) {
	rules.Covers(t, "CX-11")
	for _, tc := range []struct {
		name string
		do   func(u *unit)
		code string
	}{
		{"somebody writes", func(u *unit) {
			u.on("thread/resume", func(json.RawMessage) golden.Answer { return fail(-32600, "thread t1 already has an active writer") })
		}, codes.SessionInUse},
		{"record gone", func(u *unit) {
			u.on("thread/resume", func(json.RawMessage) golden.Answer { return fail(-32600, "no rollout found for thread id t1") })
		}, codes.SessionLost},
		{"profile removed", func(u *unit) {
			u.on("thread/resume", func(json.RawMessage) golden.Answer {
				return fail(-32600, "failed to load configuration: default_permissions refers to undefined profile `x`")
			})
		}, codes.PermissionsNotRestored},
		{"something else restored", func(u *unit) {
			u.on("thread/resume", func(json.RawMessage) golden.Answer { return golden.Answer{Result: u.result("t1", ":read-only")} })
		}, codes.PermissionsNotRestored},
		{"wider than before", func(u *unit) {
			u.on("thread/resume", func(json.RawMessage) golden.Answer {
				return golden.Answer{Result: u.result("t1", ":danger-full-access")}
			})
		}, codes.PermissionsNotRestored},
		{"unknown anonymous policy", func(u *unit) { u.written("") }, codes.PermissionsUnverified},
		{"no file", func(u *unit) { _ = os.Remove(filepath.Join(u.home, "sessions", "rollout-t1.jsonl")) }, codes.PermissionsUnverified},
		{"a turn is not over", func(u *unit) {
			u.on("thread/turns/list", func(json.RawMessage) golden.Answer {
				return golden.Answer{Result: object{"data": []object{{"id": "x", "status": "inProgress"}}}}
			})
		}, codes.OwnerUnknown},
		{"other directory", func(u *unit) {
			u.on("thread/read", func(json.RawMessage) golden.Answer {
				return golden.Answer{Result: object{"thread": object{"id": "t1", "cwd": u.home}}}
			})
		}, codes.ProjectUnavailable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := cold(t, true, BrokerAbsent, "0.171.0")
			tc.do(u)
			if _, err := u.prepare(u.ref("t1"), "r1"); codes.Of(err) != tc.code {
				t.Errorf("%v", err)
			}
			if n := u.count("turn/start"); n != 0 {
				t.Error("a prompt was sent")
			}
		})
	}
}

// A turn that was running when the thread was joined is waited for, though its name is not known.
func TestJoiningARunningThread(t *testing.T) {
	u := cold(t, true, BrokerAbsent, "0.171.0")
	u.on("thread/resume", func(json.RawMessage) golden.Answer {
		r := u.result("t1", ":workspace")
		r["thread"].(object)["status"] = object{"type": "active"}
		return golden.Answer{Result: r}
	})
	if _, err := u.prepare(u.ref("t1"), "r1"); codes.Of(err) != codes.RunActive {
		t.Errorf("%v", err)
	}
	u.notify("thread/status/changed", object{"threadId": "t1", "status": object{"type": "idle"}})
	u.notify("thread/name/updated", object{"threadId": "t1", "threadName": "x"})
	u.sink.wait(t, "name", func(e runtime.Event) bool { return e.SessionChanged != nil })
	if _, err := u.prepare(u.ref("t1"), "r2"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// What a conversation will be resumed with is shown before it is, and so is that it cannot be.
func TestSettingsOfAColdThread(t *testing.T) {
	rules.Covers(t, "CX-11")
	u := cold(t, true, BrokerAbsent, "0.171.0")
	u.written(":read-only") // chosen elsewhere since
	read := func() *runtime.Settings {
		t.Helper()
		s, err := u.a.GetSettings(t.Context(), &runtime.GetSettingsRequest{Session: u.ref("t1")})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := read(); valueOf(s, optPermissions) != permReadOnly || confirmationRequired(s) {
		t.Errorf("%+v", s)
	}
	u.written("")
	if s := read(); !confirmationRequired(s) || s.NoticeCode != codes.PermissionsUnverified {
		t.Errorf("%+v", s)
	}
	if u.count("thread/resume") != 0 {
		t.Error("it was resumed to be looked at")
	}
}

// After a failed restoration nothing is sent before a person has chosen, and the choice is confirmed.
func TestGuard(t *testing.T) {
	rules.Covers(t, "CX-03", "CX-11")
	u := cold(t, true, BrokerAbsent, "0.171.0")
	u.on("thread/resume", func(json.RawMessage) golden.Answer { return golden.Answer{Result: u.result("t1", ":read-only")} })
	for range 2 {
		if _, err := u.prepare(u.ref("t1"), "r1"); codes.Of(err) != codes.PermissionsNotRestored {
			t.Fatalf("%v", err)
		}
	}
	s, err := u.a.GetSettings(t.Context(), &runtime.GetSettingsRequest{Session: u.ref("t1")})
	if err != nil || !confirmationRequired(s) || s.NoticeCode != codes.PermissionsNotRestored {
		t.Errorf("settings %+v, %v", s, err)
	}
	u.on("thread/settings/update", func(p json.RawMessage) golden.Answer {
		if !strings.Contains(string(p), `"permissions":":workspace"`) {
			t.Errorf("update %s", p)
		}
		u.notify("thread/settings/updated", u.settings("t1", ":workspace"))
		return golden.Answer{Result: object{}}
	})
	s, err = u.a.SetSettings(t.Context(), &runtime.SetSettingsRequest{Session: u.ref("t1"), Options: map[string]string{optPermissions: permWorkspace}})
	if err != nil || confirmationRequired(s) {
		t.Fatalf("choice %+v, %v", s, err)
	}
	if _, err := u.prepare(u.ref("t1"), "r2"); err != nil {
		t.Errorf("after the choice: %v", err)
	}
}

func confirmationRequired(s *runtime.Settings) bool {
	for _, o := range s.Options {
		if o.ConfirmationRequired {
			return true
		}
	}
	return false
}

func TestNewThreadsAskForTheirPermissions(t *testing.T) {
	rules.Covers(t, "CX-03", "CX-01")
	u := newUnit(t)
	if _, err := u.prepare(u.ref(""), "r1"); err != nil {
		t.Fatal(err)
	}
	p := string(u.wait("thread/start", 1))
	for _, want := range []string{`"permissions":":workspace"`, `"approvalPolicy":"on-request"`, `"approvalsReviewer":"user"`, `"cwd":"` + u.dir + `"`} {
		if !strings.Contains(p, want) {
			t.Errorf("thread/start without %s: %s", want, p)
		}
	}
	u.on("thread/start", func(json.RawMessage) golden.Answer {
		return golden.Answer{Result: u.result("t2", ":danger-full-access")}
	})
	ref := u.ref("")
	ref.SessionID = "other"
	if _, err := u.prepare(ref, "r2"); codes.Of(err) != codes.PermissionsNotRestored {
		t.Errorf("wider than asked for: %v", err)
	}
	ref.ProjectPath = filepath.Join(u.dir, "missing")
	if _, err := u.prepare(ref, "r3"); codes.Of(err) != codes.ProjectUnavailable {
		t.Errorf("missing directory: %v", err)
	}
}

// A record that cannot be read is not an empty one.
func TestStateFailsClosed(t *testing.T) {
	rules.Covers(t, "CX-04")
	u := cold(t, true, BrokerAbsent, "0.171.0")
	u.host.fail = codes.New(codes.FeatureNotGranted)
	if _, err := u.prepare(u.ref("t1"), "r1"); codes.Of(err) != codes.FeatureNotGranted {
		t.Errorf("%v", err)
	}
	if n := u.count("thread/start") + u.count("thread/resume"); n != 0 {
		t.Error("a thread was started or resumed")
	}
}

func TestBrokerProbe(t *testing.T) {
	rules.Covers(t, "CX-17")
	home := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	if got := (brokerProbe{}).Discover(t.Context(), home, "t1"); got != BrokerAbsent {
		t.Errorf("without a socket: %v", got)
	}
	if err := os.Mkdir(filepath.Join(home, "ipc"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(home, "ipc", "ipc.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if got := (brokerProbe{}).Discover(t.Context(), home, "t1"); got != OwnerUnknown {
		t.Errorf("with a broker: %v", got)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := (brokerProbe{}).Discover(t.Context(), home, "t1"); got != BrokerAbsent {
		t.Errorf("with a socket left behind: %v", got)
	}
}

func TestArchiveAndDetach(t *testing.T) {
	rules.Covers(t, "CX-05")
	yes := true
	u := newUnit(t)
	title := "Mine"
	if _, err := u.prepare(u.ref(""), "r1"); err != nil {
		t.Fatal(err)
	}
	if _, err := u.a.UpdateSession(t.Context(), &runtime.UpdateSessionRequest{Session: u.ref("t1"), Title: &title, Archived: &yes}); err != nil {
		t.Fatal(err)
	}
	if n := u.count("thread/name/set") + u.count("thread/archive"); n != 0 {
		t.Error("an empty thread was named or archived in Codex")
	}
	if _, err := u.a.CommitRun(t.Context(), &runtime.CommitRunRequest{RunID: "r1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := u.a.UpdateSession(t.Context(), &runtime.UpdateSessionRequest{Session: u.ref("t1"), Archived: &yes}); codes.Of(err) != codes.SessionBusy {
		t.Errorf("archiving a running conversation: %v", err)
	}
	if err := u.a.DetachSession(t.Context(), &runtime.DetachSessionRequest{Session: u.ref("t1"), Mode: runtime.DetachModeReset}); codes.Of(err) != codes.SessionBusy {
		t.Errorf("resetting it: %v", err)
	}
	u.notify("turn/started", u.turn("turn1", "inProgress"))
	u.notify("turn/completed", u.turn("turn1", "completed"))
	u.sink.ended(t, "r1")
	if err := u.a.DetachSession(t.Context(), &runtime.DetachSessionRequest{Session: u.ref("t1"), Mode: runtime.DetachModeReset}); err != nil {
		t.Fatal(err)
	}
	u.wait("thread/archive", 1)
	if rec, err := u.a.load(t.Context(), u.ref("")); err != nil || rec.Created || rec.Thread != "" {
		t.Errorf("the record survived the reset: %+v, %v", rec, err)
	}
	if err := u.a.DetachSession(t.Context(), &runtime.DetachSessionRequest{Session: u.ref("t1"), Mode: runtime.DetachModeReset}); err != nil || u.count("thread/archive") != 1 {
		t.Errorf("reset again: %v, archived %d times", err, u.count("thread/archive"))
	}
	native := runtime.SessionRef{NativeID: "theirs", ProjectPath: u.dir}
	if err := u.a.DetachSession(t.Context(), &runtime.DetachSessionRequest{Session: native, Mode: runtime.DetachModeDelete}); codes.Of(err) != codes.SessionReadOnly {
		t.Errorf("deleting what was not made here: %v", err)
	}
}
