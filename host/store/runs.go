package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/openphone-host/openphone/protocol/codes"
)

// maxReceipts is how many prompts one conversation takes in its life.
const maxReceipts = 10_000

const runColumns = `runtime, session_id, run_id, key, fingerprint, native_run_id, outcome, ended, end_reason, end_code,
	thinking, accepted_at, ended_at`

func scanRun(row scanner) (Run, error) {
	var v Run
	var accepted, ended int64
	err := row.Scan(&v.Runtime, &v.SessionID, &v.RunID, &v.Key, &v.Fingerprint, &v.NativeRunID, &v.Outcome, &v.Ended,
		&v.EndReason, &v.EndCode, &v.ThinkingLevel, &accepted, &ended)
	v.AcceptedAt, v.EndedAt = moment(accepted), moment(ended)
	return v, err
}

// Accept writes the receipt of a prompt together with the conversation as it is from now on: both or neither. When it
// returns nil the prompt is on disk and may be dispatched.
//
// Errors: operation_conflict when the conversation already has a receipt with this key (look first), receipts_full.
func (s *Store) Accept(ctx context.Context, run Run, session Session) error {
	return s.change(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var n int
		err := tx.QueryRowContext(ctx, `SELECT count(*) FROM runs WHERE runtime = ? AND session_id = ?`,
			run.Runtime, run.SessionID).Scan(&n)
		if err != nil {
			return err
		}
		if n >= maxReceipts {
			return codes.New(codes.ReceiptsFull)
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO runs (`+runColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			run.Runtime, run.SessionID, run.RunID, run.Key, run.Fingerprint, run.NativeRunID, run.Outcome, run.Ended,
			run.EndReason, run.EndCode, run.ThinkingLevel, stamp(run.AcceptedAt), stamp(run.EndedAt))
		if constraint(err) {
			return codes.New(codes.OperationConflict).Because(err)
		}
		if err != nil {
			return err
		}
		return putSession(ctx, tx, session)
	})
}

// RunByKey finds the receipt of a phone's key; keys are plain data and compared byte for byte.
func (s *Store) RunByKey(ctx context.Context, rt, sessionID, key string) (Run, bool, error) {
	return one(ctx, s, scanRun, `SELECT `+runColumns+` FROM runs WHERE runtime = ? AND session_id = ? AND key = ?`,
		rt, sessionID, key)
}

// Run finds a run.
func (s *Store) Run(ctx context.Context, rt, runID string) (Run, bool, error) {
	return one(ctx, s, scanRun, `SELECT `+runColumns+` FROM runs WHERE runtime = ? AND run_id = ?`, rt, runID)
}

// OpenRuns reads the runs that have no end yet, oldest first.
func (s *Store) OpenRuns(ctx context.Context, rt string) ([]Run, error) {
	return collect(ctx, s, scanRun, `SELECT `+runColumns+` FROM runs WHERE runtime = ? AND ended = 0 ORDER BY rowid`, rt)
}

// RunsOf reads all receipts of a conversation, oldest first; at most maxReceipts.
func (s *Store) RunsOf(ctx context.Context, rt, sessionID string) ([]Run, error) {
	return collect(ctx, s, scanRun, `SELECT `+runColumns+` FROM runs WHERE runtime = ? AND session_id = ? ORDER BY rowid`,
		rt, sessionID)
}

// SetOutcome notes what CommitRun answered. An empty native id keeps the known one. A run without a receipt is
// internal: there is nothing to be dispatched.
func (s *Store) SetOutcome(ctx context.Context, rt, runID string, outcome int32, nativeRunID string) error {
	n, err := s.execN(ctx, `UPDATE runs SET outcome = ?3,
			native_run_id = CASE WHEN ?4 = '' THEN native_run_id ELSE ?4 END
		WHERE runtime = ?1 AND run_id = ?2`, rt, runID, outcome, nativeRunID)
	if err == nil && n == 0 {
		return codes.New(codes.Internal)
	}
	return err
}

// EndRun notes the end of a run. The first end stays: another one, or that of an unknown run, changes nothing.
func (s *Store) EndRun(ctx context.Context, rt, runID string, reason int32, code string, at time.Time) error {
	return s.exec(ctx, `UPDATE runs SET ended = 1, end_reason = ?3, end_code = ?4, ended_at = ?5
		WHERE runtime = ?1 AND run_id = ?2 AND ended = 0`, rt, runID, reason, code, stamp(at))
}
