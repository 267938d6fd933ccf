package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
)

var t0 = time.Date(2026, 10, 1, 12, 0, 0, 123456789, time.UTC)

func open(tb testing.TB, dir string) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), dir, nil)
	if err != nil {
		tb.Fatalf("Open: %v (%v)", err, errors.Unwrap(err))
	}
	tb.Cleanup(func() { _ = s.Close() })
	if _, bench := tb.(*testing.B); !bench { // no test pulls a plug, and the disk is the slow part
		_, err := s.write.Exec(`PRAGMA synchronous = OFF`)
		must(tb, err)
	}
	return s
}

// A receipt is worth nothing if a power cut can take it back.
func TestEveryCommitIsOnDisk(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), t.TempDir(), nil)
	must(t, err)
	defer s.Close()
	var mode string
	var level int
	must(t, s.write.QueryRow(`SELECT * FROM pragma_journal_mode, pragma_synchronous`).Scan(&mode, &level))
	if mode != "wal" || level != 2 {
		t.Errorf("journal %s, synchronous %d; want wal, 2 (full)", mode, level)
	}
	if _, err := s.read.Exec(`DELETE FROM meta`); err == nil {
		t.Error("a connection for reading writes")
	}
}

func session(id string) Session {
	return Session{
		Runtime: "codex", SessionID: id, NativeID: "n-" + id, ProjectPath: "/p", Title: "T", TitleExplicit: true,
		Preview: "hi", ModelID: "m", ProviderID: "p", ParentID: "x", Imported: true, Archived: true, Revision: 7,
		CreatedAt: t0, UpdatedAt: t0.Add(1), LastActivityAt: t0.Add(2),
	}
}

func run(id, session, key string) Run {
	return Run{
		Runtime: "codex", SessionID: session, RunID: id, Key: key, Fingerprint: strings.Repeat("a", 64),
		ThinkingLevel: "high", AcceptedAt: t0,
	}
}

func wantCode(tb testing.TB, err error, code string) {
	tb.Helper()
	if got := codes.Of(err); got != code {
		tb.Errorf("code = %q (%v: %v), want %q", got, err, errors.Unwrap(err), code)
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%v (%v)", err, errors.Unwrap(err))
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	must(t, s.PutSession(t.Context(), session("b")))
	must(t, s.PutSession(t.Context(), session("a")))
	changed := session("b")
	changed.Title, changed.LastActivityAt = "new", time.Time{}
	must(t, s.PutSession(t.Context(), changed))
	must(t, s.PutSession(t.Context(), Session{Runtime: "demo", SessionID: "a"}))
	must(t, s.Close())

	s = open(t, dir)
	got, err := s.Sessions(t.Context(), "codex")
	must(t, err)
	if d := cmp.Diff([]Session{changed, session("a")}, got); d != "" {
		t.Errorf("sessions after reopening, in order of creation (-want +got):\n%s", d)
	}
}

func TestReceipts(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "SYNC-12")
	dir := t.TempDir()
	s := open(t, dir)
	must(t, s.Accept(t.Context(), run("r1", "s", "k1"), session("s")))
	must(t, s.Accept(t.Context(), run("r2", "s", "__proto__"), session("s")))
	must(t, s.Accept(t.Context(), run("r3", "s2", "k1"), session("s2")))

	again := session("s")
	again.Title = "must not be written"
	wantCode(t, s.Accept(t.Context(), run("r9", "s", "k1"), again), codes.OperationConflict)
	if list, _ := s.Sessions(t.Context(), "codex"); list[0].Title != "T" {
		t.Errorf("a refused receipt changed its conversation: %+v", list[0])
	}

	must(t, s.SetOutcome(t.Context(), "codex", "r1", 1, "native-1"))
	must(t, s.SetOutcome(t.Context(), "codex", "r1", 2, ""))
	must(t, s.EndRun(t.Context(), "codex", "r1", 3, "interrupted", t0.Add(time.Minute)))
	must(t, s.EndRun(t.Context(), "codex", "r1", 4, "late", t0.Add(time.Hour)))
	wantCode(t, s.SetOutcome(t.Context(), "codex", "none", 1, ""), codes.Internal)
	must(t, s.DeleteSession(t.Context(), "codex", "s"))
	must(t, s.Close())

	s = open(t, dir)
	want := run("r1", "s", "k1")
	want.NativeRunID, want.Outcome, want.Ended, want.EndReason, want.EndCode = "native-1", 2, true, 3, "interrupted"
	want.EndedAt = t0.Add(time.Minute)
	got, ok, err := s.RunByKey(t.Context(), "codex", "s", "k1")
	if d := cmp.Diff(want, got); d != "" || !ok || err != nil {
		t.Errorf("receipt after deletion and restart (-want +got), %v %v:\n%s", ok, err, d)
	}
	if _, ok, err := s.RunByKey(t.Context(), "codex", "s", "K1"); ok || err != nil {
		t.Errorf("another key: %v %v, want not found", ok, err)
	}
	if got, ok, _ := s.Run(t.Context(), "codex", "r2"); !ok || got.Key != "__proto__" {
		t.Errorf("Run(r2) = %+v %v", got, ok)
	}
	open, err := s.OpenRuns(t.Context(), "codex")
	must(t, err)
	if len(open) != 2 || open[0].RunID != "r2" || open[1].RunID != "r3" {
		t.Errorf("OpenRuns = %+v, want r2, r3", open)
	}
	of, err := s.RunsOf(t.Context(), "codex", "s")
	must(t, err)
	if len(of) != 2 || of[0].RunID != "r1" {
		t.Errorf("RunsOf = %+v, want r1, r2", of)
	}
}

