package pairing

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openphone-host/openphone/host/store"
	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/pairing"
)

type world struct {
	*Service
	t    *testing.T
	dir  string
	now  time.Time
	log  bytes.Buffer
	gone []string
	lan  []net.IP
	db   *store.Store
}

func begin(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), now: time.Now(), lan: []net.IP{net.IPv4(192, 168, 1, 7)}}
	var err error
	if w.db, err = store.Open(t.Context(), w.dir, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.db.Close() })
	w.Service = New(Options{
		Store: w.db, Now: func() time.Time { return w.now }, Addresses: func() []net.IP { return w.lan },
		Disconnect: func(id string) int { w.gone = append(w.gone, id); return 1 },
		Log:        slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	return w
}

var anywhere = &net.TCPAddr{IP: net.IPv4zero, Port: 18000}

func (w *world) create(r Request) *Pairing {
	w.t.Helper()
	if r.Listen == nil {
		r.Listen = anywhere
	}
	if r.Backends == nil {
		r.Backends = []string{"codex", "demo"}
	}
	p, err := w.Create(w.t.Context(), r)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) accepted(token string) bool {
	id, label, ok := w.Authenticate(w.t.Context(), "codex", token)
	if ok && (id == "" || label == "" || !w.Valid(w.t.Context(), id)) {
		w.t.Errorf("accepted as %q %q", id, label)
	}
	return ok
}

func TestOffer(t *testing.T) {
	w := begin(t)
	p := w.create(Request{Label: "My phone", Name: "desk", Backends: []string{"codex", "pi", "demo"}})
	token := p.Offers[0].Token
	if len(token) != 64 || strings.Trim(token, "0123456789abcdef") != "" {
		t.Errorf("token %q", token)
	}
	for i, want := range []string{
		`{"version":1,"backendKind":"codex","mode":"local","url":"ws://192.168.1.7:18000/v1/codex/ws","token":"` + token + `","displayName":"desk"}`,
		`{"version":1,"backendKind":"pi","mode":"local","url":"ws://192.168.1.7:18000/v1/pi/ws","token":"` + token + `"}`,
		`{"version":1,"kind":"openphone_direct","backend":"demo","url":"ws://192.168.1.7:18000/v1/demo/ws","token":"` + token + `","displayName":"desk"}`,
	} {
		o := p.Offers[i]
		if o.QR != want {
			t.Errorf("QR %s\nwant %s", o.QR, want)
		}
		if back, err := pairing.Parse(o.QR); err != nil || back.URL != o.URL || back.Token != token || back.Backend != o.Backend {
			t.Errorf("reads as %+v, %v", back, err)
		}
	}
	if q := w.create(Request{}); q.Offers[0].Token == token || q.Phone.ID == p.Phone.ID || q.Phone.Label != "phone" {
		t.Errorf("second pairing %+v", q.Phone)
	}
	for range 2 {
		if !w.accepted(token) {
			t.Error("the token is refused")
		}
	}
}

// A code a phone cannot use is worse than none.
func TestNoOfferForAnAddressOnlyThisComputerUnderstands(t *testing.T) {
	for _, c := range []struct {
		name   string
		listen net.Addr
		lan    []net.IP
		want   string
	}{
		{"loopback", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, []net.IP{net.IPv4(10, 0, 0, 1)}, ""},
		{"loopback of version 6", &net.TCPAddr{IP: net.IPv6loopback, Port: 1}, nil, ""},
		{"any, but there is no network", &net.TCPAddr{IP: net.IPv4zero, Port: 1}, nil, ""},
		{"any, only loopback", &net.TCPAddr{IP: net.IPv4zero, Port: 1}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(169, 254, 1, 1)}, ""},
		{"any", &net.TCPAddr{IP: net.IPv4zero, Port: 1}, []net.IP{net.IPv4(169, 254, 1, 1), net.IPv4(10, 0, 0, 1)}, "ws://10.0.0.1:1/v1/codex/ws"},
		{"any of version 6", &net.TCPAddr{IP: net.IPv6unspecified, Port: 1}, []net.IP{net.ParseIP("fd00::5")}, "ws://[fd00::5]:1/v1/codex/ws"},
		{"one", &net.TCPAddr{IP: net.IPv4(10, 0, 0, 9), Port: 1}, nil, "ws://10.0.0.9:1/v1/codex/ws"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := begin(t)
			w.lan = c.lan
			p, err := w.Create(t.Context(), Request{Backends: []string{"codex"}, Listen: c.listen})
			if c.want == "" {
				if codes.Of(err) != codes.PairingNotReachable {
					t.Errorf("got %v, %v", p, err)
				}
				if list, _ := w.db.Phones(t.Context()); len(list) != 0 {
					t.Error("a pairing was made all the same")
				}
				return
			}
			if err != nil || p.Offers[0].URL != c.want || strings.Contains(p.Offers[0].QR, "0.0.0.0") || strings.Contains(p.Offers[0].QR, "127.0.0.1") {
				t.Errorf("got %+v, %v", p, err)
			}
		})
	}
	w := begin(t)
	here := w.create(Request{Listen: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5}, Here: true})
	if o := here.Offers[0]; o.URL != "ws://127.0.0.1:5/v1/codex/ws" || o.QR != "" || !w.accepted(o.Token) {
		t.Errorf("a client on this computer gets %+v", o)
	}
}

