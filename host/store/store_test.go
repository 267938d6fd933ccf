package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
		{"a database of another program without a mark", func(t *testing.T) string {
			dir := t.TempDir()
			db, err := sql.Open("sqlite", filepath.Join(dir, fileName))
			must(t, err)
			_, err = db.Exec(`CREATE TABLE theirs (x)`)
			must(t, errors.Join(err, db.Close()))
			return dir
		}, codes.StoreCorrupt},
		{"a file of a few bytes", func(t *testing.T) string {
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, fileName), []byte("SQLite format 3"), 0o600))
			return dir
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
