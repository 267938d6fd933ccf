package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Bounds of what one plugin instance may keep.
const (
	maxStateValue   = 256 << 10 // bytes of one entry
	maxStateEntries = 10_000
	maxStateBytes   = 32 << 20 // names and values of an instance together
	maxStateName    = 200      // characters
	maxStateSession = 200      // characters of a conversation's id
)

// GetState reads one entry; nil when there is none.
func (s *Store) GetState(ctx context.Context, instance string, key runtime.StateKey) (*runtime.StateEntry, error) {
	e, ok, err := one(ctx, s, scanState, `SELECT session_id, name, value, revision FROM state
		WHERE instance = ? AND session_id = ? AND name = ?`, instance, key.SessionID, key.Name)
	if err != nil || !ok {
		return nil, err
	}
	return &e, nil
}

// PutState writes an entry and gives its new revision. expected nil: whatever there is; 0: there must be none.
//
// Errors: revision_conflict, state_too_large, state_full, state_key_invalid.
func (s *Store) PutState(ctx context.Context, instance string, key runtime.StateKey, value []byte, expected *uint64) (uint64, error) {
	if !validStateKey(key) {
		return 0, codes.New(codes.StateKeyInvalid)
	}
	if len(value) > maxStateValue {
		return 0, codes.New(codes.StateTooLarge)
	}
	if value == nil {
		value = []byte{} // an empty entry is not a missing one
	}
	var revision uint64
	err := s.change(ctx, func(ctx context.Context, tx *sql.Tx) error {
		t, err := totals(ctx, tx, instance)
		if err != nil {
			return err
		}
		old, size, err := revisionOf(ctx, tx, instance, key)
		if err != nil {
			return err
		}
		if expected != nil && *expected != old {
			return codes.New(codes.RevisionConflict)
		}
		if old == 0 {
			t.entries++
			t.bytes += int64(len(key.Name) + len(value))
			revision = t.floor + 1
		} else {
			t.bytes += int64(len(value)) - size
			revision = old + 1
		}
		if t.entries > maxStateEntries || t.bytes > maxStateBytes {
			return codes.New(codes.StateFull)
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO state (instance, session_id, name, value, revision) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (instance, session_id, name) DO UPDATE SET value = excluded.value, revision = excluded.revision`,
			instance, key.SessionID, key.Name, value, revision)
		if err != nil {
			return err
		}
		return t.save(ctx, tx, instance)
	})
	if err != nil {
		return 0, err
	}
	return revision, nil
}

// DeleteState removes an entry; one that is not there is no error unless expected names a revision of it.
//
// Errors: revision_conflict.
func (s *Store) DeleteState(ctx context.Context, instance string, key runtime.StateKey, expected *uint64) error {
	return s.change(ctx, func(ctx context.Context, tx *sql.Tx) error {
		old, size, err := revisionOf(ctx, tx, instance, key)
		if err != nil {
			return err
		}
		if expected != nil && *expected != old {
			return codes.New(codes.RevisionConflict)
		}
		if old == 0 {
			return nil
		}
		t, err := totals(ctx, tx, instance)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM state WHERE instance = ? AND session_id = ? AND name = ?`,
			instance, key.SessionID, key.Name)
		if err != nil {
			return err
		}
		t.entries--
		t.bytes -= int64(len(key.Name)) + size
		t.floor = max(t.floor, old)
		return t.save(ctx, tx, instance)
	})
}

// ListState reads the entries of a conversation (empty: of the instance) whose name begins with prefix, in byte order
// of their names.
func (s *Store) ListState(ctx context.Context, instance, sessionID, prefix string) ([]runtime.StateEntry, error) {
	return collect(ctx, s, scanState, `SELECT session_id, name, value, revision FROM state
		WHERE instance = ?1 AND session_id = ?2 AND substr(name, 1, length(?3)) = ?3 ORDER BY name`,
		instance, sessionID, prefix)
}

// dropState removes all entries of a conversation.
func dropState(ctx context.Context, tx *sql.Tx, instance, sessionID string) error {
	var n, size, top int64
	err := tx.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(length(name) + length(value)), 0), coalesce(max(revision), 0)
		FROM state WHERE instance = ? AND session_id = ?`, instance, sessionID).Scan(&n, &size, &top)
	if err != nil || n == 0 {
		return err
	}
	t, err := totals(ctx, tx, instance)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM state WHERE instance = ? AND session_id = ?`, instance, sessionID); err != nil {
		return err
	}
	t.entries -= n
	t.bytes -= size
	t.floor = max(t.floor, uint64(top))
	return t.save(ctx, tx, instance)
}

// stateTotals is what an instance has. A new entry starts above floor, so no name ever sees a revision again, without
// a tombstone for each removed name.
type stateTotals struct {
	entries, bytes int64
	floor          uint64
}

func totals(ctx context.Context, tx *sql.Tx, instance string) (stateTotals, error) {
	var t stateTotals
	err := tx.QueryRowContext(ctx, `SELECT entries, bytes, floor FROM state_totals WHERE instance = ?`, instance).
		Scan(&t.entries, &t.bytes, &t.floor)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return t, err
}

func (t stateTotals) save(ctx context.Context, tx *sql.Tx, instance string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO state_totals (instance, entries, bytes, floor) VALUES (?, ?, ?, ?)
		ON CONFLICT (instance) DO UPDATE SET entries = excluded.entries, bytes = excluded.bytes, floor = excluded.floor`,
		instance, t.entries, t.bytes, t.floor)
	return err
}

// revisionOf gives 0 for a missing entry, and the size of the value.
func revisionOf(ctx context.Context, tx *sql.Tx, instance string, key runtime.StateKey) (revision uint64, size int64, err error) {
	err = tx.QueryRowContext(ctx, `SELECT revision, length(value) FROM state
		WHERE instance = ? AND session_id = ? AND name = ?`, instance, key.SessionID, key.Name).Scan(&revision, &size)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return revision, size, err
}

func scanState(row scanner) (runtime.StateEntry, error) {
	var e runtime.StateEntry
	err := row.Scan(&e.Key.SessionID, &e.Key.Name, &e.Value, &e.Revision)
	return e, err
}

func validStateKey(key runtime.StateKey) bool {
	if key.Name == "" || len(key.Name) > maxStateName || len(key.SessionID) > maxStateSession {
		return false
	}
	for _, c := range []byte(key.Name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-', c == '_', c == '/':
		default:
			return false
		}
	}
	return true
}
