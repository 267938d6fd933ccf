package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/golden"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// fakeComputer is what the profile is about: a configuration, skills and an account.
type fakeComputer struct {
	dir      string
	provider string
	config   map[string]any
	version  int
	skills   []map[string]any
	lieAbout string // a method that answers success and does nothing
	writes   int
	limits   golden.Answer
	use      golden.Answer
}

func (f *fakeComputer) serve(t *testing.T) handler {
	return func(method string, raw json.RawMessage) golden.Answer {
		switch method {
		case "thread/list":
			return ok(map[string]any{"data": []any{threadRow("a", f.dir)}})
		case "model/list":
			return ok(map[string]any{"data": []any{
				map[string]any{"id": "m1", "model": "m1", "displayName": "One", "isDefault": true, "defaultReasoningEffort": "low", "supportedReasoningEfforts": []any{map[string]any{"reasoningEffort": "low"}, map[string]any{"reasoningEffort": "high"}}},
				map[string]any{"id": "m2", "model": "m2", "displayName": "Two"},
			}})
		case "config/read":
			return ok(map[string]any{"config": map[string]any{"model_provider": f.provider}, "layers": []any{
				map[string]any{"name": map[string]any{"type": "system"}, "version": "s", "config": map[string]any{}},
				map[string]any{"name": map[string]any{"type": "user"}, "version": fmt.Sprint("v", f.version), "config": f.config},
			}})
		case "config/batchWrite":
			return f.write(t, raw)
		case "skills/list":
			return ok(map[string]any{"data": []any{map[string]any{"cwd": f.dir, "skills": f.skills, "errors": []any{1, 2}}}})
		case "skills/config/write":
			p := params[struct {
				Path    string
				Enabled bool
			}](t, raw)
			f.writes++
			for _, s := range f.skills {
				if s["path"] == p.Path && f.lieAbout != method {
					s["enabled"] = p.Enabled
				}
			}
			return ok(map[string]any{"effectiveEnabled": p.Enabled})
		case "account/read":
			return ok(map[string]any{"account": map[string]any{"type": "chatgpt", "planType": "plus", "email": "person@example.com"}})
		case "account/rateLimits/read":
			return f.limits
		case "account/usage/read":
			return f.use
		case "mcpServerStatus/list":
			return ok(map[string]any{"data": []any{
				map[string]any{"name": "phone", "authStatus": "bearerToken", "httpOrigin": "http://secret", "tools": map[string]any{"tap": map[string]any{"name": "tap", "description": "Taps.", "inputSchema": map[string]any{"x": 1}}}},
				map[string]any{"name": "broken", "authStatus": "odd", "tools": map[string]any{}, "toolsError": "secret path"},
			}})
		case "plugin/installed":
			return ok(map[string]any{"marketplaces": []any{map[string]any{"name": "m", "path": "/secret", "plugins": []any{
				map[string]any{"id": "p@m", "name": "p", "installed": true, "enabled": true, "interface": map[string]any{"shortDescription": "d"}},
				map[string]any{"id": "q@m", "name": "q", "installed": false},
			}}}})
		}
		t.Errorf("unexpected %s: the profile starts nothing and calls no model", method)
		return fail(-32600, "unexpected")
	}
}

func (f *fakeComputer) write(t *testing.T, raw json.RawMessage) golden.Answer {
	p := params[struct {
		Edits []struct {
			KeyPath string
			Value   any
		}
		ExpectedVersion  string
		ReloadUserConfig *bool
	}](t, raw)
	f.writes++
	if p.ReloadUserConfig == nil || *p.ReloadUserConfig {
		t.Error("a hot reload was asked for")
	}
	if p.ExpectedVersion != fmt.Sprint("v", f.version) {
		return golden.Answer{Code: -32600, Message: "Configuration was modified since last read."}
	}
	if f.lieAbout == "config/batchWrite" {
		return ok(map[string]any{"status": "ok"})
	}
	f.version++
	for _, e := range p.Edits {
		if e.Value == nil {
			delete(f.config, e.KeyPath)
		} else {
			f.config[e.KeyPath] = e.Value
		}
	}
	return ok(map[string]any{"status": "ok"})
}

