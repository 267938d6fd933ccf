// Package store keeps everything durable of the host in one SQLite file: conversation metadata, receipts, records of
// interactions, the small state of plugins, pairings. Never a transcript, a prompt or a reply beyond the title and the
// preview (STORE-03).
//
// It knows no protocol and no other part of the host. Every write is one transaction, on disk before the method returns
// (synchronous=FULL), and is either wholly there or not at all. Once a write has begun, a cancelled context no longer
// stops it, so "cancelled" never means "perhaps written". A Store is safe for concurrent use: one connection writes,
// others read committed states beside it.
//
// Every method fails with store_full, store_read_only, store_locked, store_corrupt or internal, beside what it names
// itself; a cause is attached for the local log.
package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/openphone-host/openphone/protocol/codes"
)

const (
	fileName = "state.db"
	lockName = "lock"

	maxReaders = 4               // read connections; each holds about 2 MiB of page cache at most
	busyWait   = 5 * time.Second // for another program that looks into the file, such as a backup

	// fullCheckSize is the size in bytes up to which the whole file is verified at each start, about 10 ms for a MiB.
	// Above it that happens only when the last host did not get to close the file; damage found later is store_corrupt
	// all the same.
	fullCheckSize = 1 << 20

	applicationID = 0x4f50484e // "OPHN": a database of another program is never touched
)

// Store is the open data file. It holds the lock of the data directory until Close.
type Store struct {
	log   *slog.Logger
	lock  *flock.Flock
	write *sql.DB
	read  *sql.DB
}

// Open opens the data file in dir, creating both when absent, and brings an older schema up to date. It starts no
// goroutine of its own; ctx bounds the opening only.
//
// Errors: store_locked when another host uses the directory, store_newer for a file of a newer version, store_corrupt
// for a damaged or foreign file (which is left as it is), store_read_only, store_full.
func Open(ctx context.Context, dir string, log *slog.Logger) (*Store, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fileError(err)
	}
	lock := flock.New(filepath.Join(dir, lockName), flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	switch ok, err := lock.TryLock(); {
	case err != nil:
		return nil, fileError(err)
	case !ok:
		return nil, codes.New(codes.StoreLocked)
	}
	s := &Store{log: log, lock: lock}
	if err := s.open(ctx, filepath.Join(dir, fileName)); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, path string) error {
	// SQLite would create the file readable for others; its companions inherit the mode.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fileError(err)
	}
	info, err := f.Stat()
	if err == nil {
		err = peek(f, info.Size())
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fileError(err)
	}
	if s.write, err = sql.Open("sqlite", dsn(path, "synchronous(FULL)", "wal_autocheckpoint(1000)")); err != nil {
		return wrap(err)
	}
	s.write.SetMaxOpenConns(1)
	if err := verify(ctx, s.write, info.Size()); err != nil {
		return err
	}
	if err := migrate(ctx, s.write, migrations); err != nil {
		return err
	}
	if err := markOpen(ctx, s.write); err != nil {
		return err
	}
	if s.read, err = sql.Open("sqlite", dsn(path, "query_only(ON)")); err != nil {
		return wrap(err)
	}
	s.read.SetMaxOpenConns(maxReaders)
	s.read.SetMaxIdleConns(maxReaders)
	return wrap(s.read.PingContext(ctx))
}

// Close ends all access and gives the directory free. Calls after it fail.
func (s *Store) Close() error {
	var errs []error
	if s.read != nil {
		errs = append(errs, wrap(s.read.Close()))
	}
	if s.write != nil {
		// Only a file that was opened to the end has the table.
		if s.read != nil {
			_, _ = s.write.Exec(`UPDATE meta SET value = 'yes' WHERE key = 'clean'`)
		}
		errs = append(errs, wrap(s.write.Close()))
	}
	errs = append(errs, s.lock.Unlock())
	return errors.Join(errs...)
}

func dsn(path string, pragmas ...string) string {
	p := filepath.ToSlash(path)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p // C:/… on Windows
	}
	q := url.Values{"_txlock": {"immediate"}}
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", busyWait.Milliseconds()))
	q.Add("_pragma", "journal_mode(WAL)")
	for _, p := range pragmas {
		q.Add("_pragma", p)
	}
	return (&url.URL{Scheme: "file", Path: p, RawQuery: q.Encode()}).String()
}

// peek refuses a file of another program before SQLite opens it: already asking for a write-ahead log would change it.
// Whatever of ours has more than the page it begins with has such a log.
func peek(f io.ReaderAt, size int64) error {
	const page, rollback = 4096, 1
	head := make([]byte, 100)
	if size == 0 {
		return nil
	}
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	magic, mode, app := string(head[:16]), head[18], binary.BigEndian.Uint32(head[68:])
	if magic != "SQLite format 3\x00" || app != applicationID && (app != 0 || mode == rollback && size > page) {
		return codes.New(codes.StoreCorrupt).Because(errForeign)
	}
	return nil
}