func TestReceiptsAreBounded(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	must(t, s.change(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
			INSERT INTO runs (`+runColumns+`) SELECT 'codex', 's', 'r' || i, 'k' || i, '', '', 0, 1, 0, '', '', 0, 0 FROM n`,
			maxReceipts-1)
		return err
	}))
	must(t, s.Accept(t.Context(), run("last", "s", "last"), session("s")))
	wantCode(t, s.Accept(t.Context(), run("more", "s", "more"), session("s")), codes.ReceiptsFull)
	must(t, s.Accept(t.Context(), run("other", "s2", "k"), session("s2")))
}

func TestDiskFullLeavesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	var pages int
	must(t, s.write.QueryRow(`PRAGMA page_count`).Scan(&pages))
	_, err := s.write.Exec(fmt.Sprintf(`PRAGMA max_page_count = %d`, pages))
	must(t, err)
	r := run("r1", "s", "k1")
	r.Key = strings.Repeat("k", 100_000)
	wantCode(t, s.Accept(t.Context(), r, session("s")), codes.StoreFull)
	_, err = s.write.Exec(`PRAGMA max_page_count = 100000`)
	must(t, err)
	if _, ok, err := s.Run(t.Context(), "codex", "r1"); ok || err != nil {
		t.Errorf("a refused receipt is there: %v %v", ok, err)
	}
	if list, err := s.Sessions(t.Context(), "codex"); len(list) != 0 || err != nil {
		t.Errorf("its conversation is there: %v %v", list, err)
	}
	must(t, s.Accept(t.Context(), r, session("s")))
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	fresh := func(t *testing.T, change func(*Store)) string {
		dir := t.TempDir()
		s := open(t, dir)
		must(t, s.PutSession(t.Context(), session("s")))
		change(s)
		must(t, s.Close())
		return dir
	}
	exec := func(query string) func(*Store) {
		return func(s *Store) {
			if _, err := s.write.Exec(query); err != nil {
				panic(err)
			}
		}
	}
	for _, c := range []struct {
		name string
		dir  func(t *testing.T) string
		code string
	}{
		{"a newer schema", func(t *testing.T) string {
			return fresh(t, exec(fmt.Sprintf(`PRAGMA user_version = %d`, len(migrations)+1)))
		}, codes.StoreNewer},
		{"a database of another program", func(t *testing.T) string {
			return fresh(t, exec(`PRAGMA application_id = 1`))
		}, codes.StoreCorrupt},
		{"a file that is no database", func(t *testing.T) string {
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, fileName), []byte(strings.Repeat("garbage ", 1000)), 0o600))
			return dir
		}, codes.StoreCorrupt},
		{"a damaged page", func(t *testing.T) string {
			dir := fresh(t, func(*Store) {})
			f, err := os.OpenFile(filepath.Join(dir, fileName), os.O_RDWR, 0)
			must(t, err)
			_, err = f.WriteAt([]byte(strings.Repeat("\xff", 4096)), 2*4096)
			must(t, errors.Join(err, f.Close()))
			return dir
		}, codes.StoreCorrupt},
		{"a file that was cut", func(t *testing.T) string {
			dir := fresh(t, func(*Store) {})
			must(t, os.Truncate(filepath.Join(dir, fileName), 3*4096))
			return dir
		}, codes.StoreCorrupt},
		{"a directory that is a file", func(t *testing.T) string {
			dir := filepath.Join(t.TempDir(), "file")
			must(t, os.WriteFile(dir, nil, 0o600))
			return dir
		}, codes.StoreReadOnly},
		{"a second host", func(t *testing.T) string {
			dir := t.TempDir()
			open(t, dir)
			return dir
		}, codes.StoreLocked},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := c.dir(t)
			before, _ := os.ReadFile(filepath.Join(dir, fileName))
			s, err := Open(t.Context(), dir, nil)
			if err == nil {
				_ = s.Close()
			}
			wantCode(t, err, c.code)
			after, _ := os.ReadFile(filepath.Join(dir, fileName))
			if string(before) != string(after) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestOpenAfterRefusalAndUncleanEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := open(t, dir)
	if _, err := Open(t.Context(), dir, nil); codes.Of(err) != codes.StoreLocked {
		t.Fatalf("second Open = %v", err)
	}
	must(t, first.PutSession(t.Context(), session("s")))
	// As after SIGKILL: the log is still beside the file and nothing was closed.
	copied := t.TempDir()
	for _, name := range []string{fileName, fileName + "-wal"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(copied, name), b, 0o600))
	}
	must(t, first.Close())
	for _, d := range []string{dir, copied} {
		s := open(t, d)
		if list, err := s.Sessions(t.Context(), "codex"); err != nil || len(list) != 1 {
			t.Errorf("%d sessions, %v", len(list), err)
		}
		must(t, s.Close())
	}
	info, err := os.Stat(filepath.Join(dir, fileName))
	must(t, err)
	if info.Mode().Perm()&0o077 != 0 {
		t.Errorf("mode %v lets others in", info.Mode())
	}
}

func TestMigrateIsAllOrNothing(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", dsn(filepath.Join(t.TempDir(), "x #?%.db")))
	must(t, err)
	defer db.Close()
	must(t, migrate(t.Context(), db, []string{"CREATE TABLE a (x)"}))
	if err := migrate(t.Context(), db, []string{"", "CREATE TABLE b (x); SELECT nonsense"}); err == nil {
		t.Fatal("a failing migration passed")
	}
	must(t, migrate(t.Context(), db, []string{"", "CREATE TABLE b (x)", "CREATE TABLE c (x)"}))
	var version int
	must(t, db.QueryRow(`PRAGMA user_version`).Scan(&version))
	if version != 3 {
		t.Errorf("version %d, want 3", version)
	}
}

func TestCancelledBeforeItsTurnWritesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.PutSession(ctx, session("s")); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want cancelled", err)
	}
	if list, _ := s.Sessions(t.Context(), "codex"); len(list) != 0 {
		t.Error("it was written")
	}
}

func TestOnlyMetadataIsKept(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "STORE-03")
	s := open(t, t.TempDir())
	got, err := collect(t.Context(), s, func(r scanner) (v string, err error) { return v, r.Scan(&v) },
		`SELECT m.name || '.' || p.name FROM sqlite_schema m, pragma_table_info(m.name) p WHERE m.type = 'table'
			AND p.type IN ('TEXT', 'BLOB') ORDER BY 1`)
	must(t, err)
	// A new column that can hold text needs a look: no transcript, prompt or reply may get in.
	want := []string{
		"attention.attention_id", "attention.code", "attention.instance", "attention.native_id", "attention.params",
		"attention.session_id",
		"interactions.answered_by", "interactions.interaction_id", "interactions.run_id", "interactions.runtime",
		"interactions.session_id", "interactions.state", "interactions.subject_hash",
		"meta.key", "meta.value",
		"phones.id", "phones.label", "phones.token_hash",
		"pins.name", "pins.sha256",
		"runs.end_code", "runs.fingerprint", "runs.key", "runs.native_run_id", "runs.run_id", "runs.runtime",
		"runs.session_id", "runs.thinking",
		"sessions.model_id", "sessions.native_id", "sessions.parent_id", "sessions.preview", "sessions.project_path",
		"sessions.provider_id", "sessions.runtime", "sessions.session_id", "sessions.title",
		"state.instance", "state.name", "state.session_id", "state.value", "state_totals.instance",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("columns that hold text (-want +got):\n%s", d)
	}
}

func TestInteractions(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	row := Interaction{
		Runtime: "codex", InteractionID: "i1", SessionID: "s", RunID: "r", Approval: true,
		SubjectHash: strings.Repeat("b", 64), State: Pending, OpenedAt: t0,
	}
	must(t, s.PutInteraction(t.Context(), row))
	wantCode(t, s.PutInteraction(t.Context(), row), codes.OperationConflict)

	var wg sync.WaitGroup
	won := make(chan string, 20)
	for i := range cap(won) {
		by := fmt.Sprint("phone ", i)
		wg.Go(func() {
			if ok, err := s.ClaimInteraction(context.Background(), "codex", "i1", by); err == nil && ok {
				won <- by
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%d phones may answer, want 1", len(won))
	}
	by := <-won
	if ok, err := s.ReleaseInteraction(t.Context(), "codex", "i1"); !ok || err != nil {
		t.Fatalf("release: %v %v", ok, err)
	}
	if ok, err := s.ClaimInteraction(t.Context(), "codex", "i1", by); !ok || err != nil {
		t.Fatalf("claim after release: %v %v", ok, err)
	}
	if ok, err := s.CloseInteraction(t.Context(), "codex", "i1", 1, "", t0.Add(1)); !ok || err != nil {
		t.Fatalf("close: %v %v", ok, err)
	}
	for name, try := range map[string]func() (bool, error){
		"close":   func() (bool, error) { return s.CloseInteraction(t.Context(), "codex", "i1", 2, "x", t0.Add(2)) },
		"claim":   func() (bool, error) { return s.ClaimInteraction(t.Context(), "codex", "i1", "x") },
		"release": func() (bool, error) { return s.ReleaseInteraction(t.Context(), "codex", "i1") },
		"unknown": func() (bool, error) { return s.ClaimInteraction(t.Context(), "codex", "none", "x") },
	} {
		if ok, err := try(); ok || err != nil {
			t.Errorf("%s of a closed one: %v %v, want false", name, ok, err)
		}
	}
	row.State, row.Closure, row.AnsweredBy, row.ClosedAt = Closed, 1, by, t0.Add(1)
	got, ok, err := s.Interaction(t.Context(), "codex", "i1")
	if d := cmp.Diff(row, got); d != "" || !ok || err != nil {
		t.Errorf("record (-want +got), %v %v:\n%s", ok, err, d)
	}
}

func TestLostInteractions(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	for _, id := range []string{"waits", "claimed", "closed"} {
		must(t, s.PutInteraction(t.Context(), Interaction{
			Runtime: "codex", InteractionID: id, SubjectHash: "h", State: Pending, OpenedAt: t0,
		}))
	}
	must(t, s.PutInteraction(t.Context(), Interaction{Runtime: "demo", InteractionID: "waits", State: Pending}))
	_, err := s.ClaimInteraction(t.Context(), "codex", "claimed", "p")
	must(t, err)
	_, err = s.CloseInteraction(t.Context(), "codex", "closed", 1, "", t0)
	must(t, err)

	lost, err := s.LoseInteractions(t.Context(), "codex", 4, t0)
	must(t, err)
	if len(lost) != 2 || lost[0].InteractionID != "waits" || lost[1].State != Answering {
		t.Errorf("lost = %+v", lost)
	}
	for id, want := range map[string]bool{"waits": true, "closed": false, "none": false} {
		if ok, err := s.ReopenInteraction(t.Context(), "codex", id, "other"); ok || err != nil {
			t.Errorf("%s reopened for something else: %v %v", id, ok, err)
		}
		if ok, err := s.ReopenInteraction(t.Context(), "codex", id, "h"); ok != want || err != nil {
			t.Errorf("%s reopened: %v %v, want %v", id, ok, err, want)
		}
	}
	open, err := s.Interactions(t.Context(), "codex", true)
	must(t, err)
	if len(open) != 1 || open[0].InteractionID != "waits" || open[0].State != Pending || !open[0].ClosedAt.IsZero() {
		t.Errorf("open = %+v", open)
	}
	if list, _ := s.Interactions(t.Context(), "demo", true); len(list) != 1 {
		t.Errorf("the other runtime has %+v", list)
	}
}

func TestClosedInteractionsAreBounded(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	must(t, s.exec(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO interactions (`+interactionColumns+`)
		SELECT 'codex', 'i' || i, 's', 'r', 1, '', 'closed', 1, '', i, i FROM n`, maxClosedInteractions))
	must(t, s.PutInteraction(t.Context(), Interaction{Runtime: "codex", InteractionID: "new", State: Pending, OpenedAt: t0}))
	must(t, s.PutInteraction(t.Context(), Interaction{Runtime: "codex", InteractionID: "open", State: Pending, OpenedAt: t0}))
	_, err := s.CloseInteraction(t.Context(), "codex", "new", 1, "", t0)
	must(t, err)
	all, err := s.Interactions(t.Context(), "codex", false)
	must(t, err)
	if len(all) != maxClosedInteractions+1 || all[0].InteractionID != "i2" {
		t.Errorf("%d records, oldest %s; want %d, i2", len(all), all[0].InteractionID, maxClosedInteractions+1)
	}
	pending, err := s.Interactions(t.Context(), "codex", true)
	must(t, err)
	if len(pending) != 1 || pending[0].InteractionID != "open" {
		t.Errorf("open ones: %+v", pending)
	}
}

