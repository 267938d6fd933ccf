package runtimes

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// TestBadPlugins: each plugin that cannot be understood has its code, and nothing it wrote is in it.
func TestBadPlugins(t *testing.T) {
	for _, c := range []struct {
		name   string
		v      variant
		state  State
		code   string
		detail string
	}{
		{"garbage on standard output", variant{"start": "garbage"}, Waiting, codes.PluginStartFailed, ""},
		{"an endless first line", variant{"start": "long"}, Waiting, codes.PluginStartFailed, ""},
		{"ends at once", variant{"start": "exit"}, Waiting, codes.PluginStartFailed, ""},
		{"another major version", variant{"start": "version"}, Refused, codes.PluginIncompatible, ""},
		{"for another runtime", variant{"id": "other"}, Refused, codes.PluginIncompatible, `the executable is for "other"`},
		{"no semantic version", variant{"version": "latest"}, Refused, codes.PluginIncompatible, "it has no name or no semantic version"},
		{"needs an unknown feature", variant{"needs": []string{"state", "teleport"}}, Refused, codes.PluginIncompatible, `it needs the host feature "teleport"`},
		{"describes nothing", variant{"empty": true}, Refused, codes.PluginIncompatible, "it describes nothing"},
		{"describes itself with an error", variant{"fail": []string{"Describe"}}, Waiting, codes.PluginStartFailed, ""},
		{"never describes itself", variant{"hang": []string{"Describe"}}, Waiting, codes.PluginStartFailed, ""},
		{"cannot be configured", variant{"fail": []string{"Configure"}}, Waiting, codes.Internal, ""},
		{"has no health", variant{"fail": []string{"Health"}}, Waiting, codes.Internal, ""},
		{"never says how it is", variant{"hang": []string{"Health"}}, Waiting, codes.DeadlineExceeded, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.v, nil)
			s := r.wait(c.code, func() bool { s := r.inst().Snapshot(); return s.State == c.state || s.State == Paused })
			if s.Reason != c.code && s.Reason != codes.PluginBreakerOpen {
				t.Errorf("code %s, want %s", s.Reason, c.code)
			}
			if c.detail != "" && s.Detail != c.detail {
				t.Errorf("detail %q, want %q", s.Detail, c.detail)
			}
			if st := r.inst().Status(); st.Condition != runtime.ConditionUnavailable || strings.Contains(codes.Lookup(st.Reason).Message, "SECRET") {
				t.Errorf("status %+v", st)
			}
			_, err := r.inst().PrepareRun(context.Background(), &runtime.PrepareRunRequest{RunID: "r"})
			if e := codes.As(err); e == nil || e.Outcome != codes.NotDispatched || strings.Contains(err.Error(), "SECRET") {
				t.Errorf("a send is refused with %v", err)
			}
		})
	}
}

