package store

import (
	"context"
	"database/sql"
)

const sessionColumns = `runtime, session_id, native_id, project_path, title, title_explicit, preview, model_id,
	provider_id, parent_id, imported, archived, revision, created_at, updated_at, last_activity_at`

func scanSession(row scanner) (Session, error) {
	var v Session
	var created, updated, active int64
	err := row.Scan(&v.Runtime, &v.SessionID, &v.NativeID, &v.ProjectPath, &v.Title, &v.TitleExplicit, &v.Preview,
		&v.ModelID, &v.ProviderID, &v.ParentID, &v.Imported, &v.Archived, &v.Revision, &created, &updated, &active)
	v.CreatedAt, v.UpdatedAt, v.LastActivityAt = moment(created), moment(updated), moment(active)
	return v, err
}

func putSession(ctx context.Context, tx *sql.Tx, v Session) error {
	// An update keeps the rowid, and with it the order of creation.
	_, err := tx.ExecContext(ctx, `INSERT INTO sessions (`+sessionColumns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (runtime, session_id) DO UPDATE SET
			native_id = excluded.native_id, project_path = excluded.project_path, title = excluded.title,
			title_explicit = excluded.title_explicit, preview = excluded.preview, model_id = excluded.model_id,
			provider_id = excluded.provider_id, parent_id = excluded.parent_id, imported = excluded.imported,
			archived = excluded.archived, revision = excluded.revision, created_at = excluded.created_at,
			updated_at = excluded.updated_at, last_activity_at = excluded.last_activity_at`,
		v.Runtime, v.SessionID, v.NativeID, v.ProjectPath, v.Title, v.TitleExplicit, v.Preview, v.ModelID, v.ProviderID,
		v.ParentID, v.Imported, v.Archived, v.Revision, stamp(v.CreatedAt), stamp(v.UpdatedAt), stamp(v.LastActivityAt))
	return err
}

// Sessions reads all conversations of a runtime, in order of creation.
func (s *Store) Sessions(ctx context.Context, rt string) ([]Session, error) {
	return collect(ctx, s, scanSession, `SELECT `+sessionColumns+` FROM sessions WHERE runtime = ? ORDER BY rowid`, rt)
}

// PutSession writes the conversation whole, new or known.
func (s *Store) PutSession(ctx context.Context, v Session) error {
	return s.change(ctx, func(ctx context.Context, tx *sql.Tx) error { return putSession(ctx, tx, v) })
}

// DeleteSession removes a conversation with what its plugin kept for it and what asked for attention in it. Its
// receipts stay, so that a prompt sent again after the deletion is still known. Deleting nothing is no error.
func (s *Store) DeleteSession(ctx context.Context, rt, sessionID string) error {
	return s.change(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE runtime = ? AND session_id = ?`, rt, sessionID); err != nil {
			return err
		}
		if sessionID == "" {
			return nil // names the instance itself in the tables below
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM attention WHERE instance = ? AND session_id = ?`, rt, sessionID); err != nil {
			return err
		}
		return dropState(ctx, tx, rt, sessionID)
	})
}
