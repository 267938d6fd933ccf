package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/sdk/modeltest"
)

var catalogScenarios = []scenario{
	{"paging", paging},
	{"rename", rename},
	{"archive", archive},
	{"reset", reset},
	{"delete", remove},
	{"sync-full", syncFull},
	{"sync-unchanged", syncUnchanged},
	{"sync-delta", syncDelta},
	{"sync-expired", syncExpired},
	{"activity", activity},
	{"artifact", artifact},
	{"models", models},
	{"skills", skills},
	{"profile-read", profileRead},
	{"profile-conflict", profileConflict},
}

// short answers one prompt and gives its conversation.
func short(s *scene) (key, run string) {
	key = s.create()
	run = s.send(key, s.say(modeltest.Text("Short.")))
	s.reply(run, "Short.")
	return key, run
}

// paging reads 95 messages, three of which are those of a command.
func paging(s *scene) {
	key := s.create()
	run := s.send(key, s.say(modeltest.Call("exec_command", `{"cmd":"true"}`), modeltest.Text("0")))
	s.reply(run, "0")
	for i := 1; i <= 46; i++ {
		run := s.send(key, s.say(modeltest.Text(fmt.Sprint(i))))
		s.reply(run, fmt.Sprint(i))
	}
	all, pages := s.history(key)
	if !slices.Equal(pages, []int{40, 40, 15}) {
		s.fail("pages of %v messages, want 40, 40, 15", pages)
	}
	seen := map[string]bool{}
	for _, m := range all {
		if seen[m.ID] {
			s.fail("message %s twice", m.ID)
		}
		seen[m.ID] = true
	}
	if all[1].Role != "tool" || all[94].Text != "46" || all[2].Text != "0" {
		s.fail("order: %s %q %q", all[1].Role, all[2].Text, all[94].Text)
	}
	s.refused(clawket.MethodChatHistory, map[string]any{"sessionKey": key, "cursor": "nonsense"}, "")
}

func rename(s *scene) {
	key, _ := short(s)
	s.call(clawket.MethodSessionsRename, map[string]any{"sessionKey": key, "title": "A new name"}, nil)
	if row, _ := s.row(key); row.Title != "A new name" {
		s.fail("title %q", row.Title)
	}
	s.refused(clawket.MethodSessionsRename, map[string]any{"sessionKey": key, "title": "  "}, "")
}

func archive(s *scene) {
	key, _ := short(s)
	put := func(archived bool) {
		s.call(clawket.MethodSessionsArchive, map[string]any{"sessionKey": key, "archived": archived}, nil)
	}
	inArchive := func() bool {
		var rows []clawket.Session
		s.call(clawket.MethodSessionsArchived, nil, &rows)
		return slices.ContainsFunc(rows, func(r clawket.Session) bool { return r.Key == key && r.Archived != nil && *r.Archived })
	}
	put(true)
	if _, ok := s.row(key); ok || !inArchive() {
		s.fail("archived: in the list %v, in the archive %v", ok, inArchive())
	}
	put(false)
	if _, ok := s.row(key); !ok || inArchive() {
		s.fail("taken out: in the list %v, in the archive %v", ok, inArchive())
	}
	run := s.send(key, s.say(modeltest.Text("Back.")))
	s.reply(run, "Back.")
}

func reset(s *scene) {
	key, run := short(s)
	prompt := fmt.Sprintf("%s %d.", s.title, s.prompts)
	s.call(clawket.MethodSessionsReset, map[string]any{"sessionKey": key}, nil)
	if all, _ := s.history(key); len(all) != 0 {
		s.fail("%d messages after the reset", len(all))
	}
	if again := s.send(key, prompt); again != run {
		s.fail("the receipt did not survive the reset")
	}
	next := s.send(key, s.say(modeltest.Text("Afresh.")))
	s.reply(next, "Afresh.")
	if all, _ := s.history(key); len(all) != 2 {
		s.fail("%d messages in the new beginning", len(all))
	}
}

func remove(s *scene) {
	key, _ := short(s)
	s.call(clawket.MethodSessionsDelete, map[string]any{"sessionKey": key}, nil)
	if _, ok := s.row(key); ok {
		s.fail("the conversation is still listed")
	}
	s.refused(clawket.MethodChatSend, map[string]any{"sessionKey": key, "text": "x", "idempotencyKey": "after delete"}, "")
}

// snapshot is an answer of sessions.sync.
type snapshot struct {
	Kind, Epoch, Revision, BaseRevision string
	Total                               int
	Sessions, Upserts                   []clawket.Session
	RemovedKeys, Order                  []string
	NextOffset                          *int
}

