//go:build integration

package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/modeltest"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func TestHistoryOfARealThread(t *testing.T) {
	rules.Covers(t, "CX-29", "CX-22")
	b := newBench(t, "")
	b.model.Add(modeltest.Script{Match: "tool", Steps: []modeltest.Step{
		modeltest.Text("Looking."), modeltest.Break(), modeltest.Call("exec_command", `{"cmd":"echo one"}`), modeltest.Text("One.\n"),
	}}, modeltest.Script{Match: "bad", Steps: []modeltest.Step{modeltest.Error(401, `{"error":{"message":"no sk-secret"}}`)}})
	ref := b.session("s")
	first, ref := b.send(ref, "tool please")
	b.sink.ended(t, first)
	for i := range 44 {
		id, _ := b.send(ref, fmt.Sprintf("prompt %d", i))
		b.sink.ended(t, id)
	}
	bad, _ := b.send(ref, "bad")
	b.sink.ended(t, bad)
	// 4 messages, 44 times 2, a prompt and its notice: 94.
	var sizes []int
	var all []runtime.Message
	cursor := ""
	for {
		r, err := b.a.ReadHistory(t.Context(), &runtime.ReadHistoryRequest{Session: ref, MaxMessages: 40, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(r.Messages))
		all = append(r.Messages, all...)
		if cursor = r.NextCursor; cursor == "" {
			break
		}
	}
	if diff := cmp.Diff([]int{40, 40, 14}, sizes); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	if all[0].RunID != first || all[0].Parts[0].Text != "tool please" {
		t.Errorf("first = %+v", all[0])
	}
	var roles []string
	for _, m := range all[:4] {
		roles = append(roles, m.Role.String())
	}
	if diff := cmp.Diff([]string{"user", "assistant", "tool", "assistant"}, roles); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if call := all[2].ToolCall; call == nil || !strings.HasSuffix(string(call.Output.Data), "one\n") || call.Status != runtime.ToolStatusSucceeded {
		t.Errorf("tool = %+v", call)
	}
	if last := all[len(all)-1]; last.NoticeCode != codeAuth || last.MessageID != "codex-turn-error:"+last.NativeRunID {
		t.Errorf("notice = %+v", last)
	}
	rows, end := catalogOf(t, b.a, runtime.ListSessionsRequest{Previews: 1})
	if len(rows) != 1 || !end.Complete || rows[0].LastMessage == nil || rows[0].LastMessage.Text != "bad" || rows[0].ModelID != "gpt-5.5" {
		t.Errorf("rows %+v, end %+v", rows, end)
	}
}

func catalogOf(t *testing.T, a *Agent, r runtime.ListSessionsRequest) ([]runtime.Session, *runtime.ScanEnd) {
	t.Helper()
	return list(t, a.library, r)
}

