package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/golden"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// fakeCatalog serves threads in pages of 2.
type fakeCatalog struct {
	active, archived []map[string]any
	turns            func(threadID string) golden.Answer
	breakAt          string // cursor at which the list fails
}

func threadRow(id, cwd string, more ...any) map[string]any {
	row := map[string]any{"id": id, "cwd": cwd, "updatedAt": 1_700_000_000, "modelProvider": "fake", "model": "gpt-5.5", "preview": "the first prompt", "name": nil, "status": map[string]any{"type": "notLoaded"}}
	for i := 0; i+1 < len(more); i += 2 {
		row[more[i].(string)] = more[i+1]
	}
	return row
}

func (f *fakeCatalog) serve(t *testing.T) handler {
	return func(method string, raw json.RawMessage) golden.Answer {
		p := params[struct {
			ThreadID  string `json:"threadId"`
			Cursor    string
			Archived  bool
			ItemsView string
		}](t, raw)
		switch method {
		case "thread/list":
			if p.Cursor != "" && p.Cursor == f.breakAt {
				return fail(-32603, "broken")
			}
			rows := f.active
			if p.Archived {
				rows = f.archived
			}
			start, _ := strconv.Atoi(p.Cursor)
			end := min(start+2, len(rows))
			var next any
			if end < len(rows) {
				next = strconv.Itoa(end)
			}
			return ok(map[string]any{"data": rows[start:end], "nextCursor": next})
		case "thread/turns/list":
			if p.ItemsView != "summary" {
				t.Errorf("turns asked with %q", p.ItemsView)
			}
			return f.turns(p.ThreadID)
		}
		t.Errorf("unexpected %s", method)
		return fail(-32600, "unexpected")
	}
}

