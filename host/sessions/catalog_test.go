package sessions

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func native(id, title string) runtime.Session {
	return runtime.Session{
		Ref: runtime.SessionRef{NativeID: id}, Title: title, Continuation: runtime.ContinuationAllowed,
		Actions: []runtime.SessionAction{runtime.SessionActionRename, runtime.SessionActionArchive},
	}
}

func titles(rows []Row) []string {
	var list []string
	for _, r := range rows {
		list = append(list, r.Title)
	}
	return list
}

func (r *rig) list(strict bool) []Row {
	r.t.Helper()
	rows, err := r.List(r.t.Context(), strict)
	if err != nil {
		r.t.Fatal(err)
	}
	return rows
}

// Our records and the runtime's rows are joined by the runtime's name; ours come first.
func TestCatalogJoins(t *testing.T) {
	r := newRig(t)
	key := r.create()
	id := r.send(key, "ours", "k")
	r.emit(ended(id))
	mine := native("native-"+key, "")
	mine.Continuation = runtime.ContinuationInUse
	r.f.rows = []runtime.Session{native("n2", "second"), mine, native("n1", "first")}
	rows := r.list(true)
	if diff := cmp.Diff([]string{"ours", "second", "first"}, titles(rows)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if rows[0].Key != key || rows[0].Native || rows[1].Key != hashedKey("n2") || !rows[1].Native || rows[1].SessionID != "" {
		t.Errorf("rows %+v", rows)
	}
	if a := rows[1].Actions; !a.Rename || a.Reset || a.Delete || !a.Pin || !a.Archive {
		t.Errorf("a native row allows %+v", a)
	}
	if a := rows[0].Actions; !a.Rename || !a.Reset || !a.Delete || !a.Archive {
		t.Errorf("ours allows %+v", a)
	}
}

// A native conversation continued from a phone keeps the key phones know it by.
func TestContinueANativeConversation(t *testing.T) {
	rules.Covers(t, "CX-17")
	r := newRig(t)
	n := native("n1", "from the computer")
	n.Ref.ProjectPath = t.TempDir()
	r.f.rows = []runtime.Session{n, native("n2", "other")}
	key := r.list(true)[0].Key
	id := r.send(key, "go on", "k")
	r.f.mu.Lock()
	p := r.f.prepared[id].Session
	r.f.mu.Unlock()
	if diff := cmp.Diff(runtime.SessionRef{SessionID: key, NativeID: "n1", ProjectPath: n.Ref.ProjectPath}, p); diff != "" {
		t.Errorf("prepared (-want +got):\n%s", diff)
	}
	r.emit(ended(id))
	for _, when := range []string{"now", "after a restart"} {
		rows := r.list(true)
		if len(rows) != 2 || rows[0].Key != key || rows[0].Title != "from the computer" || !rows[0].Native || rows[0].Actions.Delete {
			t.Errorf("%s: rows %+v", when, rows)
		}
		if got, err := r.Send(t.Context(), prompt(key, "go on", "k")); err != nil || got != id {
			t.Errorf("%s: the receipt is %q, %v", when, got, err)
		}
		r.restart()
		r.up()
	}
}

// Only a whole scan takes rows away; a broken one is an error for who needs all of it, and what is known for the rest.
func TestIncompleteScans(t *testing.T) {
	rules.Covers(t, "SYNC-03", "STORE-02")
	for _, x := range []struct {
		name string
		list func(*runtime.ListSessionsRequest, func([]runtime.Session) error) (*runtime.ScanEnd, error)
	}{
		{"fails", func(*runtime.ListSessionsRequest, func([]runtime.Session) error) (*runtime.ScanEnd, error) {
			return nil, codes.New(codes.StoreUnreadable)
		}},
		{"breaks off", func(_ *runtime.ListSessionsRequest, send func([]runtime.Session) error) (*runtime.ScanEnd, error) {
			_ = send([]runtime.Session{native("n3", "new")})
			return nil, errors.New("stream broken")
		}},
		{"says so", func(_ *runtime.ListSessionsRequest, send func([]runtime.Session) error) (*runtime.ScanEnd, error) {
			return &runtime.ScanEnd{WarningCode: codes.StoreUnreadable}, send([]runtime.Session{native("n3", "new")})
		}},
		{"names one twice", func(_ *runtime.ListSessionsRequest, send func([]runtime.Session) error) (*runtime.ScanEnd, error) {
			return &runtime.ScanEnd{Complete: true}, send([]runtime.Session{native("n3", "new"), native("n3", "again")})
		}},
		{"names nothing", func(_ *runtime.ListSessionsRequest, send func([]runtime.Session) error) (*runtime.ScanEnd, error) {
			return &runtime.ScanEnd{Complete: true}, send([]runtime.Session{native("", "anonymous")})
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := newRig(t)
			r.create()
			r.f.rows = []runtime.Session{native("n1", "one"), native("n2", "two")}
			r.list(true)
			r.f.onList = x.list
			if _, err := r.List(t.Context(), true); codes.Of(err) != codes.CatalogIncomplete {
				t.Errorf("strict: %v", err)
			}
			got := strings.Join(titles(r.list(false)), " ")
			if !strings.Contains(got, "one") || !strings.Contains(got, "two") {
				t.Errorf("rows went away: %s", got)
			}
			r.f.onList = nil
			r.f.rows = []runtime.Session{native("n2", "two")}
			if diff := cmp.Diff([]string{"Fake", "two"}, titles(r.list(true))); diff != "" {
				t.Errorf("a whole scan (-want +got):\n%s", diff)
			}
		})
	}
}

// A row that cannot be read keeps the old descriptor, whoever it belongs to.
func TestUnreadableRows(t *testing.T) {
	r := newRig(t)
	r.f.rows = []runtime.Session{native("n1", "one")}
	r.list(true)
	r.f.rows = []runtime.Session{{Ref: runtime.SessionRef{NativeID: "n1"}, Unreadable: true}, {Ref: runtime.SessionRef{NativeID: "n9"}, Unreadable: true}}
	if diff := cmp.Diff([]string{"one"}, titles(r.list(true))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Name and archive state come from rows of exactly that conversation and project; nothing empty erases anything.
func TestNamesAreReconciled(t *testing.T) {
	rules.Covers(t, "CX-06")
	r := newRig(t)
	project := t.TempDir()
	r.f.projects = []runtime.Project{{Path: project}}
	row, err := r.Create(t.Context(), "", projectID(project), "")
	if err != nil {
		t.Fatal(err)
	}
	id := r.send(row.Key, "the first prompt", "k")
	r.emit(ended(id))
	scan := func(change func(*runtime.Session)) Row {
		t.Helper()
		s := native("native-"+row.Key, "")
		s.Ref.ProjectPath = project
		change(&s)
		r.f.rows = []runtime.Session{s}
		if _, err := r.List(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		got, err := r.Lookup(t.Context(), row.Key)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	yes, no := true, false
	for _, x := range []struct {
		name     string
		change   func(*runtime.Session)
		title    string
		archived bool
	}{
		{"no name", func(*runtime.Session) {}, "the first prompt", false},
		{"another project", func(s *runtime.Session) { s.Title, s.Ref.ProjectPath, s.Archived = "other", "/elsewhere", &yes }, "the first prompt", false},
		{"a name", func(s *runtime.Session) { s.Title = "named at the computer" }, "named at the computer", false},
		{"an empty name", func(*runtime.Session) {}, "named at the computer", false},
		{"archived", func(s *runtime.Session) { s.Archived = &yes }, "named at the computer", true},
		{"no word of it", func(*runtime.Session) {}, "named at the computer", true},
		{"back", func(s *runtime.Session) { s.Archived = &no }, "named at the computer", false},
	} {
		if got := scan(x.change); got.Title != x.title || got.Archived != x.archived {
			t.Errorf("%s: got %q, %t; want %q, %t", x.name, got.Title, got.Archived, x.title, x.archived)
		}
	}
	r.f.rows = nil // absence is no evidence
	if got := r.list(true); len(got) != 1 || got[0].Archived {
		t.Errorf("missing from a scan: %+v", got)
	}
	r.restart()
	if got, _ := r.Lookup(t.Context(), row.Key); got.Title != "named at the computer" {
		t.Errorf("after a restart: %q", got.Title)
	}
}

// A change a phone made is not undone by a scan that began before it.
func TestManagementFencesScans(t *testing.T) {
	rules.Covers(t, "SYNC-04")
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	r.emit(ended(id))
	gone := r.create()
	id = r.send(gone, "delete me", "k")
	r.emit(ended(id))
	began, release := make(chan struct{}), make(chan struct{})
	old := []runtime.Session{native("native-"+key, "old name"), native("native-"+gone, "delete me")}
	r.f.onList = func(_ *runtime.ListSessionsRequest, send func([]runtime.Session) error) (*runtime.ScanEnd, error) {
		close(began)
		<-release
		r.f.onList = nil
		return &runtime.ScanEnd{Complete: true}, send(old)
	}
	listed := make(chan []Row, 1)
	go func() { rows, _ := r.List(t.Context(), true); listed <- rows }()
	<-began
	before := r.Generation()
	if _, err := r.Rename(t.Context(), key, "new name"); err != nil {
		t.Fatal(err)
	}
	if err := r.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if r.Generation() < before+2 {
		t.Error("the writes were not counted")
	}
	close(release)
	if diff := cmp.Diff([]string{"new name"}, titles(<-listed)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What an event said after the scan looked is newer than the scan.
func TestEventsOverScans(t *testing.T) {
	r := newRig(t)
	r.f.rows = []runtime.Session{native("n1", "scanned")}
	r.f.onList = func(_ *runtime.ListSessionsRequest, send func([]runtime.Session) error) (*runtime.ScanEnd, error) {
		seq := r.seq
		s := native("n1", "told")
		n := native("n2", "appeared")
		r.emit(runtime.Event{SessionChanged: &s}, runtime.Event{SessionChanged: &n})
		return &runtime.ScanEnd{Complete: true, AsOfSeq: max(seq, 1) /* before both */}, send([]runtime.Session{native("n1", "scanned")})
	}
	r.emit(runtime.Event{CatalogChanged: &runtime.CatalogChanged{}})
	got := titles(r.list(true))
	if diff := cmp.Diff([]string{"told", "appeared"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestScansAreShared(t *testing.T) {
	r := newRig(t)
	release := make(chan struct{})
	r.f.onList = func(*runtime.ListSessionsRequest, func([]runtime.Session) error) (*runtime.ScanEnd, error) {
		<-release
		return &runtime.ScanEnd{Complete: true}, nil
	}
	first, second := r.refresh(), r.refresh()
	if first != second {
		t.Error("two scans at once")
	}
	r.create()
	if third := r.refresh(); third == first {
		t.Error("a scan that a change overtook is still joined")
	}
	close(release)
	<-first.done
}

func TestPreviews(t *testing.T) {
	rules.Covers(t, "SYNC-09")
	r := newRig(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := native("n1", "t")
	s.LastMessage = &runtime.LastMessage{Role: runtime.RoleAssistant, Text: "# Hi\n\n**you**", CreatedAt: at}
	r.f.rows = []runtime.Session{s}
	if row := r.list(true)[0]; row.Preview != "Hi you" || !row.LastActivityAt.Equal(at) {
		t.Errorf("row %+v", row)
	}
	s.LastMessage = nil // not read this time
	r.f.rows = []runtime.Session{s}
	if row := r.list(true)[0]; row.Preview != "Hi you" {
		t.Errorf("row %+v", row)
	}
	key := r.create()
	id := r.send(key, "`prompt`", "k")
	if row, _ := r.Lookup(t.Context(), key); row.Preview != "prompt" {
		t.Errorf("row %+v", row)
	}
	r.emit(tool(id, runtime.ToolCall{CallID: "c", Output: runtime.JSON([]byte(`"tools do not count"`))}), text(id, "a", "an *answer*"), ended(id))
	if row, _ := r.Lookup(t.Context(), key); row.Preview != "an *answer*" {
		t.Errorf("row %+v", row)
	}
}

func TestArchived(t *testing.T) {
	r := newRig(t)
	r.f.rows = []runtime.Session{native("n1", "one")}
	r.list(true)
	yes := true
	old := native("old", "old")
	r.f.onList = func(q *runtime.ListSessionsRequest, send func([]runtime.Session) error) (*runtime.ScanEnd, error) {
		if !q.Archived {
			return &runtime.ScanEnd{Complete: true}, send(r.f.rows)
		}
		return &runtime.ScanEnd{Complete: true}, send([]runtime.Session{old})
	}
	rows, err := r.Archived(t.Context())
	if err != nil || len(rows) != 1 || rows[0].Title != "old" || !rows[0].Archived {
		t.Errorf("archived %+v, %v", rows, err)
	}
	if diff := cmp.Diff([]string{"one"}, titles(r.list(true))); diff != "" {
		t.Errorf("the list (-want +got):\n%s", diff)
	}
	key := r.create()
	id := r.send(key, "mine", "k")
	if _, err := r.Archive(t.Context(), key, true); codes.Of(err) != codes.SessionBusy {
		t.Errorf("while it runs: %v", err)
	}
	r.emit(ended(id))
	if _, err := r.Archive(t.Context(), key, yes); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one"}, titles(r.list(true))); diff != "" {
		t.Errorf("the list (-want +got):\n%s", diff)
	}
	if rows, _ := r.Archived(t.Context()); len(rows) != 2 {
		t.Errorf("archived %+v", rows)
	}
}