func TestPhones(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	p := Phone{ID: "p1", Label: "L", TokenHash: strings.Repeat("c", 64), CreatedAt: t0}
	must(t, s.PutPhone(t.Context(), p))
	must(t, s.PutPhone(t.Context(), Phone{ID: "p2", TokenHash: "d", CreatedAt: t0}))
	for i := range 2 {
		if ok, err := s.UsePhone(t.Context(), "p1", t0.Add(time.Duration(i+1))); !ok || err != nil {
			t.Fatalf("use: %v %v", ok, err)
		}
	}
	p.FirstUsed, p.LastUsed = t0.Add(1), t0.Add(2)
	got, ok, err := s.PhoneByToken(t.Context(), p.TokenHash)
	if d := cmp.Diff(p, got); d != "" || !ok || err != nil {
		t.Errorf("phone (-want +got), %v %v:\n%s", ok, err, d)
	}
	if ok, err := s.RevokePhone(t.Context(), "p1", t0); !ok || err != nil {
		t.Fatalf("revoke: %v %v", ok, err)
	}
	if ok, _ := s.RevokePhone(t.Context(), "p1", t0); ok {
		t.Error("revoked twice")
	}
	if ok, _ := s.UsePhone(t.Context(), "p1", t0); ok {
		t.Error("a revoked phone was used")
	}
	must(t, s.DeletePhone(t.Context(), "p2"))
	if list, _ := s.Phones(t.Context()); len(list) != 1 {
		t.Errorf("phones = %+v", list)
	}
}