func list(t *testing.T, l *library, r runtime.ListSessionsRequest) ([]runtime.Session, *runtime.ScanEnd) {
	t.Helper()
	var rows []runtime.Session
	end, err := l.ListSessions(t.Context(), &r, func(batch []runtime.Session) error {
		rows = append(rows, batch...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows, end
}

func nativeIDs(rows []runtime.Session) string {
	var names []string
	for _, r := range rows {
		names = append(names, r.Ref.NativeID)
	}
	return strings.Join(names, " ")
}

func TestListSessions(t *testing.T) {
	rules.Covers(t, "CX-06", "SYNC-07")
	dir := t.TempDir()
	f := &fakeCatalog{active: []map[string]any{
		threadRow("a", dir, "name", " Named "),
		threadRow("b", dir, "model", nil),
		threadRow("a", dir), // a page may repeat a row
		threadRow("c", dir, "model", map[string]any{"x": 1}, "status", map[string]any{"type": "active", "activeFlags": []string{"waitingOnApproval"}}),
		threadRow("d", filepath.Join(dir, "gone"), "name", "  "),
	}}
	l, _, _ := fakeLibrary(t, f.serve(t), "", "")
	rows, end := list(t, l, runtime.ListSessionsRequest{})
	if nativeIDs(rows) != "a b c d" || !end.Complete || end.AsOfSeq != 7 {
		t.Fatalf("rows %s, end %+v", nativeIDs(rows), end)
	}
	no := false
	want := runtime.Session{
		Ref: runtime.SessionRef{NativeID: "a", ProjectPath: dir}, Kind: runtime.SessionKindDirect, Title: "Named", UpdatedAt: time.Unix(1_700_000_000, 0),
		ModelID: "gpt-5.5", ProviderID: "fake", Archived: &no, Continuation: runtime.ContinuationAllowed,
		Actions: []runtime.SessionAction{runtime.SessionActionRename, runtime.SessionActionArchive},
	}
	if diff := cmp.Diff(want, rows[0]); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	if rows[1].Title != "" || rows[1].ModelID != "" || rows[2].ModelID != "" {
		t.Errorf("a null or odd model is unknown and the first prompt is no title: %+v", rows[1:3])
	}
	if rows[2].Activity != runtime.ActivityWaiting || rows[2].Attention != runtime.AttentionKindApproval {
		t.Errorf("activity = %v %v", rows[2].Activity, rows[2].Attention)
	}
	if rows[3].Continuation != runtime.ContinuationProjectUnavailable {
		t.Errorf("continuation = %v", rows[3].Continuation)
	}
}

func TestIncompleteScans(t *testing.T) {
	rules.Covers(t, "SYNC-03", "STORE-02")
	row := threadRow("a", "/p")
	for _, tt := range []struct {
		name string
		f    *fakeCatalog
		want string
	}{
		{"a page fails", &fakeCatalog{active: []map[string]any{row, threadRow("b", "/p"), threadRow("c", "/p")}, breakAt: "2"}, "a b"},
		{"a row without a directory", &fakeCatalog{active: []map[string]any{row, {"id": "b"}}}, "a"},
		{"a row of the wrong types", &fakeCatalog{active: []map[string]any{row, {"id": 1, "cwd": "/p"}}}, "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, _, _ := fakeLibrary(t, tt.f.serve(t), "", "")
			rows, end := list(t, l, runtime.ListSessionsRequest{Bound: []runtime.SessionRef{{NativeID: "z"}}})
			if nativeIDs(rows) != tt.want || end.Complete || end.WarningCode != codes.CatalogIncomplete {
				t.Errorf("rows %q, end %+v", nativeIDs(rows), end)
			}
		})
	}
	t.Run("a cursor that comes back", func(t *testing.T) {
		l, _, _ := fakeLibrary(t, func(string, json.RawMessage) golden.Answer {
			return ok(map[string]any{"data": []any{row}, "nextCursor": "again"})
		}, "", "")
		if rows, end := list(t, l, runtime.ListSessionsRequest{}); nativeIDs(rows) != "a" || end.Complete {
			t.Errorf("rows %q, end %+v", nativeIDs(rows), end)
		}
	})
	t.Run("the host hangs up", func(t *testing.T) {
		f := &fakeCatalog{active: []map[string]any{row}}
		l, _, _ := fakeLibrary(t, f.serve(t), "", "")
		gone := errors.New("gone")
		if _, err := l.ListSessions(t.Context(), &runtime.ListSessionsRequest{}, func([]runtime.Session) error { return gone }); !errors.Is(err, gone) {
			t.Errorf("err = %v", err)
		}
	})
}

func TestMissingThreadsAreLookedForInTheArchive(t *testing.T) {
	rules.Covers(t, "CX-07")
	f := &fakeCatalog{active: []map[string]any{threadRow("a", "/p")}}
	for i := range 8 {
		f.archived = append(f.archived, threadRow(fmt.Sprintf("x%d", i), "/p"))
	}
	l, seen, now := fakeLibrary(t, f.serve(t), "", "")
	bound := []runtime.SessionRef{
		{NativeID: "a", ProjectPath: "/p"},
		{NativeID: "x1", ProjectPath: "/p"},
		{NativeID: "x2", ProjectPath: "/other"},
		{NativeID: "x7", ProjectPath: "/p"},
		{SessionID: "empty"},
	}
	ask := func() string {
		rows, end := list(t, l, runtime.ListSessionsRequest{Bound: bound})
		if !end.Complete {
			t.Errorf("end = %+v", end)
		}
		return nativeIDs(rows)
	}
	if got := ask(); got != "a x1" {
		t.Errorf("rows %q: a foreign directory and the third page prove nothing", got)
	}
	rows, _ := list(t, l, runtime.ListSessionsRequest{Bound: bound})
	if last := rows[len(rows)-1]; last.Archived == nil || !*last.Archived {
		t.Errorf("row = %+v", last)
	}
	looks := func() int { return seen.count("thread/list", `"archived":true`) }
	if n := looks(); n != 2 {
		t.Errorf("%d archived pages read, want 2 for both refreshes", n)
	}
	l.noteManagement()
	ask()
	if n := looks(); n != 4 {
		t.Errorf("%d archived pages after a management write, want 4", n)
	}
	now.add(archivedKept)
	ask()
	if n := looks(); n != 6 {
		t.Errorf("%d archived pages after 30 s, want 6", n)
	}
	list(t, l, runtime.ListSessionsRequest{Bound: bound[:1]})
	list(t, l, runtime.ListSessionsRequest{})
	if n := looks(); n != 6 {
		t.Errorf("%d archived pages though nothing is missing", n)
	}
}

func TestPreviews(t *testing.T) {
	rules.Covers(t, "CX-22", "SYNC-09")
	turn := func(items ...any) golden.Answer {
		return ok(map[string]any{"data": []any{map[string]any{"id": "t", "status": "completed", "startedAt": 5, "items": items}}})
	}
	user := func(content ...any) map[string]any {
		return map[string]any{"type": "userMessage", "id": "u", "content": content, "startedAtMs": 1000}
	}
	text := func(s string) map[string]any { return map[string]any{"type": "text", "text": s} }
	image := map[string]any{"type": "image", "url": "data:image/png;base64,AAAA"}
	broken := true
	f := &fakeCatalog{
		active: []map[string]any{threadRow("said", "/p"), threadRow("image", "/p"), threadRow("new", "/p"), threadRow("broken", "/p"), threadRow("late", "/p")},
		turns: func(id string) golden.Answer {
			switch id {
			case "said":
				return turn(user(text("hi")), map[string]any{"type": "agentMessage", "id": "m", "text": strings.Repeat("é", 3000), "startedAtMs": 2000})
			case "image":
				return turn(user(image))
			case "new":
				return fail(-32601, "list_turns is not supported yet")
			}
			if broken {
				return fail(-32603, "broken")
			}
			return turn(user(text("whole")))
		},
	}
	l, seen, now := fakeLibrary(t, f.serve(t), "", "")
	rows, end := list(t, l, runtime.ListSessionsRequest{Previews: 4})
	if !end.Complete || len(rows) != 5 {
		t.Fatalf("%d rows, end %+v", len(rows), end)
	}
	if m := rows[0].LastMessage; m == nil || m.Role != runtime.RoleAssistant || len([]rune(m.Text)) != shownUnits || m.CreatedAt.UnixMilli() != 2000 {
		t.Errorf("said: %+v", m)
	}
	if m := rows[1].LastMessage; m == nil || !m.HasImage || m.Text != "" || m.Role != runtime.RoleUser {
		t.Errorf("image: %+v", m)
	}
	if m := rows[2].LastMessage; m == nil || m.Role != runtime.RoleUnspecified {
		t.Errorf("new: %+v", m)
	}
	if rows[3].LastMessage != nil || rows[4].LastMessage != nil {
		t.Errorf("a failed look and one not asked for are unknown: %+v", rows[3:])
	}
	broken = false
	list(t, l, runtime.ListSessionsRequest{Previews: 4})
	if n := seen.count("thread/turns/list", ""); n != 4 {
		t.Errorf("%d looks, want 4: known versions and a fresh failure are not read again", n)
	}
	now.add(previewRetry)
	rows, _ = list(t, l, runtime.ListSessionsRequest{Previews: 4})
	if m := rows[3].LastMessage; m == nil || m.Text != "whole" {
		t.Errorf("after the pause: %+v", m)
	}
	f.active[0]["updatedAt"] = 1_700_000_001
	list(t, l, runtime.ListSessionsRequest{Previews: 4})
	if n := seen.count("thread/turns/list", `"said"`); n != 2 {
		t.Errorf("%d looks at a thread that changed, want 2", n)
	}
}

func TestOneProject(t *testing.T) {
	dir := t.TempDir()
	f := &fakeCatalog{active: []map[string]any{threadRow("a", dir)}}
	l, seen, _ := fakeLibrary(t, f.serve(t), "", dir)
	rows, end := list(t, l, runtime.ListSessionsRequest{})
	if len(rows) != 1 || !end.Complete || rows[0].Actions != nil || rows[0].Continuation != runtime.ContinuationReadOnly {
		t.Errorf("rows %+v, end %+v", rows, end)
	}
	if seen.count("thread/list", `"cwd":"`+dir) != 1 {
		t.Error("the list was not asked for the project alone")
	}
	if rows, err := l.ListProjects(t.Context()); err != nil || len(rows) != 1 || rows[0].Path != dir {
		t.Errorf("projects: %v, %v", rows, err)
	}
}

func TestListProjects(t *testing.T) {
	rules.Covers(t, "CX-01")
	home, one, two := t.TempDir(), t.TempDir(), t.TempDir()
	state := fmt.Sprintf(`{"electron-saved-workspace-roots":[%q,"relative"],"electron-workspace-root-labels":{%q:"One"},"local-projects":{"b":{"name":"Both","rootPaths":[%q,%q]},"a":{"name":"Gone","rootPaths":["/gone"]}},"more":1}`, one, one, one, two)
	if err := os.WriteFile(filepath.Join(home, desktopState), []byte(state), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &fakeCatalog{active: []map[string]any{threadRow("a", two), threadRow("b", "/threads/only")}}
	l, _, _ := fakeLibrary(t, f.serve(t), home, "")
	got, err := l.ListProjects(t.Context())
	want := []runtime.Project{{Path: one, Name: "One"}, {Path: "/gone", Name: "Gone"}, {Path: two, Name: "Both"}, {Path: "/threads/only"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("err %v, projects (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{"", "[]", `{"electron-saved-workspace-roots":{}}`, strings.Repeat(" ", maxDesktopState+1)} {
		if err := os.WriteFile(filepath.Join(home, desktopState), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := desktopProjects(home); len(got) != 0 {
			t.Errorf("state %.20q gives %+v", bad, got)
		}
	}
}

func TestListSkills(t *testing.T) {
	rules.Covers(t, "CX-19")
	dir := t.TempDir()
	serve := func(_ string, raw json.RawMessage) golden.Answer {
		p := params[struct{ Cwds []string }](t, raw)
		row := map[string]any{"cwd": p.Cwds[0], "skills": []any{
			map[string]any{"name": "demo", "description": "d", "scope": "repo", "enabled": true},
			map[string]any{"name": "off", "scope": "user", "enabled": false},
			map[string]any{"name": "sys", "scope": "system", "enabled": true},
			map[string]any{"name": "plug", "scope": "user", "pluginId": "p", "enabled": true},
		}, "errors": []any{}}
		if strings.HasSuffix(p.Cwds[0], "odd") {
			row["cwd"] = "/elsewhere"
		}
		return ok(map[string]any{"data": []any{row}})
	}
	l, _, _ := fakeLibrary(t, serve, "", "")
	got, err := l.ListSkills(t.Context(), &runtime.ListSkillsRequest{Session: runtime.SessionRef{NativeID: "t", ProjectPath: dir}})
	want := []runtime.Skill{
		{SkillID: "demo", Name: "demo", Description: "d", Invocation: "$demo ", Source: "project", Kind: runtime.SkillKindSkill},
		{SkillID: "sys", Name: "sys", Invocation: "$sys ", Source: "system", Kind: runtime.SkillKindSkill},
		{SkillID: "plug", Name: "plug", Invocation: "$plug ", Source: "plugin", Kind: runtime.SkillKindSkill},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("err %v, skills (-want +got):\n%s", err, diff)
	}
	odd := filepath.Join(dir, "odd")
	if err := os.Mkdir(odd, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		ref  runtime.SessionRef
		want string
	}{
		{"a row about another directory", runtime.SessionRef{NativeID: "t", ProjectPath: odd}, codes.ReplyInvalid},
		{"a directory that is gone", runtime.SessionRef{NativeID: "t", ProjectPath: dir + "/gone"}, codes.ProjectUnavailable},
		{"a session nobody knows", runtime.SessionRef{SessionID: "s"}, codes.SessionUnknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := l.ListSkills(t.Context(), &runtime.ListSkillsRequest{Session: tt.ref}); codes.Of(err) != tt.want {
				t.Errorf("err = %v, want %s", err, tt.want)
			}
		})
	}
}