var errForeign = errors.New("the file belongs to another program")

// verify refuses a file that is damaged or not ours, before anything is written to it.
func verify(ctx context.Context, db *sql.DB, size int64) error {
	var app, version int
	if err := db.QueryRowContext(ctx, `SELECT a.application_id, v.user_version
		FROM pragma_application_id a, pragma_user_version v`).Scan(&app, &version); err != nil {
		return wrap(err)
	}
	var tables int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables); err != nil {
		return wrap(err)
	}
	switch {
	case tables == 0 && version == 0:
		return nil // new, or never got beyond its creation
	case app != applicationID:
		return codes.New(codes.StoreCorrupt).Because(errForeign)
	case version > len(migrations):
		return codes.New(codes.StoreNewer)
	}
	if size > fullCheckSize {
		var clean string
		err := db.QueryRowContext(ctx, `SELECT value FROM meta WHERE key = 'clean'`).Scan(&clean)
		if err == nil && clean == "yes" {
			return nil
		}
	}
	var verdict string
	if err := db.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&verdict); err != nil {
		return wrap(err)
	}
	if verdict != "ok" {
		return codes.New(codes.StoreCorrupt).Because(errors.New(verdict))
	}
	return nil
}

func markOpen(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, `INSERT INTO meta(key, value) VALUES ('clean', 'no')
		ON CONFLICT(key) DO UPDATE SET value = 'no'`)
	return wrap(err)
}

// change runs fn in the one write transaction. ctx bounds only the wait for its turn.
func (s *Store) change(ctx context.Context, fn func(ctx context.Context, tx *sql.Tx) error) error {
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return wrap(err)
	}
	defer conn.Close()
	ctx = context.WithoutCancel(ctx)
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return wrap(err)
	}
	if err := fn(ctx, tx); err != nil {
		_ = tx.Rollback()
		return wrap(err)
	}
	return wrap(tx.Commit())
}

// exec is a change of one statement.
func (s *Store) exec(ctx context.Context, query string, args ...any) error {
	_, err := s.execN(ctx, query, args...)
	return err
}

func (s *Store) execN(ctx context.Context, query string, args ...any) (n int64, err error) {
	err = s.change(ctx, func(ctx context.Context, tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, query, args...)
		if err != nil {
			return err
		}
		n, err = r.RowsAffected()
		return err
	})
	return n, err
}

// collect reads all rows of a query.
func collect[T any](ctx context.Context, s *Store, scan func(scanner) (T, error), query string, args ...any) ([]T, error) {
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, wrap(err)
	}
	defer rows.Close()
	var list []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, wrap(err)
		}
		list = append(list, v)
	}
	return list, wrap(rows.Err())
}

// one reads at most one row.
func one[T any](ctx context.Context, s *Store, scan func(scanner) (T, error), query string, args ...any) (T, bool, error) {
	v, err := scan(s.read.QueryRowContext(ctx, query, args...))
	if errors.Is(err, sql.ErrNoRows) {
		var zero T
		return zero, false, nil
	}
	if err != nil {
		var zero T
		return zero, false, wrap(err)
	}
	return v, true, nil
}

// scanner is a *sql.Row or *sql.Rows.
type scanner interface{ Scan(dest ...any) error }

// wrap gives an error of the database its stable code; coded errors and cancellations pass.
func wrap(err error) error {
	if err == nil || codes.As(err) != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	code := codes.Internal
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff { // the low byte is the primary code
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			code = codes.StoreCorrupt
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
			code = codes.StoreReadOnly
		case sqlite3.SQLITE_FULL:
			code = codes.StoreFull
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
			code = codes.StoreLocked
		}
		if e.Code() == sqlite3.SQLITE_IOERR_SHMSIZE { // how a full disk refuses the file beside the log
			code = codes.StoreFull
		}
	}
	return codes.New(code).Because(err)
}

// constraint reports a violated unique index or primary key.
func constraint(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_CONSTRAINT
}

func fileError(err error) error {
	if codes.As(err) != nil {
		return err
	}
	code := codes.Internal
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, errReadOnlyFS), errors.Is(err, fs.ErrExist),
		errors.Is(err, errNotDirectory):
		code = codes.StoreReadOnly
	case errors.Is(err, errNoSpace):
		code = codes.StoreFull
	}
	return codes.New(code).Because(err)
}

// stamp and moment keep times as nanoseconds; 0 is the zero time.
func stamp(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func moment(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}