func TestCatalogOfARealHome(t *testing.T) {
	rules.Covers(t, "CX-06", "CX-07")
	b := newBench(t, "")
	one, ref := b.send(b.session("s1"), "one")
	b.sink.ended(t, one)
	two, other := b.send(b.session("s2"), "two")
	b.sink.ended(t, two)
	title, yes := "Named", true
	if _, err := b.a.UpdateSession(t.Context(), &runtime.UpdateSessionRequest{Session: ref, Title: &title}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.a.UpdateSession(t.Context(), &runtime.UpdateSessionRequest{Session: ref, Archived: &yes}); err != nil {
		t.Fatal(err)
	}
	rows, _ := catalogOf(t, b.a, runtime.ListSessionsRequest{Bound: []runtime.SessionRef{ref, other}})
	if len(rows) != 2 || *rows[0].Archived || !*rows[1].Archived || rows[1].Title != "Named" || rows[0].Title != "" {
		t.Errorf("rows = %+v", rows)
	}
	archived, end := catalogOf(t, b.a, runtime.ListSessionsRequest{Archived: true})
	if len(archived) != 1 || !end.Complete || archived[0].Ref.NativeID != ref.NativeID {
		t.Errorf("archived = %+v, %+v", archived, end)
	}
	projects, err := b.a.ListProjects(t.Context())
	if err != nil || len(projects) != 1 || projects[0].Path != b.project {
		t.Errorf("projects = %+v, %v", projects, err)
	}
}

func TestSettingsInARealRollout(t *testing.T) {
	rules.Covers(t, "CX-11")
	b := newBench(t, "")
	id, ref := b.send(b.session("s"), "one")
	b.sink.ended(t, id)
	client, err := b.a.library.client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	thread, err := client.ThreadRead(t.Context(), ref.NativeID)
	if err != nil {
		t.Fatal(err)
	}
	got, found := readRollout(b.a.home(), thread)
	if found != settingsFound || got.Grant != grants[permWorkspace] || got.ServiceTier != "" || got.Model != "gpt-5.5" {
		t.Errorf("evidence %v, %+v", found, got)
	}
}

func TestProfileOfARealHome(t *testing.T) {
	rules.Covers(t, "CX-19", "CX-21")
	b := newBench(t, "")
	skill := filepath.Join(b.project, ".agents", "skills", "demo", "SKILL.md")
	if err := os.MkdirAll(filepath.Dir(skill), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(skill, []byte("---\nname: demo\ndescription: A demo.\n---\nSay hi.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	id, ref := b.send(b.session("s"), "one")
	b.sink.ended(t, id)
	skills, err := b.a.ListSkills(t.Context(), &runtime.ListSkillsRequest{Session: ref})
	if err != nil || len(skills) == 0 || skills[0].Invocation != "$demo " {
		t.Errorf("skills = %+v, %v", skills, err)
	}
	d, err := callProfile[defaultsResult](t, b.a.profile, "defaults", nil)
	if err != nil || d.Model == nil || *d.Model != "gpt-5.5" || d.Editable || len(d.Models) < 5 {
		t.Errorf("defaults of another provider = %+v, %v", d, err)
	}
	if _, err := callProfile[defaultsResult](t, b.a.profile, "defaults.set", obj{"model": nil, "thinking": nil, "version": d.Version}); codes.Of(err) != codes.SettingsUnsupported {
		t.Errorf("set for another provider: %v", err)
	}
	projects, err := callProfile[[]projectRow](t, b.a.profile, "projects", nil)
	if err != nil || len(projects) != 1 {
		t.Fatalf("projects = %+v, %v", projects, err)
	}
	in := obj{"projectId": projects[0].ID}
	r, err := callProfile[skillsResult](t, b.a.profile, "skills", in)
	if err != nil || len(r.Skills) == 0 || r.Skills[0].Name != "demo" || !r.Skills[0].Editable {
		t.Fatalf("skills = %+v, %v", r, err)
	}
	off, err := callProfile[skillsResult](t, b.a.profile, "skills.set", obj{"id": r.Skills[0].ID, "enabled": false})
	if err != nil || off.Skills[0].Enabled {
		t.Errorf("switched off = %+v, %v", off, err)
	}
	for _, method := range []string{"usage", "mcp"} {
		if _, err := callProfile[any](t, b.a.profile, method, nil); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	for _, method := range []string{"instructions", "plugins"} {
		if _, err := callProfile[any](t, b.a.profile, method, in); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	if n := len(b.model.Requests()); n != 1 {
		t.Errorf("the model was asked %d times, want once for the one prompt", n)
	}
}

func TestProfileDefaultsOfARealHome(t *testing.T) {
	rules.Covers(t, "CX-21")
	b := newBench(t, "")
	path := filepath.Join(b.home, "config.toml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	openai := strings.Replace(string(text), `model_provider = "fake"`, `model_provider = "openai"`, 1)
	if err := os.WriteFile(path, []byte(openai), 0o600); err != nil {
		t.Fatal(err)
	}
	b.restart()
	d, err := callProfile[defaultsResult](t, b.a.profile, "defaults", nil)
	if err != nil || !d.Editable {
		t.Fatalf("defaults = %+v, %v", d, err)
	}
	model := d.Models[0].ID
	after, err := callProfile[defaultsResult](t, b.a.profile, "defaults.set", obj{"model": model, "thinking": nil, "version": d.Version})
	if err != nil || after.Model == nil || *after.Model != model {
		b, _ := json.Marshal(after)
		t.Errorf("set: %s, %v", b, err)
	}
	if err := os.WriteFile(path, []byte(openai+"# changed by hand\n[tui]\nnotifications = false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := callProfile[defaultsResult](t, b.a.profile, "defaults.set", obj{"model": nil, "thinking": nil, "version": after.Version}); codes.Of(err) != codes.VersionConflict {
		t.Errorf("changed meanwhile: %v", err)
	}
}