func TestUnusedTokenIsVoidAfterTenMinutes(t *testing.T) {
	w := begin(t)
	used, late := w.create(Request{}).Offers[0].Token, w.create(Request{}).Offers[0].Token
	if !w.accepted(used) {
		t.Fatal("refused")
	}
	w.now = w.now.Add(10*time.Minute - time.Second)
	intime := w.create(Request{}).Offers[0].Token
	w.now = w.now.Add(time.Second)
	if w.accepted(late) {
		t.Error("an unused token is good after ten minutes")
	}
	if !w.accepted(intime) || !w.accepted(used) {
		t.Error("a good token is refused")
	}
	if list, err := w.List(t.Context()); err != nil || len(list) != 2 || list[0].TokenHash != "" {
		t.Errorf("list %+v, %v", list, err)
	}
	w.create(Request{})
	if list, _ := w.db.Phones(t.Context()); len(list) != 3 {
		t.Errorf("%d rows: the void one must be forgotten", len(list))
	}
	w.now = w.now.Add(365 * 24 * time.Hour)
	if !w.accepted(used) {
		t.Error("a used token must not age")
	}
}

// Setting the clock back must not keep an unused token of an earlier process alive for ever.
func TestTokenFromTheFutureIsVoid(t *testing.T) {
	w := begin(t)
	token := w.create(Request{}).Offers[0].Token
	w.now = w.now.Add(-time.Hour)
	if !w.accepted(token) {
		t.Error("refused by the process that made it, a moment later")
	}
	unused := w.create(Request{}).Offers[0].Token
	again := New(w.opt)
	w.now = w.now.Add(-time.Hour)
	if _, _, ok := again.Authenticate(t.Context(), "codex", unused); ok {
		t.Error("accepted by another process before it was made")
	}
}

func TestTooManyWaitingTokens(t *testing.T) {
	w := begin(t)
	for range maxUnused {
		w.create(Request{})
	}
	if _, err := w.Create(t.Context(), Request{Backends: []string{"codex"}, Listen: anywhere}); codes.Of(err) != codes.TooManyRequests {
		t.Errorf("got %v", err)
	}
}

func TestRevoke(t *testing.T) {
	rules.Covers(t, "FAULT-14")
	w := begin(t)
	one, two := w.create(Request{Label: "one"}), w.create(Request{Label: "two"})
	w.create(Request{Label: "two"})
	w.accepted(one.Offers[0].Token)
	for _, name := range []string{"two", "three", ""} {
		if _, err := w.Revoke(t.Context(), name); codes.Of(err) != codes.PhoneUnknown {
			t.Errorf("%q: %v", name, err)
		}
	}
	p, err := w.Revoke(t.Context(), "one")
	if err != nil || p.ID != one.Phone.ID || len(w.gone) != 1 || w.gone[0] != p.ID {
		t.Errorf("got %+v, %v, disconnected %v", p, err, w.gone)
	}
	if w.accepted(one.Offers[0].Token) || w.Valid(t.Context(), p.ID) {
		t.Error("the token is still good")
	}
	if _, err := w.Revoke(t.Context(), one.Phone.ID); codes.Of(err) != codes.PhoneUnknown {
		t.Errorf("twice: %v", err)
	}
	if _, err := w.Revoke(t.Context(), two.Phone.ID); err != nil {
		t.Errorf("by id: %v", err)
	}
	if w.accepted(two.Offers[0].Token) {
		t.Error("an unused token is good after its revocation")
	}
}

func TestWrongTokens(t *testing.T) {
	w := begin(t)
	token := w.create(Request{}).Offers[0].Token
	for _, wrong := range []string{"", "x", token[:63], token + "0", strings.ToUpper(token), strings.Repeat("0", 64), hashToken(token)} {
		if wrong != token && w.accepted(wrong) {
			t.Errorf("%q is accepted", wrong)
		}
	}
	w.db.Close()
	if w.accepted(token) {
		t.Error("accepted without a store")
	}
}

// One token by two phones at once is one pairing; a revocation in between wins over both.
func TestRevocationRacesWithUse(t *testing.T) {
	w := begin(t)
	p := w.create(Request{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { w.Authenticate(context.Background(), "codex", p.Offers[0].Token) })
	}
	wg.Go(func() { w.Service.Revoke(context.Background(), p.Phone.ID) })
	wg.Wait()
	if w.accepted(p.Offers[0].Token) {
		t.Error("the token outlived its revocation")
	}
}

func TestSecretsStayInMemory(t *testing.T) {
	w := begin(t)
	p := w.create(Request{Label: "label"})
	w.accepted(p.Offers[0].Token)
	w.Revoke(t.Context(), p.Phone.ID)
	if err := w.db.Close(); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(w.dir, "*"))
	for _, f := range files {
		if data, _ := os.ReadFile(f); bytes.Contains(data, []byte(p.Offers[0].Token)) {
			t.Errorf("%s holds the token", filepath.Base(f))
		}
	}
	if strings.Contains(w.log.String(), p.Offers[0].Token) || w.log.Len() == 0 {
		t.Errorf("log: %s", w.log.String())
	}
	var shown map[string]any
	text, _ := json.Marshal(p.Phone)
	json.Unmarshal(text, &shown)
	if shown["TokenHash"] == p.Offers[0].Token {
		t.Error("the row holds the token")
	}
}

func TestSystemAddressesAreUsable(t *testing.T) {
	for _, ip := range systemAddresses()[min(1, len(systemAddresses())):] {
		if !usable(ip) {
			t.Errorf("%v", ip)
		}
	}
}
