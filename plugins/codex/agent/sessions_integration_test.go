//go:build integration

package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/modeltest"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// rows lists the catalog by native id.
func (b *bench) rows(archived bool, bound ...runtime.SessionRef) map[string]runtime.Session {
	b.t.Helper()
	rows := map[string]runtime.Session{}
	end, err := b.a.ListSessions(b.t.Context(), &runtime.ListSessionsRequest{Archived: archived, Previews: 20, Bound: bound}, func(list []runtime.Session) error {
		for _, s := range list {
			rows[s.Ref.NativeID] = s
		}
		return nil
	})
	if err != nil || !end.Complete {
		b.t.Fatalf("list: %+v, %v", end, err)
	}
	return rows
}

func TestRenameArchiveBranchReset(t *testing.T) {
	rules.Covers(t, "CX-06", "CX-07")
	b := newBench(t, "")
	ctx := t.Context()
	id, ref := b.send(b.session("s"), "hello")
	b.sink.ended(t, id)

	title := "A new name"
	if _, err := b.a.UpdateSession(ctx, &runtime.UpdateSessionRequest{Session: ref, Title: &title}); err != nil {
		t.Fatal(err)
	}
	row := b.rows(false)[ref.NativeID]
	if row.Title != title || row.LastMessage == nil || row.LastMessage.Text != "echo: hello" || row.Ref.ProjectPath != b.project {
		t.Errorf("row %+v", row)
	}

	copied, err := b.a.CreateSession(ctx, &runtime.CreateSessionRequest{Session: b.session("copy"), Source: ref, Title: "Copy"})
	if err != nil {
		t.Fatal(err)
	}
	cref := copied.Session.Ref
	if cref.NativeID == "" || cref.NativeID == ref.NativeID {
		t.Errorf("copy %+v", copied.Session)
	}
	again, err := b.a.CreateSession(ctx, &runtime.CreateSessionRequest{Session: b.session("copy"), Source: ref, Title: "Copy"})
	if err != nil || again.Session.Ref.NativeID != cref.NativeID {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	b.restart()
	id, _ = b.send(cref, "in the copy")
	b.sink.ended(t, id)
	h, err := b.a.ReadHistory(ctx, &runtime.ReadHistoryRequest{Session: cref})
	if err != nil || len(h.Messages) != 4 {
		t.Errorf("history of the copy: %d messages, %v", len(h.Messages), err)
	}
	if h, err = b.a.ReadHistory(ctx, &runtime.ReadHistoryRequest{Session: ref}); err != nil || len(h.Messages) != 2 {
		t.Errorf("history of the source: %d messages, %v", len(h.Messages), err)
	}

	yes, no := true, false
	if _, err := b.a.UpdateSession(ctx, &runtime.UpdateSessionRequest{Session: ref, Archived: &yes}); err != nil {
		t.Fatal(err)
	}
	if _, there := b.rows(true)[ref.NativeID]; !there {
		t.Error("not archived")
	}
	if row := b.rows(false, ref)[ref.NativeID]; row.Archived == nil || !*row.Archived {
		t.Errorf("a bound row of the archive: %+v", row)
	}
	if _, _, err := b.prepare(ref, runtime.Part{Text: "archived"}); codes.Of(err) == "" {
		t.Error("an archived conversation was continued")
	}
	if _, err := b.a.UpdateSession(ctx, &runtime.UpdateSessionRequest{Session: ref, Archived: &no}); err != nil {
		t.Fatal(err)
	}
	id, _ = b.send(ref, "back again")
	b.sink.ended(t, id)

	if err := b.a.DetachSession(ctx, &runtime.DetachSessionRequest{Session: ref, Mode: runtime.DetachModeReset}); err != nil {
		t.Fatal(err)
	}
	fresh := ref
	fresh.NativeID = ""
	id, after := b.send(fresh, "anew")
	if after.NativeID == ref.NativeID {
		t.Error("the old thread was used after a reset")
	}
	b.sink.ended(t, id)
	if _, there := b.rows(true)[ref.NativeID]; !there {
		t.Error("the old thread is not in the archive")
	}
}

// What a person chose survives a restart, and the reply runs with it.
func TestPermissionsAreRestored(t *testing.T) {
	rules.Covers(t, "CX-11", "CX-03")
	b := newBench(t, "")
	outside := filepath.Join(b.home, "free")
	b.model.Add(modeltest.Script{Match: "free", Steps: []modeltest.Step{
		modeltest.Call("exec_command", `{"cmd":"touch `+outside+`"}`), modeltest.Text("done"),
	}})
	ref := b.session("s")
	if _, err := b.a.SetSettings(t.Context(), &runtime.SetSettingsRequest{Session: ref, Options: map[string]string{optPermissions: permFull, optMode: "plan"}}); err != nil {
		t.Fatal(err)
	}
	id, ref := b.send(ref, "hello")
	b.sink.ended(t, id)
	b.restart()
	id, ref = b.send(ref, "free")
	if end := b.sink.ended(t, id); end.Reason != runtime.EndReasonCompleted {
		t.Errorf("end %+v", end)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("full access was not restored: %v", err)
	}
	s, err := b.a.GetSettings(t.Context(), &runtime.GetSettingsRequest{Session: ref})
	if err != nil || valueOf(s, optPermissions) != permFull || valueOf(s, optMode) != "plan" {
		t.Errorf("%s %s, %v", valueOf(s, optPermissions), valueOf(s, optMode), err)
	}
	for _, e := range b.sink.all() {
		if e.InteractionOpened != nil {
			t.Error("full access asked")
		}
	}
}

// A profile that is gone from the configuration is never replaced by another one.
func TestRemovedProfile(t *testing.T) {
	rules.Covers(t, "CX-11")
	b := newBench(t, "")
	id, ref := b.send(b.session("s"), "hello")
	b.sink.ended(t, id)
	b.stop(b.a)
	files, err := filepath.Glob(filepath.Join(b.home, "sessions", "*", "*", "*", "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.ReplaceAll(string(text), `"id":":workspace"`, `"id":"mine"`)
	if changed == string(text) {
		t.Fatal("no profile in the file")
	}
	if err := os.WriteFile(files[0], []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	b.start()
	if _, _, err := b.prepare(ref, runtime.Part{Text: "again"}); codes.Of(err) != codes.PermissionsNotRestored {
		t.Errorf("%v", err)
	}
	if _, err := b.a.SetSettings(t.Context(), &runtime.SetSettingsRequest{Session: ref, Options: map[string]string{optPermissions: permReadOnly}}); err != nil {
		t.Fatal(err)
	}
	id, _ = b.send(ref, "after a choice")
	b.sink.ended(t, id)
	if n := b.model.Count("again"); n != 0 {
		t.Error("the model was asked without permissions")
	}
}

// The default models run JavaScript; consent looks the same.
func TestCodeMode(t *testing.T) {
	b := newBench(t, "")
	ref := b.session("s")
	model := "gpt-5.6-luna"
	if _, err := b.a.SetSettings(t.Context(), &runtime.SetSettingsRequest{Session: ref, ModelID: &model}); err != nil {
		t.Fatal(err)
	}
	b.model.Add(modeltest.Script{Match: "code", Steps: []modeltest.Step{
		modeltest.Custom("functions/exec", `const r = await tools.exec_command({cmd:'echo hi', sandbox_permissions:'require_escalated', justification:'why not'}); text(r.output);`),
		modeltest.Text("ran"),
	}})
	id, ref := b.send(ref, "code")
	ask := b.sink.opened(t, id)
	if ask.Approval == nil || !strings.Contains(ask.Approval.Subject, "echo hi") {
		t.Errorf("approval %+v", ask.Approval)
	}
	b.resolve(ref, allow(ask.InteractionID))
	if end := b.sink.ended(t, id); end.Reason != runtime.EndReasonCompleted {
		t.Errorf("end %+v", end)
	}
}

// A configuration that cannot be loaded is a status with a sentence, not a lost prompt.
func TestBrokenConfiguration(t *testing.T) {
	b := newBench(t, "")
	b.stop(b.a)
	if err := os.WriteFile(filepath.Join(b.home, "config.toml"), []byte("model = ["), 0o600); err != nil {
		t.Fatal(err)
	}
	b.start()
	if _, _, err := b.prepare(b.session("s"), runtime.Part{Text: "x"}); codes.Of(err) != codeConfig {
		t.Errorf("%v", err)
	}
	now := time.Duration(0)
	s, err := b.a.Health(t.Context(), &runtime.HealthRequest{MaxAge: &now})
	if err != nil || s.Reason != codeConfig {
		t.Errorf("%+v, %v", s, err)
	}
}