func (s *scene) sync(params map[string]any) snapshot {
	var a snapshot
	s.call(clawket.MethodSessionsSync, params, &a)
	return a
}

func base(a snapshot) map[string]any {
	return map[string]any{"base": map[string]any{"epoch": a.Epoch, "revision": a.Revision}}
}

// quiet reads the catalog until it stays the same: the preview of a reply that just ended comes a moment later.
func (s *scene) quiet() snapshot {
	a := s.sync(map[string]any{})
	s.eventually("the catalog is quiet", func() bool {
		before := a
		a = s.sync(map[string]any{})
		return a.Revision == before.Revision
	})
	return a
}

func syncFull(s *scene) {
	a := s.sync(map[string]any{})
	rows := a.Sessions
	for next := a.NextOffset; next != nil; {
		p := s.sync(map[string]any{"page": map[string]any{"epoch": a.Epoch, "revision": a.Revision, "offset": *next}})
		rows = append(rows, p.Sessions...)
		next = p.NextOffset
	}
	if a.Kind != "full" || len(rows) != a.Total || a.Total < 5 {
		s.fail("kind %s, %d of %d rows", a.Kind, len(rows), a.Total)
	}
	s.refused(clawket.MethodSessionsSync, map[string]any{"more": 1}, "")
}

func syncUnchanged(s *scene) {
	if a := s.sync(base(s.quiet())); a.Kind != "unchanged" || len(a.Sessions) != 0 {
		s.fail("kind %s", a.Kind)
	}
}

func syncDelta(s *scene) {
	before := s.quiet()
	key, _ := short(s)
	s.quiet()
	a := s.sync(base(before))
	if a.Kind != "delta" || a.BaseRevision != before.Revision || len(a.Upserts) != 1 || a.Upserts[0].Key != key || !slices.Contains(a.Order, key) {
		s.fail("delta %+v", a)
	}
}

func syncExpired(s *scene) {
	a := s.sync(map[string]any{"page": map[string]any{"epoch": strings.Repeat("0", 32), "revision": strings.Repeat("1", 32), "offset": 0}})
	if a.Kind != "expired" || a.Epoch == "" {
		s.fail("kind %s", a.Kind)
	}
}

func activity(s *scene) {
	key := s.create()
	state := func() clawket.Activity {
		var rows []clawket.Activity
		s.call(clawket.MethodSessionsActivity, map[string]any{"keys": []string{key, "nobody"}}, &rows)
		i := slices.IndexFunc(rows, func(a clawket.Activity) bool { return a.Key == key })
		if len(rows) != 2 || i < 0 {
			s.fail("activity %+v", rows)
		}
		return rows[i]
	}
	run := s.send(key, s.say(modeltest.Text("a"), modeltest.Gate(s.title), escalated("true"), modeltest.Text("b")))
	s.check(s.model.WaitGate(s.ctx, s.title, 1))
	if a := state(); a.State != "running" {
		s.fail("while it replies: %+v", a)
	}
	s.model.Release(s.title)
	ask := s.asked(run, "command")
	if a := state(); a.State != "waiting" || a.Attention == nil || *a.Attention != "approval" {
		s.fail("while it asks: %+v", a)
	}
	s.decide(ask, "deny")
	s.end(run, "end_turn")
	if a := state(); a.State != "idle" {
		s.fail("afterwards: %+v", a)
	}
}

// artifact reads a file the agent names, in three pieces.
func artifact(s *scene) {
	content := bytes.Repeat([]byte("0123456789abcde\n"), (2*131072+999)/16)
	s.check(os.WriteFile(filepath.Join(s.project, "report.txt"), content, 0o600))
	key := s.create()
	run := s.send(key, s.say(modeltest.Text("Here: [the report](report.txt).")))
	s.end(run, "end_turn")
	all, _ := s.history(key)
	last := all[len(all)-1]
	if len(last.Attachments) != 1 || last.Attachments[0].ArtifactID == "" {
		s.fail("no artifact in %+v", last)
	}
	var file clawket.Artifact
	s.call(clawket.MethodArtifactsOpen, map[string]any{"sessionKey": key, "artifactId": last.Attachments[0].ArtifactID}, &file)
	var got []byte
	pieces := 0
	for done := false; !done; pieces++ {
		var p clawket.Piece
		s.call(clawket.MethodArtifactsRead, map[string]any{"sessionKey": key, "id": file.ID, "offset": len(got)}, &p)
		b, err := base64.StdEncoding.DecodeString(p.Data)
		s.check(err)
		got, done = append(got, b...), p.Done
	}
	if pieces != 3 || sha256.Sum256(got) != sha256.Sum256(content) {
		s.fail("%d pieces, %d bytes of %d", pieces, len(got), len(content))
	}
	s.check(os.WriteFile(filepath.Join(s.project, "report.txt"), []byte("changed"), 0o600))
	s.refused(clawket.MethodArtifactsRead, map[string]any{"sessionKey": key, "id": file.ID, "offset": 0}, "")
}