func TestMetaAndPins(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	must(t, s.SetMeta(t.Context(), "clean", "mine")) // the store's own name is another one
	must(t, s.SetMeta(t.Context(), "port", "1"))
	must(t, s.SetMeta(t.Context(), "port", "2"))
	if v, ok, err := s.Meta(t.Context(), "port"); v != "2" || !ok || err != nil {
		t.Errorf("port = %q %v %v", v, ok, err)
	}
	must(t, s.DeleteMeta(t.Context(), "port"))
	if _, ok, _ := s.Meta(t.Context(), "port"); ok {
		t.Error("port is still there")
	}
	must(t, s.PutPin(t.Context(), Pin{Name: "b", SHA256: "1", PinnedAt: t0}))
	must(t, s.PutPin(t.Context(), Pin{Name: "a", SHA256: "1", PinnedAt: t0}))
	must(t, s.PutPin(t.Context(), Pin{Name: "b", SHA256: "2", PinnedAt: t0}))
	got, err := s.Pins(t.Context())
	must(t, err)
	want := []Pin{{Name: "a", SHA256: "1", PinnedAt: t0}, {Name: "b", SHA256: "2", PinnedAt: t0}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("pins (-want +got):\n%s", d)
	}
	must(t, s.DeletePin(t.Context(), "a"))
	if _, ok, _ := s.Pin(t.Context(), "a"); ok {
		t.Error("a is still pinned")
	}
}

