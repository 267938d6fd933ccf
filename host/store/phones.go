package store

import (
	"context"
	"time"
)

const phoneColumns = `id, label, token_hash, created_at, first_used, last_used, revoked_at`

func scanPhone(row scanner) (Phone, error) {
	var v Phone
	var created, first, last, revoked int64
	err := row.Scan(&v.ID, &v.Label, &v.TokenHash, &created, &first, &last, &revoked)
	v.CreatedAt, v.FirstUsed, v.LastUsed, v.RevokedAt = moment(created), moment(first), moment(last), moment(revoked)
	return v, err
}

// Phones reads all pairings, revoked ones too, oldest first.
func (s *Store) Phones(ctx context.Context) ([]Phone, error) {
	return collect(ctx, s, scanPhone, `SELECT `+phoneColumns+` FROM phones ORDER BY rowid`)
}

// PutPhone writes a pairing whole, new or known.
func (s *Store) PutPhone(ctx context.Context, v Phone) error {
	return s.exec(ctx, `INSERT INTO phones (`+phoneColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET label = excluded.label, token_hash = excluded.token_hash,
			created_at = excluded.created_at, first_used = excluded.first_used, last_used = excluded.last_used,
			revoked_at = excluded.revoked_at`,
		v.ID, v.Label, v.TokenHash, stamp(v.CreatedAt), stamp(v.FirstUsed), stamp(v.LastUsed), stamp(v.RevokedAt))
}

// PhoneByToken finds the pairing of a token's hash, revoked or void ones too: the caller decides.
func (s *Store) PhoneByToken(ctx context.Context, tokenHash string) (Phone, bool, error) {
	return one(ctx, s, scanPhone, `SELECT `+phoneColumns+` FROM phones WHERE token_hash = ?`, tokenHash)
}

// UsePhone notes that a pairing was used, and reports false when it is unknown or revoked. In the same step as the
// check, so that a revocation cannot slip in between.
func (s *Store) UsePhone(ctx context.Context, id string, at time.Time) (bool, error) {
	n, err := s.execN(ctx, `UPDATE phones SET last_used = ?2, first_used = CASE WHEN first_used = 0 THEN ?2 ELSE first_used END
		WHERE id = ?1 AND revoked_at = 0`, id, stamp(at))
	return n == 1, err
}

// RevokePhone ends a pairing, and reports false when there is none that is still valid.
func (s *Store) RevokePhone(ctx context.Context, id string, at time.Time) (bool, error) {
	n, err := s.execN(ctx, `UPDATE phones SET revoked_at = ?2 WHERE id = ?1 AND revoked_at = 0`, id, stamp(at))
	return n == 1, err
}

// DeletePhone forgets a pairing.
func (s *Store) DeletePhone(ctx context.Context, id string) error {
	return s.exec(ctx, `DELETE FROM phones WHERE id = ?`, id)
}
