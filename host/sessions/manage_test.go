package sessions

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func TestCreate(t *testing.T) {
	r := newRig(t)
	project := t.TempDir()
	r.f.projects = []runtime.Project{{Path: project, Name: "P"}, {Path: "/does/not/exist"}, {Path: "relative"}}
	projects, err := r.Projects(t.Context())
	if err != nil || len(projects) != 2 || projects[0].Name != "P" || !projects[0].Available || projects[1].Available {
		t.Fatalf("projects %+v, %v", projects, err)
	}
	row, err := r.Create(t.Context(), "  "+strings.Repeat("x", 300), projects[0].ID, "")
	if err != nil || len(row.Title) != 200 || row.Project == nil || row.Project.Path != project {
		t.Errorf("row %+v, %v", row, err)
	}
	for _, x := range []struct{ project, from, want string }{
		{"nothing", "", codes.ProjectUnknown},
		{projects[1].ID, "", codes.ProjectUnavailable},
		{"", "nobody", codes.SessionUnknown},
		{"", row.Key, codes.SessionLost}, // nothing was ever said in it
	} {
		if _, err := r.Create(t.Context(), "", x.project, x.from); codes.Of(err) != x.want {
			t.Errorf("%+v: got %v", x, err)
		}
	}
	r.restart()
	if got, err := r.Lookup(t.Context(), row.Key); err != nil || got.Title != row.Title {
		t.Errorf("after a restart: %+v, %v", got, err)
	}
}

func TestCreateIsBounded(t *testing.T) {
	r := newRig(t)
	r.restart(func(o *Options) { o.MaxSessions = 2 })
	r.up()
	r.create()
	r.create()
	if _, err := r.Create(t.Context(), "", "", ""); codes.Of(err) != codes.SessionsFull {
		t.Errorf("got %v", err)
	}
}

func TestBranch(t *testing.T) {
	r := newRig(t)
	key := r.create()
	id := r.send(key, "original", "k")
	if _, err := r.Create(t.Context(), "", "", key); codes.Of(err) != codes.SessionBusy {
		t.Errorf("while it runs: %v", err)
	}
	r.emit(text(id, "a", "reply"), ended(id))
	var asked *runtime.CreateSessionRequest
	r.f.onCreate = func(q *runtime.CreateSessionRequest) (*runtime.CreateSessionResponse, error) {
		asked = q
		return &runtime.CreateSessionResponse{}, nil
	}
	row, err := r.Create(t.Context(), "", "", key)
	if err != nil || row.ParentKey != key || row.Title != "original" || row.Key == key || row.Preview != "reply" {
		t.Errorf("row %+v, %v", row, err)
	}
	if asked.Source.NativeID != "native-"+key || asked.Session.SessionID != row.Key || asked.Session.NativeID != "" {
		t.Errorf("asked %+v", asked)
	}
	// A branch the runtime names later.
	s := runtime.Session{Ref: runtime.SessionRef{SessionID: row.Key, NativeID: "branch-1"}}
	r.emit(runtime.Event{SessionChanged: &s})
	r.restart()
	if got, _ := r.Lookup(t.Context(), row.Key); got.NativeID != "branch-1" {
		t.Errorf("its native name is %q", got.NativeID)
	}
}

