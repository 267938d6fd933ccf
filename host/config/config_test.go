package config

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func none(string) string { return "" }

func env(kv map[string]string) func(string) string { return func(k string) string { return kv[k] } }

func put(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), FileName)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const whole = `version = 1

[listen]
address = "0.0.0.0:7421"

[runtimes.codex]
enabled = true
autonomy = "observe_only"
environment = { HTTPS_PROXY = "", X = "secret" }

[runtimes.codex.settings]
path = "/usr/bin/codex"
`

func TestWhole(t *testing.T) {
	f, err := Open(put(t, whole), none)
	if err != nil {
		t.Fatal(err)
	}
	r := f.Current().Runtime("codex")
	b, err := r.JSON()
	if err != nil || string(b) != `{"path":"/usr/bin/codex"}` || !*r.Enabled || r.Ceiling() != runtime.AutonomyObserveOnly {
		t.Errorf("%s %v %+v", b, err, r)
	}
	if x := f.Current().Runtime("demo"); x.Enabled != nil || x.Ceiling() != runtime.AutonomyAskBeforeAction || x.LogLevel != "info" {
		t.Errorf("defaults: %+v", x)
	}
}

func TestMissingFileIsEmpty(t *testing.T) {
	f, err := Open(filepath.Join(t.TempDir(), FileName), none)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), f.Current()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestErrorsSayWhere(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		env              map[string]string
	}{
		{"not TOML", "version = 1\n[listen\n", "line 2, column 8: expected ']' to close table name", nil},
		{"unknown key", "version = 1\n\n[listen]\nadress = \"x\"\n", "line 4, column 1: unknown key listen.adress", nil},
		{"unknown table", "[lissen]\n", "line 1, column 2: unknown key lissen", nil},
		{"wrong kind", "[log]\nlevel = 3\n", "", nil},
		{"wrong value", "[log]\n  level = \"loud\"\n", "line 2, column 3: log.level must be debug, info, warn or error", nil},
		{"no port", "listen.address = \"localhost\"\n", "line 1, column 1: listen.address must be an address and a port, such as 127.0.0.1:0", nil},
		{"port too large", "listen.address = \"localhost:70000\"\n", "line 1, column 1: listen.address must end with a port from 0 to 65535", nil},
		{"relative directory", "plugins.dirs = [\"x\"]\n", "line 1, column 1: plugins.dirs must be absolute paths", nil},
		{"autonomy", "[runtimes.codex]\nautonomy = \"yolo\"\n", "line 2, column 1: runtimes.codex.autonomy must be observe_only, ask_before_action or trusted_actions", nil},
		{"instance", "[runtimes.\"../x\"]\nenabled = true\n", "line 1, column 2: runtimes.../x must be an id of lower case letters, digits, dots and dashes", nil},
		{"variable", "[runtimes.a.environment]\n\"A B\" = \"\"\n", "line 2, column 1: runtimes.a.environment.A B must be the name of a variable", nil},
		{"newer", "version = 9\n", "line 1, column 1: version 9 is newer than this program", nil},
		{"override", "", "OPENPHONE_LOG_LEVEL must be debug, info, warn or error", map[string]string{"OPENPHONE_LOG_LEVEL": "x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Open(put(t, c.text), env(c.env))
			e := codes.As(err)
			if e == nil || e.Code != codes.ConfigInvalid {
				t.Fatalf("%v", err)
			}
			if c.want == "" {
				if e.Params["where"][:7] != "line 2," {
					t.Errorf("%q", e.Params["where"])
				}
				return
			}
			if diff := cmp.Diff(c.want, e.Params["where"]); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestEffective(t *testing.T) {
	f, err := Open(put(t, whole), env(map[string]string{"OPENPHONE_LOG_LEVEL": "debug"}))
	if err != nil {
		t.Fatal(err)
	}
	want := []Setting{
		{"listen.address", "'0.0.0.0:7421'", "file:4", false},
		{"log.format", "'text'", "default", false},
		{"log.level", "'debug'", "env:OPENPHONE_LOG_LEVEL", true},
		{"plugins.dirs", "[]", "default", false},
		{"runtimes.codex.autonomy", "'observe_only'", "file:8", true},
		{"runtimes.codex.enabled", "true", "file:7", true},
		{"runtimes.codex.environment.HTTPS_PROXY", `"(set)"`, "file:9", true},
		{"runtimes.codex.environment.X", `"(set)"`, "file:9", true},
		{"runtimes.codex.settings.path", `"(set)"`, "file:12", true},
		{"version", "1", "file:1", false},
	}
	if diff := cmp.Diff(want, f.Effective()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestReload(t *testing.T) {
	path := put(t, whole)
	f, err := Open(path, none)
	if err != nil {
		t.Fatal(err)
	}
	var applied []string
	refuse := false
	f.Follow(Part{
		Verify: func(*Config) error {
			if refuse {
				return codes.New(codes.ConfigInvalid, "where", "not today")
			}
			return nil
		},
		Apply: func(old, next *Config) { applied = append(applied, old.Log.Level+">"+next.Log.Level) },
	})
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := f.Current()
	write("log.level = \"loud\"\n")
	if _, _, err := f.Reload(); codes.Of(err) != codes.ConfigInvalid || f.Current() != before || len(applied) != 0 {
		t.Errorf("a wrong file: %v, changed %v, applied %v", err, f.Current() != before, applied)
	}
	write("log.level = \"warn\"\nlisten.address = \"127.0.0.1:1\"\n")
	refuse = true
	if _, _, err := f.Reload(); err == nil || f.Current() != before || len(applied) != 0 {
		t.Errorf("a refused file: %v, applied %v", err, applied)
	}
	refuse = false
	now, later, err := f.Reload()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"log.level", "runtimes.codex.autonomy", "runtimes.codex.enabled", "runtimes.codex.environment.HTTPS_PROXY",
		"runtimes.codex.environment.X", "runtimes.codex.settings.path",
	}, now); diff != "" {
		t.Errorf("live (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"listen.address"}, later); diff != "" {
		t.Errorf("restart (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"info>warn"}, applied); diff != "" {
		t.Errorf("applied (-want +got)\n%s", diff)
	}
}

// TestMigration: the old file stays beside the new one.
func TestMigration(t *testing.T) {
	path := put(t, "version = 0\nport = 7\n")
	list := []migration{{from: 0, migrate: func(m map[string]any) {
		m["listen"] = map[string]any{"address": "127.0.0.1:7"}
		delete(m, "port")
	}}}
	f, err := open(path, none, list)
	if err != nil {
		t.Fatal(err)
	}
	if f.Current().Listen.Address != "127.0.0.1:7" {
		t.Errorf("%+v", f.Current())
	}
	old, err := os.ReadFile(path + ".v0")
	if err != nil || string(old) != "version = 0\nport = 7\n" {
		t.Errorf("%q, %v", old, err)
	}
	if again, err := open(path, none, list); err != nil || again.Current().Listen.Address != "127.0.0.1:7" {
		t.Errorf("read again: %v", err)
	}
}

// TestSecrets: they reach the plugin and nobody else, and only from a private file.
func TestSecrets(t *testing.T) {
	path := put(t, whole)
	secrets := filepath.Join(filepath.Dir(path), secretsName)
	write := func(text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(secrets, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(secrets, mode); err != nil {
			t.Fatal(err)
		}
	}
	write("[codex]\nkey = \"PLANTED\"\n[pi]\nkey = \"x\"\n", 0o600)
	f, err := Open(path, none)
	if err != nil {
		t.Fatal(err)
	}
	b, err := f.Current().Runtime("codex").JSON()
	if err != nil || string(b) != `{"key":"PLANTED","path":"/usr/bin/codex"}` {
		t.Errorf("%s, %v", b, err)
	}
	if b, _ := f.Current().Runtime("pi").JSON(); string(b) != `{"key":"x"}` {
		t.Errorf("%s", b)
	}
	found := false
	for _, s := range f.Effective() {
		found = found || s == Setting{"runtimes.codex.settings.key", `"(set)"`, secretsName, true}
		if strings.Contains(s.Value, "PLANTED") {
			t.Errorf("shown: %+v", s)
		}
	}
	if !found {
		t.Errorf("not listed: %+v", f.Effective())
	}
	write("[codex]\nkey = \"OTHER\"\n", 0o600)
	applied, _, err := f.Reload()
	if diff := cmp.Diff([]string{"runtimes.codex.settings.key", "runtimes.pi.settings.key"}, applied); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	for _, c := range []struct{ name, text, want string }{
		{"not TOML", "[codex\nPLANTED", "secrets.toml is not valid at line 1, column 7"},
		{"not text", "[codex]\nPLANTED = 7\n", "secrets.toml is not valid at line 2, column 11"},
		{"no runtime", "[\"../x\"]\na = \"b\"\n", "secrets.toml has a table that is no runtime"},
	} {
		write(c.text, 0o600)
		_, _, err := f.Reload()
		if e := codes.As(err); e == nil || e.Params["where"] != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	write("", 0o644)
	if _, _, err := f.Reload(); goruntime.GOOS != "windows" && codes.Of(err) != codes.ConfigInvalid {
		t.Errorf("a file others can read: %v", err)
	}
}
