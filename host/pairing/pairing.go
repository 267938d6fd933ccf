// Package pairing makes, judges and ends the pairings of phones with this host: direct ones, whose token a phone presents
// in its first frame.
//
// A token is shown once, when it is made; at rest there is only its hash. The package knows no socket: whoever owns them
// is told when a pairing ends. A Service is safe for concurrent use.
package pairing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/host/store"
	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/jsonframe"
	"github.com/openphone-host/openphone/protocol/pairing"
)

const (
	// tokenBytes is the entropy of a token; its text has twice as many hex digits.
	tokenBytes = 32
	// unusedLife is how long a token that was never presented stays good.
	unusedLife = 10 * time.Minute
	// maxLabelUnits bounds the name of a phone, in UTF-16 units.
	maxLabelUnits = 80
	// maxUnused is how many tokens may wait for their phone at a time.
	maxUnused = 64
)

// Store keeps pairings; host/store implements it.
type Store interface {
	Phones(context.Context) ([]store.Phone, error)
	PutPhone(context.Context, store.Phone) error
	PhoneByToken(ctx context.Context, tokenHash string) (store.Phone, bool, error)
	UsePhone(ctx context.Context, id string, at time.Time) (bool, error)
	RevokePhone(ctx context.Context, id string, at time.Time) (bool, error)
	DeletePhone(ctx context.Context, id string) error
}

// Options configure a Service.
type Options struct {
	Store Store
	// Disconnect ends every socket of a phone, within a second; nil when there are none.
	Disconnect func(phoneID string) int
	// Addresses gives the addresses of this computer a phone might reach, best first; nil asks the system.
	Addresses func() []net.IP
	// Now is the time; nil means time.Now.
	Now func() time.Time
	Log *slog.Logger // nil discards
}

// Service is the pairings of this host.
type Service struct {
	opt Options
	mu  sync.Mutex
	// made remembers tokens of this process with their monotonic time, so that setting the clock back does not keep an
	// unused token alive.
	made map[string]time.Time
}

// New makes a Service.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Addresses == nil {
		o.Addresses = systemAddresses
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{opt: o, made: map[string]time.Time{}}
}

// Request asks for a pairing.
type Request struct {
	Label    string   // name of the phone; empty: "phone"
	Name     string   // name of this computer, for the offer
	Backends []string // in the order to show
	Listen   net.Addr // what the listener is bound to
	// Here is for a client on this same computer: the loopback address will do, and there is no QR code.
	Here bool
}

// Offer is what one backend of a pairing is reached with. Token and QR are secrets: shown once, never logged.
type Offer struct {
	Backend string `json:"backend"`
	URL     string `json:"url"`
	Token   string `json:"token"`
	QR      string `json:"qr,omitempty"`
}

// Pairing is a pairing just made.
type Pairing struct {
	Phone  store.Phone
	Offers []Offer
}

// Create makes a pairing with one token for all its backends. When no phone could reach the listener it makes none and
// answers pairing_not_reachable.
func (s *Service) Create(ctx context.Context, r Request) (*Pairing, error) {
	host, err := s.address(r)
	if err != nil {
		return nil, err
	}
	if err := s.sweep(ctx); err != nil {
		return nil, err
	}
	token, id := random(tokenBytes), random(8)
	now := s.opt.Now()
	out := &Pairing{Phone: store.Phone{ID: id, Label: label(r.Label), TokenHash: hashToken(token), CreatedAt: now}}
	for _, b := range r.Backends {
		o := Offer{Backend: b, URL: "ws://" + host + clawket.Path(b), Token: token}
		if !r.Here {
			o.QR, err = pairing.BuildDirect(pairing.Payload{Backend: b, DisplayName: r.Name, URL: o.URL, Token: token})
			if err != nil {
				return nil, codes.New(codes.PairingNotReachable).Because(err)
			}
		}
		out.Offers = append(out.Offers, o)
	}
	if err := s.opt.Store.PutPhone(ctx, out.Phone); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.made[id] = time.Now()
	s.mu.Unlock()
	s.opt.Log.Info("pairing created", obs.KeyPhone, obs.ID(id))
	return out, nil
}