func models(s *scene) {
	key, _ := short(s)
	var m struct {
		CurrentModel, CurrentProvider string
		Models                        []clawket.Model
		Permissions                   struct{ Mode string }
	}
	s.call(clawket.MethodModelsList, map[string]any{"sessionKey": key}, &m)
	if m.CurrentModel != "gpt-5.5" || len(m.Models) < 5 || m.Permissions.Mode != "workspace" {
		s.fail("models %+v", m)
	}
	s.call(clawket.MethodModelsPermission, map[string]any{"sessionKey": key, "mode": "read-only"}, &m)
	if m.Permissions.Mode != "read-only" {
		s.fail("permissions %+v", m.Permissions)
	}
	s.refused(clawket.MethodModelsSelect, map[string]any{"sessionKey": key, "scope": "session", "provider": m.CurrentProvider, "model": "no such model"}, "")
	s.refused(clawket.MethodModelsFast, map[string]any{"sessionKey": key, "enabled": true}, "")
}

func skills(s *scene) {
	file := filepath.Join(s.project, ".agents", "skills", "demo", "SKILL.md")
	s.check(os.MkdirAll(filepath.Dir(file), 0o700))
	s.check(os.WriteFile(file, []byte("---\nname: demo\ndescription: A demo.\n---\nSay hi.\n"), 0o600))
	key, _ := short(s)
	var list clawket.Skills
	s.eventually("the skill is listed", func() bool {
		s.call(clawket.MethodSkillsList, map[string]any{"sessionKey": key}, &list)
		return slices.ContainsFunc(list.Skills, func(k clawket.Skill) bool { return k.Name == "demo" && k.Invocation == "$demo " })
	})
}

// profileDefaults is the answer of profile.defaults.
type profileDefaults struct {
	Model    *string
	Version  string
	Editable bool
	Models   []struct{ ID string }
}

func profileRead(s *scene) {
	var d profileDefaults
	s.call("profile.defaults", nil, &d)
	if d.Model == nil || *d.Model != "gpt-5.5" || d.Version == "" || len(d.Models) < 5 {
		s.fail("defaults %+v", d)
	}
	var projects []struct{ ID string }
	s.call("profile.projects", nil, &projects)
	if len(projects) == 0 {
		s.fail("no projects")
	}
	in := map[string]any{"projectId": projects[0].ID}
	for _, method := range []string{"profile.skills", "profile.instructions", "profile.plugins"} {
		s.call(method, in, nil)
	}
	for _, method := range []string{"profile.usage", "profile.mcp"} {
		s.call(method, nil, nil)
	}
}

// profileConflict writes a document and shows that a stale version and another provider's defaults are left alone.
func profileConflict(s *scene) {
	var projects []struct{ ID string }
	s.call("profile.projects", nil, &projects)
	var files []struct{ ID, Scope string }
	s.call("profile.instructions", map[string]any{"projectId": projects[0].ID}, &files)
	i := slices.IndexFunc(files, func(f struct{ ID, Scope string }) bool { return f.Scope == "project" })
	if i < 0 {
		s.fail("instructions %+v", files)
	}
	var doc struct{ Version, Content string }
	s.call("profile.document", map[string]any{"id": files[i].ID}, &doc)
	set := map[string]any{"id": files[i].ID, "content": "# Rules\n", "version": doc.Version}
	s.call("profile.document.set", set, &doc)
	if b, err := os.ReadFile(filepath.Join(s.project, "AGENTS.md")); err != nil || string(b) != "# Rules\n" {
		s.fail("document %q, %v", b, err)
	}
	s.refused("profile.document.set", set, "changed")
	var d profileDefaults
	s.call("profile.defaults", nil, &d)
	s.refused("profile.defaults.set", map[string]any{"model": nil, "thinking": nil, "version": d.Version}, "")
	s.refused("profile.defaults.set", map[string]any{"model": nil, "thinking": nil, "version": d.Version}, "changed")
}