func TestRename(t *testing.T) {
	rules.Covers(t, "CX-05")
	r := newRig(t)
	key := r.create()
	var asked []string
	r.f.onUpdate = func(q *runtime.UpdateSessionRequest) (*runtime.UpdateSessionResponse, error) {
		asked = append(asked, *q.Title)
		if *q.Title == "refused" {
			return nil, codes.New(codes.SessionInUse)
		}
		return &runtime.UpdateSessionResponse{Session: &runtime.Session{Ref: q.Session, Title: *q.Title}}, nil
	}
	if _, err := r.Rename(t.Context(), key, "before any prompt"); err != nil {
		t.Fatal(err)
	}
	if len(asked) != 0 {
		t.Error("the runtime was asked about a conversation it does not have")
	}
	id := r.send(key, "the first prompt replaces nothing", "k")
	r.emit(ended(id))
	if row, _ := r.Lookup(t.Context(), key); row.Title != "before any prompt" {
		t.Errorf("the title is %q", row.Title)
	}
	if row, err := r.Rename(t.Context(), key, " after "); err != nil || row.Title != "after" {
		t.Errorf("got %q, %v", row.Title, err)
	}
	if _, err := r.Rename(t.Context(), key, "refused"); codes.Of(err) != codes.SessionInUse {
		t.Errorf("got %v", err)
	}
	if row, _ := r.Lookup(t.Context(), key); row.Title != "after" {
		t.Errorf("a refused title stays: %q", row.Title)
	}
	if diff := cmp.Diff([]string{"after", "refused"}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"", "  ", strings.Repeat("x", 201), "\xff"} {
		if _, err := r.Rename(t.Context(), key, bad); codes.Of(err) != codes.TitleInvalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestRenameANativeConversation(t *testing.T) {
	r := newRig(t)
	readOnly := native("n2", "two")
	readOnly.Actions = nil
	r.f.rows = []runtime.Session{native("n1", "one"), readOnly}
	rows := r.list(true)
	if row, err := r.Rename(t.Context(), rows[0].Key, "renamed"); err != nil || row.Title != "renamed" {
		t.Errorf("got %+v, %v", row, err)
	}
	if _, err := r.Rename(t.Context(), rows[1].Key, "renamed"); codes.Of(err) != codes.SessionReadOnly {
		t.Errorf("got %v", err)
	}
	for _, key := range []string{rows[0].Key, rows[1].Key} {
		if err := r.Reset(t.Context(), key); codes.Of(err) != codes.SessionReadOnly {
			t.Errorf("reset: %v", err)
		}
		if err := r.Delete(t.Context(), key); codes.Of(err) != codes.SessionReadOnly {
			t.Errorf("delete: %v", err)
		}
	}
	if recs, _ := r.db.Sessions(t.Context(), "fake"); len(recs) != 0 {
		t.Errorf("records were made: %+v", recs)
	}
}

// Reset and delete let go of everything, keep every receipt, and touch nothing native.
func TestResetAndDelete(t *testing.T) {
	rules.Covers(t, "STORE-03", "STORE-04")
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	for name, err := range map[string]error{"reset": r.Reset(t.Context(), key), "delete": r.Delete(t.Context(), key)} {
		if codes.Of(err) != codes.SessionBusy {
			t.Errorf("%s while it runs: %v", name, err)
		}
	}
	r.emit(text(id, "a", "reply"), ended(id))
	var detached []runtime.DetachSessionRequest
	r.f.onDetach = func(q *runtime.DetachSessionRequest) error { detached = append(detached, *q); return nil }
	if err := r.Reset(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	row, _ := r.Lookup(t.Context(), key)
	if row.NativeID != "" || row.Preview != "" || !row.LastActivityAt.IsZero() || row.Title != "x" {
		t.Errorf("after the reset: %+v", row)
	}
	r.restart()
	r.up()
	if h, err := r.History(t.Context(), key, "", 40); err != nil || len(h.Messages) != 0 {
		t.Errorf("history %+v, %v", h, err)
	}
	second := r.send(key, "y", "k-2")
	r.f.mu.Lock()
	p := r.f.prepared[second].Session
	r.f.mu.Unlock()
	if p.NativeID != "" {
		t.Errorf("the new conversation continues %q", p.NativeID)
	}
	r.emit(ended(second))
	if err := r.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Lookup(t.Context(), key); codes.Of(err) != codes.SessionUnknown {
		t.Errorf("deleted: %v", err)
	}
	if len(detached) != 2 || detached[0].Mode != runtime.DetachModeReset || detached[1].Mode != runtime.DetachModeDelete {
		t.Errorf("detached %+v", detached)
	}
	if recs, err := r.db.RunsOf(t.Context(), "fake", key); err != nil || len(recs) != 2 {
		t.Errorf("receipts %+v, %v", recs, err)
	}
	if _, err := r.Send(t.Context(), prompt(key, "z", "k-3")); codes.Of(err) != codes.SessionUnknown {
		t.Errorf("a new prompt: %v", err)
	}
}

func TestMainConversation(t *testing.T) {
	r := newRig(t)
	r.f.description.SessionLayout = runtime.SessionLayoutMainAndMany
	r.up()
	rows := r.list(true)
	if len(rows) != 1 || rows[0].Kind != runtime.SessionKindMain || rows[0].Actions.Delete {
		t.Fatalf("rows %+v", rows)
	}
	if err := r.Delete(t.Context(), rows[0].Key); codes.Of(err) != codes.SessionLast {
		t.Errorf("got %v", err)
	}
	r.create()
	r.up()
	if rows := r.list(true); len(rows) != 2 || rows[1].Kind != runtime.SessionKindDirect {
		t.Errorf("rows %+v", rows)
	}
	r.f.description.SessionLayout = runtime.SessionLayoutSingle
	if _, err := r.Create(t.Context(), "", "", ""); codes.Of(err) != codes.SessionsFull {
		t.Errorf("got %v", err)
	}
}

func TestNoMainConversation(t *testing.T) {
	rules.Covers(t, "CX-16")
	r := newRig(t)
	r.f.description.SessionLayout = runtime.SessionLayoutMany
	r.up()
	if _, err := r.Settings(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if rows := r.list(true); len(rows) != 0 {
		t.Errorf("something was made: %+v", rows)
	}
	if _, err := r.SetSettings(t.Context(), "", SettingsChange{}); err == nil {
		t.Error("a model was chosen without a conversation")
	}
}

func TestManage(t *testing.T) {
	r := newRig(t)
	schema := runtime.JSON([]byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`))
	r.f.description.Methods = []runtime.Method{
		{Name: "x.read", Scope: runtime.MethodScopeRead, ParamsSchema: schema},
		{Name: "x.local", Scope: runtime.MethodScopeLocal},
		{Name: "x.newer", Scope: 77},
		{Name: "x.bad", Scope: runtime.MethodScopeRead, ResultSchema: schema},
		{Name: "x.absent", Scope: runtime.MethodScopeRead},
		{Name: "x.outside", Scope: runtime.MethodScopeRead, ParamsSchema: runtime.JSON([]byte(`{"$ref":"file:///etc/passwd"}`))},
	}
	r.f.status.Methods = []string{"x.read", "x.local", "x.newer", "x.bad", "x.outside", "x.undeclared"}
	calls := 0
	r.f.onCall = func(*runtime.CallRequest) (*runtime.CallResponse, error) {
		calls++
		return &runtime.CallResponse{Result: runtime.JSON([]byte(`{"a": 1.0}`))}, nil
	}
	for _, x := range []struct{ method, params, want string }{
		{"x.read", `{"n":1}`, ""},
		{"x.read", `{"n":"1"}`, codes.ParametersInvalid},
		{"x.read", ``, codes.ParametersInvalid},
		{"x.read", `{`, codes.ParametersInvalid},
		{"x.local", `{}`, codes.MethodUnknown},
		{"x.newer", `{}`, codes.MethodUnknown},
		{"x.absent", `{}`, codes.MethodUnknown},
		{"x.undeclared", `{}`, codes.MethodUnknown},
		{"x.outside", `{}`, codes.ParametersInvalid},
		{"x.bad", `{}`, codes.ReplyInvalid},
	} {
		got, err := r.Manage(t.Context(), x.method, json.RawMessage(x.params))
		if codes.Of(err) != x.want {
			t.Errorf("%s(%s): got %v, want %q", x.method, x.params, err, x.want)
		}
		if err == nil && string(got) != `{"a": 1.0}` {
			t.Errorf("the result is %s", got)
		}
	}
	if calls != 2 {
		t.Errorf("%d calls reached the plugin, want 2", calls)
	}
}

func TestSettings(t *testing.T) {
	r := newRig(t)
	value := "low"
	r.f.settings = runtime.Settings{
		Scope: runtime.SettingsScopeSession, ModelID: "m1", ProviderID: "p",
		Models:  []runtime.Model{{ModelID: "m1", ProviderID: "p"}, {ModelID: "m2", ProviderID: "p"}},
		Options: []runtime.Option{{OptionID: "thinking", Value: &value, Available: true, Choices: []runtime.OptionChoice{{Value: "low"}, {Value: "high"}}}, {OptionID: "fast", Choices: []runtime.OptionChoice{{Value: "on"}}}},
	}
	key := r.create()
	var asked []*runtime.SetSettingsRequest
	r.f.onSet = func(q *runtime.SetSettingsRequest) (*runtime.Settings, error) {
		asked = append(asked, q)
		s := r.f.settings
		if q.ModelID != nil {
			s.ModelID = *q.ModelID
		}
		return &s, nil
	}
	m2, m3, other := "m2", "m3", "other"
	for _, x := range []struct {
		name   string
		change SettingsChange
		want   string
	}{
		{"nothing", SettingsChange{}, codes.ParamsInvalid},
		{"a model on offer", SettingsChange{ModelID: &m2}, ""},
		{"no such model", SettingsChange{ModelID: &m3}, codes.ModelMissing},
		{"another provider", SettingsChange{ModelID: &m2, ProviderID: &other}, codes.ModelMissing},
		{"an option", SettingsChange{Options: map[string]string{"thinking": "high"}}, ""},
		{"no such value", SettingsChange{Options: map[string]string{"thinking": "huge"}}, codes.OptionInvalid},
		{"not now", SettingsChange{Options: map[string]string{"fast": "on"}}, codes.OptionInvalid},
		{"no such option", SettingsChange{Options: map[string]string{"mood": "on"}}, codes.SettingsUnsupported},
	} {
		if _, err := r.SetSettings(t.Context(), key, x.change); codes.Of(err) != x.want {
			t.Errorf("%s: got %v, want %q", x.name, err, x.want)
		}
	}
	if len(asked) != 2 {
		t.Errorf("%d changes reached the plugin, want 2", len(asked))
	}
	id := r.send(key, "x", "k")
	if _, err := r.SetSettings(t.Context(), key, SettingsChange{ModelID: &m2}); codes.Of(err) != codes.RunActive {
		t.Errorf("while it runs: %v", err)
	}
	other2 := r.create()
	if _, err := r.SetSettings(t.Context(), other2, SettingsChange{ModelID: &m2}); err != nil {
		t.Errorf("another conversation: %v", err)
	}
	r.f.settings.Scope = runtime.SettingsScopeGlobal
	if _, err := r.SetSettings(t.Context(), other2, SettingsChange{ModelID: &m2}); codes.Of(err) != codes.RunActive {
		t.Errorf("for all, while one runs: %v", err)
	}
	r.emit(ended(id))
	if _, err := r.SetSettings(t.Context(), "", SettingsChange{ModelID: &m2}); err != nil {
		t.Errorf("for all: %v", err)
	}
}
