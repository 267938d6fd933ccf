package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/openphone-host/openphone/protocol/codes"
)

// migrations bring the schema from version i to i+1. An entry is never changed once it was released; each runs in one
// transaction with the new version number, so that a crash leaves the old schema.
var migrations = []string{
	`
CREATE TABLE meta (
	key   TEXT PRIMARY KEY,
	value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
	runtime          TEXT NOT NULL,
	session_id       TEXT NOT NULL,
	native_id        TEXT NOT NULL,
	project_path     TEXT NOT NULL,
	title            TEXT NOT NULL,
	title_explicit   INTEGER NOT NULL,
	preview          TEXT NOT NULL,
	model_id         TEXT NOT NULL,
	provider_id      TEXT NOT NULL,
	parent_id        TEXT NOT NULL,
	imported         INTEGER NOT NULL,
	archived         INTEGER NOT NULL,
	revision         INTEGER NOT NULL,
	created_at       INTEGER NOT NULL,
	updated_at       INTEGER NOT NULL,
	last_activity_at INTEGER NOT NULL,
	PRIMARY KEY (runtime, session_id)
) STRICT;

-- Receipts outlive their conversation, so there is no reference to sessions.
CREATE TABLE runs (
	runtime       TEXT NOT NULL,
	run_id        TEXT NOT NULL,
	session_id    TEXT NOT NULL,
	key           TEXT NOT NULL,
	fingerprint   TEXT NOT NULL,
	native_run_id TEXT NOT NULL,
	outcome       INTEGER NOT NULL,
	ended         INTEGER NOT NULL,
	end_reason    INTEGER NOT NULL,
	end_code      TEXT NOT NULL,
	thinking      TEXT NOT NULL,
	accepted_at   INTEGER NOT NULL,
	ended_at      INTEGER NOT NULL,
	PRIMARY KEY (runtime, run_id)
) STRICT;
CREATE UNIQUE INDEX runs_key ON runs (runtime, session_id, key);
CREATE INDEX runs_open ON runs (runtime) WHERE ended = 0;

CREATE TABLE interactions (
	runtime        TEXT NOT NULL,
	interaction_id TEXT NOT NULL,
	session_id     TEXT NOT NULL,
	run_id         TEXT NOT NULL,
	approval       INTEGER NOT NULL,
	subject_hash   TEXT NOT NULL,
	state          TEXT NOT NULL,
	closure        INTEGER NOT NULL,
	answered_by    TEXT NOT NULL,
	opened_at      INTEGER NOT NULL,
	closed_at      INTEGER NOT NULL,
	PRIMARY KEY (runtime, interaction_id)
) STRICT;
CREATE INDEX interactions_open ON interactions (runtime) WHERE state IN ('pending', 'answering');
CREATE INDEX interactions_ended ON interactions (runtime, closed_at) WHERE state IN ('closed', 'lost');

CREATE TABLE state (
	instance   TEXT NOT NULL,
	session_id TEXT NOT NULL,
	name       TEXT NOT NULL,
	value      BLOB NOT NULL,
	revision   INTEGER NOT NULL,
	PRIMARY KEY (instance, session_id, name)
) STRICT;
-- Totals of an instance, so that a write need not add up 10,000 rows; floor is the highest revision ever removed.
CREATE TABLE state_totals (
	instance TEXT PRIMARY KEY,
	entries  INTEGER NOT NULL,
	bytes    INTEGER NOT NULL,
	floor    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE attention (
	instance     TEXT NOT NULL,
	attention_id TEXT NOT NULL,
	session_id   TEXT NOT NULL,
	native_id    TEXT NOT NULL,
	kind         INTEGER NOT NULL,
	code         TEXT NOT NULL,
	params       TEXT NOT NULL,
	expires_at   INTEGER NOT NULL,
	PRIMARY KEY (instance, attention_id)
) STRICT;

CREATE TABLE phones (
	id         TEXT PRIMARY KEY,
	label      TEXT NOT NULL,
	token_hash TEXT NOT NULL UNIQUE,
	created_at INTEGER NOT NULL,
	first_used INTEGER NOT NULL,
	last_used  INTEGER NOT NULL,
	revoked_at INTEGER NOT NULL
) STRICT;

CREATE TABLE pins (
	name      TEXT PRIMARY KEY,
	sha256    TEXT NOT NULL,
	pinned_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`,
}

func migrate(ctx context.Context, db *sql.DB, list []string) error {
	var version int
	if err := db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
		return wrap(err)
	}
	if version > len(list) {
		return codes.New(codes.StoreNewer)
	}
	for i := version; i < len(list); i++ {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return wrap(err)
		}
		// A pragma takes no parameters; these are numbers of ours.
		_, err = tx.ExecContext(ctx, fmt.Sprintf("%s;\nPRAGMA application_id = %d;\nPRAGMA user_version = %d;",
			list[i], applicationID, i+1))
		if err != nil {
			_ = tx.Rollback()
			return wrap(fmt.Errorf("migration %d: %w", i+1, err))
		}
		if err := tx.Commit(); err != nil {
			return wrap(err)
		}
	}
	return nil
}
