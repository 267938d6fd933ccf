package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"time"

	"github.com/openphone-host/openphone/protocol/codes"
)

// maxAttention is how many notices the plugins of one instance may have open.
const maxAttention = 256

// metaPrefix keeps names of callers apart from the store's own, such as clean.
const metaPrefix = "host."

// Meta reads a small value of the host, such as the chosen port.
func (s *Store) Meta(ctx context.Context, key string) (string, bool, error) {
	return one(ctx, s, func(row scanner) (v string, err error) { return v, row.Scan(&v) },
		`SELECT value FROM meta WHERE key = ?`, metaPrefix+key)
}

// SetMeta writes a small value of the host.
func (s *Store) SetMeta(ctx context.Context, key, value string) error {
	return s.exec(ctx, `INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
		metaPrefix+key, value)
}

// DeleteMeta removes a small value of the host.
func (s *Store) DeleteMeta(ctx context.Context, key string) error {
	return s.exec(ctx, `DELETE FROM meta WHERE key = ?`, metaPrefix+key)
}

// Pin is the checksum a plugin file was enabled with.
func (s *Store) Pin(ctx context.Context, name string) (Pin, bool, error) {
	return one(ctx, s, scanPin, `SELECT name, sha256, pinned_at FROM pins WHERE name = ?`, name)
}

// Pins reads all pins by name.
func (s *Store) Pins(ctx context.Context) ([]Pin, error) {
	return collect(ctx, s, scanPin, `SELECT name, sha256, pinned_at FROM pins ORDER BY name`)
}

// PutPin writes a pin.
func (s *Store) PutPin(ctx context.Context, v Pin) error {
	return s.exec(ctx, `INSERT INTO pins (name, sha256, pinned_at) VALUES (?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET sha256 = excluded.sha256, pinned_at = excluded.pinned_at`,
		v.Name, v.SHA256, stamp(v.PinnedAt))
}

// DeletePin removes a pin.
func (s *Store) DeletePin(ctx context.Context, name string) error {
	return s.exec(ctx, `DELETE FROM pins WHERE name = ?`, name)
}

func scanPin(row scanner) (Pin, error) {
	var v Pin
	var at int64
	err := row.Scan(&v.Name, &v.SHA256, &at)
	v.PinnedAt = moment(at)
	return v, err
}

// Attention reads what plugins of an instance want known and has not expired at now, oldest first.
func (s *Store) Attention(ctx context.Context, instance string, now time.Time) ([]Attention, error) {
	return collect(ctx, s, scanAttention, `SELECT instance, attention_id, session_id, native_id, kind, code, params, expires_at
		FROM attention WHERE instance = ? AND (expires_at = 0 OR expires_at > ?) ORDER BY rowid`, instance, stamp(now))
}

// PutAttention writes a notice; the last one of a name wins. Expired ones of the instance make room first.
//
// Errors: attention_full.
func (s *Store) PutAttention(ctx context.Context, v Attention, now time.Time) error {
	params, err := json.Marshal(v.Parameters)
	if err != nil {
		return codes.New(codes.Internal).Because(err)
	}
	return s.change(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM attention WHERE instance = ? AND expires_at != 0 AND expires_at <= ?`,
			v.Runtime, stamp(now))
		if err != nil {
			return err
		}
		var others int
		err = tx.QueryRowContext(ctx, `SELECT count(*) FROM attention WHERE instance = ? AND attention_id != ?`,
			v.Runtime, v.AttentionID).Scan(&others)
		if err != nil {
			return err
		}
		if others >= maxAttention {
			return codes.New(codes.AttentionFull)
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO attention
				(instance, attention_id, session_id, native_id, kind, code, params, expires_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (instance, attention_id) DO UPDATE SET session_id = excluded.session_id,
				native_id = excluded.native_id, kind = excluded.kind, code = excluded.code, params = excluded.params,
				expires_at = excluded.expires_at`,
			v.Runtime, v.AttentionID, v.SessionID, v.NativeID, v.Kind, v.Code, string(params), stamp(v.ExpiresAt))
		return err
	})
}

// DeleteAttention takes a notice back; a missing one is no error.
func (s *Store) DeleteAttention(ctx context.Context, instance, attentionID string) error {
	return s.exec(ctx, `DELETE FROM attention WHERE instance = ? AND attention_id = ?`, instance, attentionID)
}

func scanAttention(row scanner) (Attention, error) {
	var v Attention
	var params string
	var expires int64
	if err := row.Scan(&v.Runtime, &v.AttentionID, &v.SessionID, &v.NativeID, &v.Kind, &v.Code, &params, &expires); err != nil {
		return v, err
	}
	v.ExpiresAt = moment(expires)
	return v, json.NewDecoder(strings.NewReader(params)).Decode(&v.Parameters)
}
