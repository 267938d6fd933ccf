package runtimes

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStderrLines(t *testing.T) {
	for _, c := range []struct{ name, write, want string }{
		{"the SDK's form", `{"@level":"warn","@message":"hello","@timestamp":"x","n":3,"b":true}` + "\n", "level=WARN msg=hello b=true n=3\n"},
		{"anything else is debug", "panic: oh\n", "level=DEBUG msg=\"plugin wrote\" line=\"panic: oh\"\n"},
		{"broken JSON", "{\"@level\":\n", "level=DEBUG msg=\"plugin wrote\" line=\"{\\\"@level\\\":\"\n"},
		{"empty lines", "\n\n", ""},
		{"no end yet", "half", ""},
		{"bytes that are no text", "a\xffb\n", "level=DEBUG msg=\"plugin wrote\" line=a?b\n"},
		{"a long line is cut", strings.Repeat("x", 3*longestLine) + "\nnext\n", "level=DEBUG msg=\"plugin wrote\" line=" + strings.Repeat("x", longestValue) + "…\nlevel=DEBUG msg=\"plugin wrote\" line=next\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{1, 7, 1 << 20} { // however the pipe cuts it
				var b bytes.Buffer
				s := newStderrLog(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
					if a.Key == slog.TimeKey {
						return slog.Attr{}
					}
					return a
				}})))
				for rest := c.write; rest != ""; {
					n := min(size, len(rest))
					if _, err := s.Write([]byte(rest[:n])); err != nil {
						t.Fatal(err)
					}
					rest = rest[n:]
				}
				if diff := cmp.Diff(c.want, b.String()); diff != "" {
					t.Errorf("in pieces of %d (-want +got)\n%s", size, diff)
				}
			}
		})
	}
}

func TestStderrTail(t *testing.T) {
	s := newStderrLog(slog.New(slog.DiscardHandler))
	for n := range 2000 {
		fmt.Fprintf(s, "line %d\n", n)
	}
	tail := s.Tail()
	if len(tail) > tailBytes || !strings.HasSuffix(tail, "line 1999\n") {
		t.Errorf("%d bytes, ends with %q", len(tail), tail[len(tail)-20:])
	}
}
