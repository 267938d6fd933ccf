package agent

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/golden"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func (u *unit) status(condition runtime.Condition, reason string) {
	u.t.Helper()
	u.sink.wait(u.t, "status "+condition.String()+" "+reason, func(e runtime.Event) bool {
		return e.StatusChanged != nil && e.StatusChanged.Condition == condition && e.StatusChanged.Reason == reason
	})
}

func TestNoExecutable(t *testing.T) {
	rules.Covers(t, "CX-12")
	for _, tc := range []struct {
		err  error
		code string
	}{{appserver.ErrMissing, codes.RuntimeMissing}, {appserver.ErrTooOld, codes.RuntimeTooOld}} {
		u := newUnit(t, func(o *Options) {
			o.Find = func(context.Context, string, []string) (appserver.Executable, string, error) {
				return appserver.Executable{}, "", tc.err
			}
			o.Start = func([]string, []string) (Process, error) {
				t.Error("something was started")
				return nil, tc.err
			}
		})
		u.t = t
		u.status(runtime.ConditionUnavailable, tc.code)
		if _, err := u.prepare(u.ref(""), "r1"); codes.Of(err) != tc.code {
			t.Errorf("prepare: %v", err)
		}
		s, err := u.a.Health(t.Context(), &runtime.HealthRequest{})
		if err != nil || s.Reason != tc.code {
			t.Errorf("health %+v, %v", s, err)
		}
	}
}

func TestLogin(t *testing.T) {
	u := newUnit(t)
	u.status(runtime.ConditionReady, "")
	u.on("account/read", func(json.RawMessage) golden.Answer {
		return golden.Answer{Result: object{"account": nil, "requiresOpenaiAuth": true}}
	})
	u.notify("account/updated", object{})
	u.status(runtime.ConditionDegraded, codes.RuntimeLoginRequired)
	if _, err := u.prepare(u.ref(""), "r1"); codes.Of(err) != codes.RuntimeLoginRequired {
		t.Errorf("a prompt without a sign-in: %v", err)
	}
	u.on("account/read", func(json.RawMessage) golden.Answer {
		return golden.Answer{Result: object{"account": nil, "requiresOpenaiAuth": false}}
	})
	age := time.Duration(0)
	s, err := u.a.Health(t.Context(), &runtime.HealthRequest{MaxAge: &age})
	if err != nil || s.Condition != runtime.ConditionReady {
		t.Errorf("%+v, %v", s, err)
	}
	u.on("config/read", func(json.RawMessage) golden.Answer { return fail(-32600, "failed to load configuration: /home/x") })
	if s, _ = u.a.Health(t.Context(), &runtime.HealthRequest{MaxAge: &age}); s.Reason != codeConfig {
		t.Errorf("%+v", s)
	}
	// Health still answers when the runtime does not.
	u.on("model/list", func(json.RawMessage) golden.Answer { return fail(-32603, "x") })
	if s, _ = u.a.Health(t.Context(), &runtime.HealthRequest{MaxAge: &age}); s.Reason != codes.RuntimeUnreachable {
		t.Errorf("%+v", s)
	}
}

// A sign-in at the computer is noticed; the file with the credentials is not read.
func TestSignInIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var signed atomic.Bool
		u := newUnit(t)
		u.on("account/read", func(json.RawMessage) golden.Answer {
			if signed.Load() {
				return golden.Answer{Result: object{"account": object{"type": "apiKey"}, "requiresOpenaiAuth": true}}
			}
			return golden.Answer{Result: object{"account": nil, "requiresOpenaiAuth": true}}
		})
		age := time.Duration(0)
		if _, err := u.a.connected(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		s, err := u.a.Health(t.Context(), &runtime.HealthRequest{MaxAge: &age})
		if err != nil || s.Reason != codes.RuntimeLoginRequired {
			t.Fatalf("%+v, %v", s, err)
		}
		signed.Store(true)
		later := time.Now().Add(time.Minute)
		path := filepath.Join(u.home, "auth.json")
		if err := os.WriteFile(path, []byte("not for us"), 0o000); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, later, later); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * loginPoll)
		synctest.Wait()
		if s := u.a.health.snapshot(); s.Condition != runtime.ConditionReady || u.count("initialize") != 2 {
			t.Errorf("%+v after %d children", s, u.count("initialize"))
		}
	})
}

// A child that dies while its reply is being stopped has done what was asked.
func TestChildDiesWhileStopping(t *testing.T) {
	u := newUnit(t)
	ref := u.begin("r1")
	u.on("thread/turns/list", func(json.RawMessage) golden.Answer {
		return golden.Answer{Result: object{"data": []object{{"id": "turn1", "status": "interrupted", "items": []object{}}}}}
	})
	if s, err := u.a.StopRun(t.Context(), &runtime.StopRunRequest{Session: ref, RunID: "r1"}); err != nil || s.Outcome != runtime.OutcomeDispatched {
		t.Fatalf("%+v, %v", s, err)
	}
	u.process.Kill()
	if end := u.sink.ended(t, "r1"); end.Reason != runtime.EndReasonCancelled {
		t.Errorf("end %+v", end)
	}
}

// A child that ends is started again, patiently; a run it had is told from the next one's records.
func TestChildComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnit(t)
		u.begin("r1")
		u.ask(0, "item/commandExecution/requestApproval", askOf("command", "x"))
		u.sink.opened(t, "r1")
		u.on("thread/turns/list", func(json.RawMessage) golden.Answer {
			return golden.Answer{Result: object{"data": []object{{"id": "turn1", "status": "interrupted", "items": []object{}}}}}
		})
		start := time.Now()
		u.process.Kill()
		u.status(runtime.ConditionUnavailable, codes.RuntimeUnreachable)
		closed := u.sink.wait(t, "closing", func(e runtime.Event) bool { return e.InteractionClosed != nil })
		if closed.InteractionClosed.Closure != runtime.ClosureExpired {
			t.Errorf("closed %+v", closed)
		}
		if end := u.sink.ended(t, "r1"); end.Code != codes.Interrupted {
			t.Errorf("end %+v", end)
		}
		if d := time.Since(start); d < firstRetry || d > time.Second {
			t.Errorf("back after %v", d)
		}
	})
}

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries []time.Time
		start := time.Now()
		newUnit(t, func(o *Options) {
			o.Start = func([]string, []string) (Process, error) {
				tries = append(tries, time.Now())
				return nil, context.DeadlineExceeded
			}
		})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := len(tries); n < 7 || n > 9 {
			t.Errorf("%d starts in two minutes: %v", n, tries)
		}
		if d := tries[1].Sub(start); d != firstRetry {
			t.Errorf("first retry after %v", d)
		}
	})
}

// Of this process' environment only what is named reaches Codex.
func TestEnvironment(t *testing.T) {
	rules.Covers(t, "FAULT-13")
	for name, kept := range map[string]bool{
		"CODEX_HOME": true, "OPENAI_API_KEY": true, "HTTPS_PROXY": true, "LC_ALL": true, "PATH": true,
		"PLANTED_SECRET": false, "AWS_SECRET_ACCESS_KEY": false, "OPENPHONE_PLUGIN": false, "PLUGIN_CLIENT_CERT": false,
		"OPENPHONE_KILL_FILE": false, "CODEX": false, "PATHS": false,
	} {
		t.Setenv(name, "x")
		found := slices.Contains(environ(), name+"=x")
		if found != kept {
			t.Errorf("%s reaches Codex: %v", name, found)
		}
	}
}