func newComputer(t *testing.T) (*fakeComputer, *profile) {
	t.Helper()
	dir := t.TempDir()
	f := &fakeComputer{dir: dir, provider: "openai", config: map[string]any{"model": "m1", "other": map[string]any{"n": 1}}, skills: []map[string]any{
		{"name": "mine", "description": "d", "path": filepath.Join(dir, "mine", "SKILL.md"), "scope": "user", "enabled": true},
		{"name": "sys", "path": "/system/SKILL.md", "scope": "system", "enabled": true},
	}}
	f.limits, f.use = fail(-32600, "codex account authentication required to read rate limits"), fail(-32600, "codex account authentication required")
	home := t.TempDir()
	l, _, _ := fakeLibrary(t, f.serve(t), home, "")
	return f, newProfile(l)
}

// callProfile calls a method and reads its result into a T.
func callProfile[T any](t *testing.T, p *profile, method string, in any) (T, error) {
	t.Helper()
	var out T
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Call(t.Context(), &runtime.CallRequest{Method: profilePrefix + method, Params: runtime.JSON(b)})
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(r.Result.Data, &out); err != nil {
		t.Fatalf("%s answers %s: %v", method, r.Result.Data, err)
	}
	return out, nil
}

type obj = map[string]any

func TestProfileMethodsAreAnAllowlist(t *testing.T) {
	rules.Covers(t, "CX-21", "CX-01")
	_, p := newComputer(t)
	methods := profileMethods()
	if len(methods) != 11 {
		t.Errorf("%d methods, want 11", len(methods))
	}
	for _, m := range methods {
		if !json.Valid(m.ParamsSchema.Data) || !json.Valid(m.ResultSchema.Data) || m.Description == "" {
			t.Errorf("%s: schema or description", m.Name)
		}
		if writes := strings.HasSuffix(m.Name, ".set"); writes != (m.Lane == profileLane) || writes == m.Idempotent {
			t.Errorf("%s: lane %q, idempotent %v", m.Name, m.Lane, m.Idempotent)
		}
	}
	for _, name := range []string{"config/read", "profile.defaults", profilePrefix + "thread/start", profilePrefix} {
		if _, err := p.Call(t.Context(), &runtime.CallRequest{Method: name}); codes.Of(err) != codes.MethodUnknown {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := callProfile[any](t, p, "defaults", obj{"cwd": "/x"}); codes.Of(err) != codes.ParametersInvalid {
		t.Errorf("an unknown parameter: %v", err)
	}
}

func TestProfileDefaults(t *testing.T) {
	rules.Covers(t, "CX-21")
	f, p := newComputer(t)
	d, err := callProfile[defaultsResult](t, p, "defaults", nil)
	if err != nil || d.Model == nil || *d.Model != "m1" || d.Thinking != nil || !d.Editable {
		t.Fatalf("defaults = %+v, %v", d, err)
	}
	want := []defaultModel{{ID: "m1", Name: "One", IsDefault: true, Levels: []string{"low", "high"}, DefaultLevel: "low"}, {ID: "m2", Name: "Two", Levels: []string{}}}
	if diff := cmp.Diff(want, d.Models); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
	set := func(model, thinking any, version string) (defaultsResult, error) {
		return callProfile[defaultsResult](t, p, "defaults.set", obj{"model": model, "thinking": thinking, "version": version})
	}
	read := func() string {
		d, err := callProfile[defaultsResult](t, p, "defaults", nil)
		if err != nil {
			t.Fatal(err)
		}
		return d.Version
	}
	after, err := set("m2", nil, d.Version)
	if err != nil || after.Model == nil || *after.Model != "m2" {
		t.Errorf("after a change: %+v, %v", after, err)
	}
	if diff := cmp.Diff(map[string]any{"model": "m2", "other": map[string]any{"n": 1}}, f.config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		name            string
		model, thinking any
		version         func() string
		before          func()
		want            string
	}{
		{"a version used before", "m1", nil, func() string { return d.Version }, nil, codes.VersionConflict},
		{"a version nobody made", "m1", nil, func() string { return "x" }, nil, codes.VersionConflict},
		{"changed meanwhile", "m1", nil, read, func() { f.config["other"] = 2; f.version++ }, codes.VersionConflict},
		{"changed without a new version", "m1", nil, read, func() { f.config["other"] = 3 }, codes.VersionConflict},
		{"a model that is not listed", "m9", nil, read, nil, codes.ModelMissing},
		{"a level the model has not", "m2", "high", read, nil, codes.OptionInvalid},
		{"another provider", "m1", nil, read, func() { f.provider = "fake" }, codes.SettingsUnsupported},
		{"a write that is not there afterwards", "m1", "high", read, func() { f.provider, f.lieAbout = "openai", "config/batchWrite" }, codes.NotConfirmed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			version, writes := tt.version(), f.writes
			if tt.before != nil {
				tt.before()
			}
			if _, err := set(tt.model, tt.thinking, version); codes.Of(err) != tt.want {
				t.Errorf("err = %v, want %s", err, tt.want)
			}
			if n := f.writes - writes; n > 1 {
				t.Errorf("%d writes", n)
			}
		})
	}
	f.lieAbout = ""
	if after, err := set(nil, "high", read()); err != nil || after.Model != nil || after.Thinking == nil {
		t.Errorf("back to the default model: %+v, %v", after, err)
	}
}

func TestProfileSkills(t *testing.T) {
	rules.Covers(t, "CX-21", "CX-19")
	f, p := newComputer(t)
	projects, err := callProfile[[]projectRow](t, p, "projects", nil)
	if err != nil || len(projects) != 1 || !projects[0].Available || len(projects[0].ID) != 32 {
		t.Fatalf("projects = %+v, %v", projects, err)
	}
	in := obj{"projectId": projects[0].ID}
	r, err := callProfile[skillsResult](t, p, "skills", in)
	if err != nil || len(r.Skills) != 2 || r.ErrorCount != 2 || !r.Skills[0].Editable || r.Skills[1].Editable || r.Skills[1].Scope != "system" {
		t.Fatalf("skills = %+v, %v", r, err)
	}
	off, err := callProfile[skillsResult](t, p, "skills.set", obj{"id": r.Skills[0].ID, "enabled": false})
	if err != nil || off.Skills[0].Enabled {
		t.Errorf("switched off: %+v, %v", off, err)
	}
	f.lieAbout = "skills/config/write"
	if _, err := callProfile[skillsResult](t, p, "skills.set", obj{"id": r.Skills[0].ID, "enabled": true}); codes.Of(err) != codes.NotConfirmed {
		t.Errorf("success without effect: %v", err)
	}
	writes := f.writes
	for _, id := range []string{r.Skills[1].ID, "nobody"} {
		if _, err := callProfile[skillsResult](t, p, "skills.set", obj{"id": id, "enabled": false}); codes.Of(err) != codes.ParametersInvalid {
			t.Errorf("skill %s: %v", id, err)
		}
	}
	if f.writes != writes {
		t.Error("a skill that may not be changed was written")
	}
	if _, err := callProfile[skillsResult](t, p, "skills", obj{"projectId": strings.Repeat("0", 32)}); codes.Of(err) != codes.ProjectUnknown {
		t.Errorf("unknown project: %v", err)
	}
	other, _ := fakeClient(t, f.serve(t))
	p.library.client = func(context.Context) (*appserver.Client, error) { return other, nil }
	if _, err := callProfile[skillsResult](t, p, "skills.set", obj{"id": r.Skills[0].ID, "enabled": false}); codes.Of(err) != codes.ParametersInvalid {
		t.Errorf("a handle of a former app server: %v", err)
	}
}

func TestProfileDocuments(t *testing.T) {
	rules.Covers(t, "CX-21")
	f, p := newComputer(t)
	path := filepath.Join(f.dir, "AGENTS.md")
	list := func() []instructionRow {
		rows, err := callProfile[[]instructionRow](t, p, "instructions", obj{"projectId": projectID(f.dir)})
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	rows := list()
	if len(rows) != 2 || rows[0].Scope != "user" || rows[1].Scope != "project" || rows[1].Exists {
		t.Fatalf("instructions = %+v", rows)
	}
	id := rows[1].ID
	read := func() (documentResult, error) { return callProfile[documentResult](t, p, "document", obj{"id": id}) }
	write := func(content, version string) (documentResult, error) {
		return callProfile[documentResult](t, p, "document.set", obj{"id": id, "content": content, "version": version})
	}
	d, err := read()
	if err != nil || !d.Missing || d.Version != missingVersion || !d.Editable {
		t.Fatalf("missing document = %+v, %v", d, err)
	}
	d, err = write("# One\n", missingVersion)
	if err != nil || d.Missing || len(d.Version) != 64 || d.Size != 6 {
		t.Fatalf("written = %+v, %v", d, err)
	}
	if _, err := write("# Two\n", missingVersion); codes.Of(err) != codes.VersionConflict {
		t.Errorf("stale version: %v", err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if d, err = write("# Two\n", d.Version); err != nil || d.Content != "# Two\n" {
		t.Errorf("second write = %+v, %v", d, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for name, content := range map[string]string{"too large": strings.Repeat("x", maxDocument+1), "a NUL": "a\x00b"} {
		if _, err := write(content, d.Version); codes.Of(err) != codes.ParametersInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(f.dir, ".openphone-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if err := os.Link(path, path+".2"); err == nil {
		if _, err := read(); codes.Of(err) != codes.StoreUnreadable {
			t.Errorf("two names: %v", err)
		}
		_ = os.Remove(path + ".2")
	}
	_ = os.Remove(path)
	if err := os.Symlink("/etc/hostname", path); err == nil {
		if _, err := read(); codes.Of(err) != codes.StoreUnreadable {
			t.Errorf("a link is read: %v", err)
		}
		if _, err := write("x", missingVersion); codes.Of(err) != codes.StoreUnreadable {
			t.Errorf("a link is written: %v", err)
		}
	}
	if _, err := callProfile[documentResult](t, p, "document", obj{"id": path}); codes.Of(err) != codes.ParametersInvalid {
		t.Errorf("a path instead of a handle: %v", err)
	}
}

func TestProfileUsage(t *testing.T) {
	rules.Covers(t, "CX-21")
	f, p := newComputer(t)
	u, err := callProfile[usageResult](t, p, "usage", nil)
	if err != nil || u.Plan == nil || *u.Plan != "plus" || len(u.Quotas) != 0 || u.Lifetime != nil {
		t.Errorf("unknown quota = %+v, %v", u, err)
	}
	f.limits = ok(obj{"rateLimits": obj{}, "rateLimitsByLimitId": obj{
		"codex": obj{"limitName": "Codex", "primary": obj{"usedPercent": 5, "windowDurationMins": 300, "resetsAt": 1_800_000_000}, "secondary": obj{"usedPercent": 7, "windowDurationMins": nil}},
		"empty": obj{},
	}})
	f.use = ok(obj{"summary": obj{"lifetimeTokens": 12}, "dailyUsageBuckets": []any{obj{"startDate": "2026-11-30", "tokens": 3}, obj{"startDate": "soon", "tokens": 4}}})
	u, err = callProfile[usageResult](t, p, "usage", nil)
	reset, lifetime, plan := int64(1_800_000_000), int64(12), "plus"
	want := usageResult{
		Plan: &plan, Quotas: []quota{{ID: "codex", Name: "Codex", Windows: []window{{Minutes: 300, UsedPercent: 5, ResetsAt: &reset}}}},
		Lifetime: &lifetime, Daily: []day{{Date: "2026-11-30", Tokens: 3}},
	}
	if diff := cmp.Diff(want, u); diff != "" || err != nil {
		t.Errorf("err %v, usage (-want +got):\n%s", err, diff)
	}
}

func TestProfileListsAreSanitised(t *testing.T) {
	rules.Covers(t, "CX-21")
	f, p := newComputer(t)
	servers, err := callProfile[[]mcpServer](t, p, "mcp", nil)
	want := []mcpServer{
		{Name: "phone", Auth: "authenticated", ToolsAvailable: true, Tools: []mcpTool{{Name: "tap", Description: "Taps."}}},
		{Name: "broken", Auth: "unknown", Tools: []mcpTool{}},
	}
	if diff := cmp.Diff(want, servers); diff != "" || err != nil {
		t.Errorf("err %v, servers (-want +got):\n%s", err, diff)
	}
	plugins, err := callProfile[[]pluginRow](t, p, "plugins", obj{"projectId": projectID(f.dir)})
	if diff := cmp.Diff([]pluginRow{{ID: "p@m", Name: "p", Description: "d", Enabled: true}}, plugins); diff != "" || err != nil {
		t.Errorf("err %v, plugins (-want +got):\n%s", err, diff)
	}
	for _, method := range []string{"mcp", "usage"} {
		r, err := p.Call(t.Context(), &runtime.CallRequest{Method: profilePrefix + method})
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"secret", "example.com", "inputSchema"} {
			if strings.Contains(string(r.Result.Data), word) {
				t.Errorf("%s tells %q", method, word)
			}
		}
	}
}