// sweep forgets tokens nobody came for, and refuses more when too many wait.
func (s *Service) sweep(ctx context.Context) error {
	list, err := s.opt.Store.Phones(ctx)
	if err != nil {
		return err
	}
	waiting := 0
	for _, p := range list {
		switch {
		case !p.FirstUsed.IsZero() || !p.RevokedAt.IsZero():
		case s.void(p):
			if err := s.opt.Store.DeletePhone(ctx, p.ID); err != nil {
				return err
			}
			s.mu.Lock()
			delete(s.made, p.ID)
			s.mu.Unlock()
		default:
			waiting++
		}
	}
	if waiting >= maxUnused {
		return codes.New(codes.TooManyRequests)
	}
	return nil
}

// void reports that nobody presented the token in time.
func (s *Service) void(p store.Phone) bool {
	if !p.FirstUsed.IsZero() {
		return false
	}
	s.mu.Lock()
	made, ours := s.made[p.ID]
	s.mu.Unlock()
	if ours && time.Since(made) >= unusedLife {
		return true
	}
	age := s.opt.Now().Sub(p.CreatedAt)
	return age >= unusedLife || !ours && age < 0 // made in the future: a clock that cannot be trusted
}

// List gives the pairings that stand, oldest first.
func (s *Service) List(ctx context.Context) ([]store.Phone, error) {
	all, err := s.opt.Store.Phones(ctx)
	if err != nil {
		return nil, err
	}
	var list []store.Phone
	for _, p := range all {
		if p.RevokedAt.IsZero() && !s.void(p) {
			p.TokenHash = ""
			list = append(list, p)
		}
	}
	return list, nil
}

// Revoke ends a pairing, by id or by a label only one phone has, and with it every socket of that phone (FAULT-14).
func (s *Service) Revoke(ctx context.Context, idOrLabel string) (store.Phone, error) {
	list, err := s.List(ctx)
	if err != nil {
		return store.Phone{}, err
	}
	var found []store.Phone
	for _, p := range list {
		if p.ID == idOrLabel {
			found = []store.Phone{p}
			break
		}
		if p.Label == idOrLabel {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		return store.Phone{}, codes.New(codes.PhoneUnknown)
	}
	p := found[0]
	ok, err := s.opt.Store.RevokePhone(ctx, p.ID, s.opt.Now())
	if err != nil {
		return store.Phone{}, err
	}
	if !ok {
		return store.Phone{}, codes.New(codes.PhoneUnknown)
	}
	closed := 0
	if s.opt.Disconnect != nil {
		closed = s.opt.Disconnect(p.ID)
	}
	s.opt.Log.Info("pairing revoked", obs.KeyPhone, obs.ID(p.ID), obs.KeyCount, closed)
	return p, nil
}

// Authenticate finds the phone a token belongs to and notes that it was used. Only the hash is looked up and compared,
// so that the time it takes tells nothing about a token.
func (s *Service) Authenticate(ctx context.Context, _ /* backend */, token string) (id, label string, ok bool) {
	if len(token) < tokenBytes {
		return "", "", false
	}
	hash := hashToken(token)
	p, found, err := s.opt.Store.PhoneByToken(ctx, hash)
	if err != nil {
		s.opt.Log.Warn("pairings cannot be read", obs.KeyError, err)
		return "", "", false
	}
	if !found || subtle.ConstantTimeCompare([]byte(p.TokenHash), []byte(hash)) != 1 || !p.RevokedAt.IsZero() || s.void(p) {
		return "", "", false
	}
	used, err := s.opt.Store.UsePhone(ctx, p.ID, s.opt.Now())
	if err != nil {
		s.opt.Log.Warn("use of a pairing cannot be noted", obs.KeyError, err)
		// A phone that was known before may read on while the disk is full; a first use must be on record.
		return p.ID, p.Label, !p.FirstUsed.IsZero()
	}
	return p.ID, p.Label, used
}

// Valid reports that a pairing still stands.
func (s *Service) Valid(ctx context.Context, id string) bool {
	list, err := s.opt.Store.Phones(ctx)
	if err != nil {
		return false
	}
	for _, p := range list {
		if p.ID == id {
			return p.RevokedAt.IsZero()
		}
	}
	return false
}

func label(s string) string {
	if s = jsonframe.CutUnits(s, maxLabelUnits); s == "" {
		return "phone"
	}
	return s
}

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails (package documentation)
	return hex.EncodeToString(b)
}