// TestOneByteChanged: an executable that is not the trusted one is not even started, and can be trusted again.
func TestOneByteChanged(t *testing.T) {
	r := newRig(t, nil, nil)
	r.until(Ready)
	path, _ := r.executable("test")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(path, b, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	code(t, r.inst().Restart(ctx), codes.PluginChanged)
	if s := r.inst().Snapshot(); s.State != Refused || s.PID != 0 {
		t.Errorf("%+v", s)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(path, b, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := r.inst().Restart(ctx); err != nil {
		t.Fatal(err)
	}
	install(t, r.dir, "test", variant{"version": "2.0.0"})
	d, err := r.inst().Trust(ctx)
	if err != nil || d.PluginVersion != "2.0.0" {
		t.Fatalf("%+v, %v", d, err)
	}
	if err := r.inst().Restart(ctx); err != nil || r.inst().Status().NativeVersion != "2.0.0" {
		t.Errorf("%v, %+v", err, r.inst().Status())
	}
}

// TestExecutableGone: a plugin that was removed is refused, and its return is seen when a person asks.
func TestExecutableGone(t *testing.T) {
	r := newRig(t, nil, nil)
	r.until(Ready)
	path, _ := r.executable("test")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	code(t, r.inst().Restart(context.Background()), codes.PluginStartFailed)
	if s := r.until(Refused); s.Detail != errGone.Error() {
		t.Errorf("%+v", s)
	}
	if err := os.WriteFile(path, b, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := r.inst().Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// TestHangInConfigure: a new version that never takes its settings ends with the patience of whoever waits.
func TestHangInConfigure(t *testing.T) {
	r := newRig(t, variant{"side_by_side": true}, nil)
	r.until(Ready)
	install(t, r.dir, "test", variant{"version": "2.0.0", "side_by_side": true, "hang": []string{"Configure"}})
	if _, err := r.inst().Trust(context.Background()); err != nil { // so that only Configure is left to wait for
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	code(t, r.inst().Upgrade(ctx), codes.DeadlineExceeded)
	if s := r.until(Ready); s.Generation != 1 || s.PluginVersion != "1.0.0" {
		t.Errorf("%+v", s)
	}
}

// TestHangInShutdown: a plugin that does not end when asked is killed.
func TestHangInShutdown(t *testing.T) {
	t.Parallel()
	r := newRig(t, variant{"hang": []string{"Shutdown"}}, nil)
	r.until(Ready)
	time.AfterFunc(200*time.Millisecond, r.Hurry)
	began := time.Now()
	r.stop()
	if took := time.Since(began); took > classIO {
		t.Errorf("the end took %v", took)
	}
	if !r.rec.has("down 1 restarting") {
		t.Errorf("observer saw %v", r.rec.lines)
	}
}

// TestEnvironment: only what the description names, the user adds and every program needs reaches a plugin; nothing at
// all reaches it before it was admitted.
func TestEnvironment(t *testing.T) {
	rules.Covers(t, "FAULT-13")
	host := []string{
		"PATH=/bin:/usr/bin", "HOME=/home/x", "TEST_TOKEN=named", "TESTING=not named", "OTHER_KEY=named", "SECRET_PLANTED=1",
		"OPENPHONE_HOME=/x", "CLAUDECODE=1", "AWS_SECRET_ACCESS_KEY=1", "PASSED_ON=yes",
	}
	r := newRig(t, variant{"environ": []string{"TEST_*", "OTHER_KEY", "CLAUDECODE", "OPENPHONE_*", "*"}}, func(o *Options) {
		o.Environ = func() []string { return host }
	})
	r.mu.Lock()
	r.set.Environment = map[string]string{"ADDED": "by the user", "PASSED_ON": ""}
	r.mu.Unlock()
	r.until(Ready)
	if err := r.inst().Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	out := r.tell("environ")
	for _, want := range []string{"PATH=/bin:/usr/bin", "HOME=/home/x", "TEST_TOKEN=named", "OTHER_KEY=named", "ADDED=by the user", "PASSED_ON=yes"} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is missing in %s", want, out)
		}
	}
	for _, planted := range []string{"TESTING", "SECRET_PLANTED", "OPENPHONE_HOME", "CLAUDECODE", "AWS_SECRET"} {
		if strings.Contains(out, planted) {
			t.Errorf("%s reached the plugin", planted)
		}
	}
	want := []string{"ADDED", "HOME", "OTHER_KEY", "PASSED_ON", "PATH", "TEST_TOKEN"}
	if diff := cmp.Diff(want, r.inst().Snapshot().EnvironmentSet); diff != "" {
		t.Errorf("shown (-want +got)\n%s", diff)
	}
}

func TestSplitConfig(t *testing.T) {
	schema := []byte(`{"type":"object","additionalProperties":false,"properties":{"path":{"type":"string"},"key":{"type":"string","writeOnly":true},"n":{"type":"integer"}}}`)
	for _, c := range []struct {
		name, config, want string
		schema             []byte
		secrets            map[string]string
		fails              bool
	}{
		{"nothing", "", "{}", schema, nil, false},
		{"secrets travel apart", `{"path":"/x","key":"k"}`, `{"path":"/x"}`, schema, map[string]string{"key": "k"}, false},
		{"unknown setting", `{"pth":"/x"}`, "", schema, nil, true},
		{"wrong kind", `{"n":"x"}`, "", schema, nil, true},
		{"not a table", `[]`, "", schema, nil, true},
		{"no schema, no settings", "", "{}", nil, nil, false},
		{"no schema, but settings", `{"a":1}`, "", nil, nil, true},
		{"a schema that is none", `{"a":1}`, "", []byte(`{"type":7}`), nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, secrets, err := splitConfig(c.schema, []byte(c.config))
			if (err != nil) != c.fails {
				t.Fatalf("error %v", err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(c.secrets, secrets); diff != "" {
				t.Errorf("secrets (-want +got)\n%s", diff)
			}
		})
	}
}

// TestConfigure: what a person set arrives, and what is wrong is refused before the plugin sees it.
func TestConfigure(t *testing.T) {
	r := newRig(t, variant{"schema": `{"type":"object","properties":{"key":{"type":"string","writeOnly":true}},"additionalProperties":false}`}, nil)
	r.until(Ready)
	r.mu.Lock()
	r.set.Config, r.set.ProjectPath = []byte(`{"key":"hush"}`), "/project"
	r.mu.Unlock()
	ctx := context.Background()
	if err := r.inst().Reload(ctx); err != nil {
		t.Fatal(err)
	}
	if g := r.inst().Generation(); g != 1 {
		t.Errorf("settings alone need no new process, but there is number %d", g)
	}
	out := r.tell("config")
	for _, want := range []string{`"config":"{}"`, `"secrets":{"key":"hush"}`, `"project":"/project"`, `"features":["state","attention"]`, r.data + "/plugins/test"} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is missing in %s", want, out)
		}
	}
	if strings.Contains(r.logs.String(), "hush") {
		t.Error("a secret is in the log")
	}
	r.mu.Lock()
	r.set.Config = []byte(`{"kee":"x"}`)
	r.mu.Unlock()
	code(t, r.inst().Reload(ctx), codes.ConfigInvalid)
	if s, _ := r.inst().State(); s != Ready {
		t.Errorf("wrong settings ended the process: %s", s)
	}
	r.mu.Lock()
	r.set.Enabled = false
	r.mu.Unlock()
	if err := r.inst().Reload(ctx); err != nil {
		t.Fatal(err)
	}
	r.until(Disabled)
	code(t, r.inst().Restart(ctx), codes.RuntimeUnavailable)
	r.mu.Lock()
	r.set.Enabled, r.set.Config = true, nil
	r.mu.Unlock()
	if err := r.inst().Reload(ctx); err != nil {
		t.Fatal(err)
	}
	r.until(Ready)
}

// TestDescribedOnce: an executable that was seen before is not started again just to be asked.
func TestDescribedOnce(t *testing.T) {
	r := newRig(t, nil, nil)
	r.until(Ready)
	if n := strings.Count(r.logs.String(), "plugin described itself"); n != 1 {
		t.Errorf("described %d times", n)
	}
	if err := r.inst().Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(r.logs.String(), "plugin described itself"); n != 1 {
		t.Errorf("described %d times after a restart", n)
	}
}
