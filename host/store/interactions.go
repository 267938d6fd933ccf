package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/openphone-host/openphone/protocol/codes"
)

// States of an Interaction. They only move forward, except that an answer which provably did not reach the runtime
// gives the question free again (ReleaseInteraction), and that a lost one may turn out to be still there
// (ReopenInteraction).
const (
	Pending   = "pending"   // waits for a person
	Answering = "answering" // somebody's answer is on its way to the runtime
	Closed    = "closed"
	// Lost ended because the process that asked is gone. The runtime may still ask: then, and only then, it opens again.
	Lost = "lost"
)

// maxClosedInteractions is how many closed records a runtime keeps, so that a late answer is told "already answered";
// older ones are as good as unknown.
const maxClosedInteractions = 1000

const interactionColumns = `runtime, interaction_id, session_id, run_id, approval, subject_hash, state, closure,
	answered_by, opened_at, closed_at`

func scanInteraction(row scanner) (Interaction, error) {
	var v Interaction
	var opened, closed int64
	err := row.Scan(&v.Runtime, &v.InteractionID, &v.SessionID, &v.RunID, &v.Approval, &v.SubjectHash, &v.State,
		&v.Closure, &v.AnsweredBy, &opened, &closed)
	v.OpenedAt, v.ClosedAt = moment(opened), moment(closed)
	return v, err
}

// PutInteraction writes a new record. Errors: operation_conflict when the runtime has used the id before.
func (s *Store) PutInteraction(ctx context.Context, v Interaction) error {
	return s.change(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO interactions (`+interactionColumns+`)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, v.Runtime, v.InteractionID, v.SessionID, v.RunID, v.Approval,
			v.SubjectHash, v.State, v.Closure, v.AnsweredBy, stamp(v.OpenedAt), stamp(v.ClosedAt))
		if constraint(err) {
			return codes.New(codes.OperationConflict).Because(err)
		}
		return err
	})
}

// Interaction finds a record.
func (s *Store) Interaction(ctx context.Context, rt, interactionID string) (Interaction, bool, error) {
	return one(ctx, s, scanInteraction, `SELECT `+interactionColumns+` FROM interactions
		WHERE runtime = ? AND interaction_id = ?`, rt, interactionID)
}

// Interactions reads the records of a runtime, oldest first; onlyOpen leaves out the closed and lost ones.
func (s *Store) Interactions(ctx context.Context, rt string, onlyOpen bool) ([]Interaction, error) {
	query := `SELECT ` + interactionColumns + ` FROM interactions WHERE runtime = ?`
	if onlyOpen {
		query += ` AND state IN ('pending', 'answering')`
	}
	return collect(ctx, s, scanInteraction, query+` ORDER BY rowid`, rt)
}

// ClaimInteraction takes the one right to answer: true for exactly one caller per pending record.
func (s *Store) ClaimInteraction(ctx context.Context, rt, interactionID, by string) (bool, error) {
	n, err := s.execN(ctx, `UPDATE interactions SET state = 'answering', answered_by = ?3
		WHERE runtime = ?1 AND interaction_id = ?2 AND state = 'pending'`, rt, interactionID, by)
	return n == 1, err
}

// ReleaseInteraction gives the right back after an answer that provably never reached the runtime.
func (s *Store) ReleaseInteraction(ctx context.Context, rt, interactionID string) (bool, error) {
	n, err := s.execN(ctx, `UPDATE interactions SET state = 'pending', answered_by = ''
		WHERE runtime = ? AND interaction_id = ? AND state = 'answering'`, rt, interactionID)
	return n == 1, err
}

// CloseInteraction notes how it ended and reports whether this call closed it; the first closure stays. An empty by
// keeps who claimed it.
func (s *Store) CloseInteraction(ctx context.Context, rt, interactionID string, closure int32, by string, at time.Time) (bool, error) {
	var n int64
	err := s.change(ctx, func(ctx context.Context, tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, `UPDATE interactions SET state = 'closed', closure = ?3, closed_at = ?5,
				answered_by = CASE WHEN ?4 = '' THEN answered_by ELSE ?4 END
			WHERE runtime = ?1 AND interaction_id = ?2 AND state != 'closed'`, rt, interactionID, closure, by, stamp(at))
		if err != nil {
			return err
		}
		if n, err = r.RowsAffected(); err != nil || n == 0 {
			return err
		}
		return prune(ctx, tx, rt)
	})
	return n == 1, err
}

// LoseInteractions ends all open records of a runtime as lost and gives them as they were.
func (s *Store) LoseInteractions(ctx context.Context, rt string, closure int32, at time.Time) ([]Interaction, error) {
	var list []Interaction
	err := s.change(ctx, func(ctx context.Context, tx *sql.Tx) error {
		list = nil
		rows, err := tx.QueryContext(ctx, `SELECT `+interactionColumns+` FROM interactions
			WHERE runtime = ? AND state IN ('pending', 'answering') ORDER BY rowid`, rt)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			v, err := scanInteraction(rows)
			if err != nil {
				return err
			}
			list = append(list, v)
		}
		if err := rows.Err(); err != nil || len(list) == 0 {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE interactions SET state = 'lost', closure = ?2, closed_at = ?3
			WHERE runtime = ?1 AND state IN ('pending', 'answering')`, rt, closure, stamp(at))
		if err != nil {
			return err
		}
		return prune(ctx, tx, rt)
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// ReopenInteraction makes a lost record pending again, if the runtime still asks for exactly the same.
func (s *Store) ReopenInteraction(ctx context.Context, rt, interactionID, subjectHash string) (bool, error) {
	n, err := s.execN(ctx, `UPDATE interactions SET state = 'pending', closure = 0, closed_at = 0, answered_by = ''
		WHERE runtime = ? AND interaction_id = ? AND subject_hash = ? AND state = 'lost'`, rt, interactionID, subjectHash)
	return n == 1, err
}

// prune forgets the oldest ended records.
func prune(ctx context.Context, tx *sql.Tx, rt string) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM interactions WHERE rowid IN (
		SELECT rowid FROM interactions WHERE runtime = ? AND state IN ('closed', 'lost')
		ORDER BY closed_at DESC, rowid DESC LIMIT -1 OFFSET ?)`, rt, maxClosedInteractions)
	return err
}