func TestAttention(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	a := Attention{
		Runtime: "codex", AttentionID: "a", SessionID: "s", NativeID: "n", Kind: 2, Code: "c",
		Parameters: map[string]string{"x": "y"}, ExpiresAt: t0.Add(time.Hour),
	}
	must(t, s.PutAttention(t.Context(), a, t0))
	a.Kind = 3
	must(t, s.PutAttention(t.Context(), a, t0))
	got, err := s.Attention(t.Context(), "codex", t0)
	if d := cmp.Diff([]Attention{a}, got); d != "" || err != nil {
		t.Errorf("attention (-want +got), %v:\n%s", err, d)
	}
	if got, _ := s.Attention(t.Context(), "codex", t0.Add(time.Hour)); len(got) != 0 {
		t.Error("an expired one is shown")
	}
	for i := range maxAttention - 1 {
		must(t, s.PutAttention(t.Context(), Attention{Runtime: "codex", AttentionID: fmt.Sprint(i)}, t0))
	}
	more := Attention{Runtime: "codex", AttentionID: "more"}
	wantCode(t, s.PutAttention(t.Context(), more, t0), codes.AttentionFull)
	must(t, s.PutAttention(t.Context(), more, t0.Add(2*time.Hour))) // the expired one made room
	must(t, s.DeleteAttention(t.Context(), "codex", "more"))
	must(t, s.PutAttention(t.Context(), a, t0))
	must(t, s.DeleteSession(t.Context(), "codex", "s"))
	got, err = s.Attention(t.Context(), "codex", t0)
	must(t, err)
	if len(got) != maxAttention-1 {
		t.Errorf("%d left after the conversation went, want %d", len(got), maxAttention-1)
	}
}
