package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/plugins/codex/appserver"
)

const (
	sampleThread = "01a22e22-4b11-7010-8fab-325c877a5b69"
	sampleCwd    = "/home/user/project"
)

func sampleOf(path string) appserver.Thread {
	return appserver.Thread{ID: sampleThread, Cwd: sampleCwd, ModelProvider: "fake", Path: appserver.String(path)}
}

// rolloutFile puts a file where Codex would put it.
func rolloutFile(t *testing.T, content string) (home, path string) {
	t.Helper()
	home = t.TempDir()
	dir := filepath.Join(home, "sessions", "2026", "11", "30")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "rollout-2026-11-30T20-25-29-"+sampleThread+".jsonl")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return home, path
}

func sample(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile("../testdata/rollout-sample.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return strings.SplitAfter(strings.TrimSuffix(string(b), "\n"), "\n")
}

func TestRolloutSample(t *testing.T) {
	rules.Covers(t, "CX-11")
	lines := sample(t)
	home, path := rolloutFile(t, strings.Join(lines, ""))
	got, found := readRollout(home, sampleOf(path))
	want := savedSettings{Grant: grant{Profile: ":workspace", Policy: `"never"`, Reviewer: "user"}, ServiceTier: "priority", Model: "gpt-5.5"}
	if diff := cmp.Diff(want, got); diff != "" || found != settingsFound {
		t.Errorf("evidence %v (-want +got):\n%s", found, diff)
	}
	got, found = settingsIn([]byte(strings.Join(lines[:7], "")), true, sampleOf(path))
	if found != settingsFound || got.ServiceTier != "" {
		t.Errorf("missing service_tier is null: %v %+v", found, got)
	}
	got, found = settingsIn([]byte(strings.ReplaceAll(strings.Join(lines, ""), `"active_permission_profile":{"id":":workspace"},`, "")), true, sampleOf(path))
	if found != settingsFound || got.Grant.Profile != ":workspace" {
		t.Errorf("anonymous policy with .aws: %v %+v", found, got)
	}
}

func TestRolloutWithoutAnEvent(t *testing.T) {
	rules.Covers(t, "CX-26")
	var lines []string
	for _, l := range sample(t) {
		if !strings.Contains(l, "thread_settings_applied") {
			lines = append(lines, l)
		}
	}
	text := strings.Join(lines, "")
	for _, tt := range []struct {
		name  string
		text  string
		whole bool
		want  evidence
	}{
		{"the whole file has none", text, true, settingsAbsent},
		{"only the end was read", text, false, settingsUnknown},
		{"the file is not said to be this thread's", strings.Join(lines[1:], ""), true, settingsUnknown},
		{"another provider's", strings.Replace(text, `"model_provider":"fake"`, `"model_provider":"openai"`, 1), true, settingsUnknown},
		{"a line that is no JSON", text + "{", true, settingsUnknown},
		{"nothing", "", true, settingsUnknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, got := settingsIn([]byte(tt.text), tt.whole, sampleOf("")); got != tt.want {
				t.Errorf("evidence = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestRolloutDoubts(t *testing.T) {
	rules.Covers(t, "CX-11")
	text := strings.Join(sample(t), "")
	for _, tt := range []struct {
		name string
		make func(t *testing.T) (home string, thread appserver.Thread)
	}{
		{"foreign directory", func(t *testing.T) (string, appserver.Thread) {
			home, path := rolloutFile(t, text)
			th := sampleOf(path)
			th.Cwd = "/home/user/other"
			return home, th
		}},
		{"foreign provider", func(t *testing.T) (string, appserver.Thread) {
			home, path := rolloutFile(t, text)
			th := sampleOf(path)
			th.ModelProvider = "openai"
			return home, th
		}},
		{"another thread's name", func(t *testing.T) (string, appserver.Thread) {
			home, path := rolloutFile(t, text)
			th := sampleOf(path)
			th.ID = "01a22e22-0000-7010-8fab-325c877a5b69"
			return home, th
		}},
		{"symbolic link", func(t *testing.T) (string, appserver.Thread) {
			home, path := rolloutFile(t, text)
			link := filepath.Join(home, "sessions", "x-"+sampleThread+".jsonl")
			if err := os.Symlink(path, link); err != nil {
				t.Fatal(err)
			}
			return home, sampleOf(link)
		}},
		{"two names", func(t *testing.T) (string, appserver.Thread) {
			home, path := rolloutFile(t, text)
			if err := os.Link(path, path+".2"); err != nil {
				t.Fatal(err)
			}
			return home, sampleOf(path)
		}},
		{"outside of the folder", func(t *testing.T) (string, appserver.Thread) {
			home, path := rolloutFile(t, text)
			outside := filepath.Join(home, filepath.Base(path))
			if err := os.Rename(path, outside); err != nil {
				t.Fatal(err)
			}
			return home, sampleOf(outside)
		}},
		{"relative path", func(t *testing.T) (string, appserver.Thread) {
			home, path := rolloutFile(t, text)
			return home, sampleOf(filepath.Base(path))
		}},
		{"empty", func(t *testing.T) (string, appserver.Thread) {
			home, path := rolloutFile(t, "")
			return home, sampleOf(path)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home, th := tt.make(t)
			if got, found := readRollout(home, th); found != settingsUnknown || got != (savedSettings{}) {
				t.Errorf("evidence %v, %+v", found, got)
			}
		})
	}
}

func TestRolloutTailDropsHalfALine(t *testing.T) {
	lines := sample(t)
	padding := `{"type":"x","payload":"` + strings.Repeat("y", maxRollout) + `"}` + "\n"
	home, path := rolloutFile(t, lines[0]+padding+lines[len(lines)-1])
	got, found := readRollout(home, sampleOf(path))
	if found != settingsFound || got.ServiceTier != "priority" {
		t.Errorf("evidence %v, %+v", found, got)
	}
}

func TestStandardProfiles(t *testing.T) {
	rules.Covers(t, "CX-11")
	entry := func(kind, access string) string {
		return `{"path":{"type":"special","value":{"kind":"` + kind + `"}},"access":"` + access + `"}`
	}
	path := func(p, access, more string) string {
		return `{"path":{"type":"path","path":"` + p + `"},"access":"` + access + `"` + more + `}`
	}
	skip := `,"missing_path_behavior":"skip"`
	managed := func(entries ...string) string {
		return `{"type":"managed","network":"restricted","file_system":{"type":"restricted","entries":[` + strings.Join(entries, ",") + `]}}`
	}
	workspace := []string{
		entry("root", "read"), path("/p", "write", ""), entry("slash_tmp", "write"), entry("tmpdir", "write"),
		path("/p/.git", "read", skip), path("/p/.agents", "read", skip), path("/p/.codex", "read", skip),
	}
	for _, tt := range []struct{ name, profile, want string }{
		{"full access", `{"type":"disabled"}`, ":danger-full-access"},
		{"full access with more", `{"type":"disabled","more":1}`, ""},
		{"read only", managed(entry("root", "read")), ":read-only"},
		{"root writable", managed(entry("root", "write")), ""},
		{"workspace", managed(workspace...), ":workspace"},
		{"workspace with .aws", managed(append(workspace, path("/p/.aws", "read", skip))...), ":workspace"},
		{"another folder protected", managed(append(workspace, path("/p/.other", "read", skip))...), ""},
		{"another folder writable", managed(append(workspace, path("/q", "write", ""))...), ""},
		{"a folder not protected", managed(workspace[:6]...), ""},
		{"network", strings.Replace(managed(workspace...), `"network":"restricted"`, `"network":"enabled"`, 1), ""},
		{"nothing", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := standardProfile(json.RawMessage(tt.profile), "/p"); got != tt.want {
				t.Errorf("profile = %q, want %q", got, tt.want)
			}
		})
	}
}
