package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/protocol/codes"
)

func TestPhones(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	p := Phone{ID: "p1", Label: "L", TokenHash: strings.Repeat("c", 64), CreatedAt: t0}
	must(t, s.PutPhone(t.Context(), p))
	must(t, s.PutPhone(t.Context(), Phone{ID: "p2", TokenHash: "d", CreatedAt: t0}))
	for i := range 2 {
		if ok, err := s.UsePhone(t.Context(), "p1", t0.Add(time.Duration(i+1))); !ok || err != nil {
			t.Fatalf("use: %v %v", ok, err)
		}
	}
	p.FirstUsed, p.LastUsed = t0.Add(1), t0.Add(2)
	got, ok, err := s.PhoneByToken(t.Context(), p.TokenHash)
	if d := cmp.Diff(p, got); d != "" || !ok || err != nil {
		t.Errorf("phone (-want +got), %v %v:\n%s", ok, err, d)
	}
	if ok, err := s.RevokePhone(t.Context(), "p1", t0); !ok || err != nil {
		t.Fatalf("revoke: %v %v", ok, err)
	}
	if ok, _ := s.RevokePhone(t.Context(), "p1", t0); ok {
		t.Error("revoked twice")
	}
	if ok, _ := s.UsePhone(t.Context(), "p1", t0); ok {
		t.Error("a revoked phone was used")
	}
	must(t, s.DeletePhone(t.Context(), "p2"))
	if list, _ := s.Phones(t.Context()); len(list) != 1 {
		t.Errorf("phones = %+v", list)
	}
}

func TestMetaAndPins(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	must(t, s.SetMeta(t.Context(), "clean", "mine")) // the store's own name is another one
	must(t, s.SetMeta(t.Context(), "port", "1"))
	must(t, s.SetMeta(t.Context(), "port", "2"))
	if v, ok, err := s.Meta(t.Context(), "port"); v != "2" || !ok || err != nil {
		t.Errorf("port = %q %v %v", v, ok, err)
	}
	must(t, s.DeleteMeta(t.Context(), "port"))
	if _, ok, _ := s.Meta(t.Context(), "port"); ok {
		t.Error("port is still there")
	}
	must(t, s.PutPin(t.Context(), Pin{Name: "b", SHA256: "1", PinnedAt: t0}))
	must(t, s.PutPin(t.Context(), Pin{Name: "a", SHA256: "1", PinnedAt: t0}))
	must(t, s.PutPin(t.Context(), Pin{Name: "b", SHA256: "2", PinnedAt: t0}))
	got, err := s.Pins(t.Context())
	must(t, err)
	want := []Pin{{Name: "a", SHA256: "1", PinnedAt: t0}, {Name: "b", SHA256: "2", PinnedAt: t0}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("pins (-want +got):\n%s", d)
	}
	must(t, s.DeletePin(t.Context(), "a"))
	if _, ok, _ := s.Pin(t.Context(), "a"); ok {
		t.Error("a is still pinned")
	}
}

func TestAttention(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	a := Attention{
		Runtime: "codex", AttentionID: "a", SessionID: "s", NativeID: "n", Kind: 2, Code: "c",
		Parameters: map[string]string{"x": "y"}, ExpiresAt: t0.Add(time.Hour),
	}
	must(t, s.PutAttention(t.Context(), a, t0))
	a.Kind = 3
	must(t, s.PutAttention(t.Context(), a, t0))
	got, err := s.Attention(t.Context(), "codex", t0)
	if d := cmp.Diff([]Attention{a}, got); d != "" || err != nil {
		t.Errorf("attention (-want +got), %v:\n%s", err, d)
	}
	if got, _ := s.Attention(t.Context(), "codex", t0.Add(time.Hour)); len(got) != 0 {
		t.Error("an expired one is shown")
	}
	for i := range maxAttention - 1 {
		must(t, s.PutAttention(t.Context(), Attention{Runtime: "codex", AttentionID: fmt.Sprint(i)}, t0))
	}
	more := Attention{Runtime: "codex", AttentionID: "more"}
	wantCode(t, s.PutAttention(t.Context(), more, t0), codes.AttentionFull)
	must(t, s.PutAttention(t.Context(), more, t0.Add(2*time.Hour))) // the expired one made room
	must(t, s.DeleteAttention(t.Context(), "codex", "more"))
	must(t, s.PutAttention(t.Context(), a, t0))
	must(t, s.DeleteSession(t.Context(), "codex", "s"))
	got, err = s.Attention(t.Context(), "codex", t0)
	must(t, err)
	if len(got) != maxAttention-1 {
		t.Errorf("%d left after the conversation went, want %d", len(got), maxAttention-1)
	}
}
