package hclogslog

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
)

// TestLevels: everything is debug, whatever go-plugin thinks of it, and nothing is written when nobody wants debug.
func TestLevels(t *testing.T) {
	for _, c := range []struct {
		level slog.Level
		want  string
	}{
		{slog.LevelDebug, "level=DEBUG msg=one a=1\nlevel=DEBUG msg=two x_y=\"\" b=2\nlevel=DEBUG msg=three\n"},
		{slog.LevelInfo, ""},
	} {
		var b bytes.Buffer
		l := New(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: c.level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})))
		l.Error("one", "a", 1)
		l.Named("p").With("x y", "").Info("two", "b", 2)
		_, _ = l.StandardWriter(nil).Write([]byte("three\n"))
		l.Trace("never")
		if diff := cmp.Diff(c.want, b.String()); diff != "" {
			t.Errorf("%v (-want +got)\n%s", c.level, diff)
		}
		if got := l.IsError(); got != (c.level == slog.LevelDebug) {
			t.Errorf("IsError %v", got)
		}
		if got := l.Named("p").Named("q").Name(); got != "p.q" {
			t.Errorf("name %s", got)
		}
	}
	if New(slog.New(slog.DiscardHandler)).GetLevel() != hclog.Off {
		t.Error("go-plugin would parse lines nobody reads")
	}
}
