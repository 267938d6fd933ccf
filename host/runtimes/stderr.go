package runtimes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/openphone-host/openphone/host/obs"
)

const (
	tailBytes    = 4 << 10 // of standard error, kept for the log when a plugin crashes
	longestLine  = 8 << 10 // of standard error; longer ones are cut
	longestValue = 1 << 10 // of one attribute
	mostAttrs    = 24      // of one line
	linesPerSec  = 50
	linesBurst   = 200
)

// stderrLog brings a plugin's standard error into the host's log. Lines in the SDK's JSON (the form of hclog) keep level,
// message and attributes; anything else is debug, because it may hold what a native program printed. It keeps the last 4 KiB.
// Safe for concurrent use.
type stderrLog struct {
	log   *slog.Logger
	limit *rate.Limiter

	mu         sync.Mutex
	line       []byte
	cut        bool
	tail       []byte
	suppressed int
}

func newStderrLog(l *slog.Logger) *stderrLog {
	return &stderrLog{log: l, limit: rate.NewLimiter(linesPerSec, linesBurst)}
}

// Write implements io.Writer; it never fails, so that a plugin never blocks on its log.
func (s *stderrLog) Write(b []byte) (int, error) {
	s.mu.Lock()
	s.tail = append(s.tail, b...)
	if over := len(s.tail) - tailBytes; over > 0 {
		s.tail = append(s.tail[:0], s.tail[over:]...)
	}
	var lines [][]byte
	rest := b
	for len(rest) > 0 {
		end := bytes.IndexByte(rest, '\n')
		part := rest
		if end >= 0 {
			part = rest[:end]
		}
		if room := longestLine - len(s.line); len(part) > room {
			part = part[:max(room, 0)]
			s.cut = true
		}
		s.line = append(s.line, part...)
		if end < 0 {
			break
		}
		if len(s.line) > 0 {
			lines = append(lines, slices.Clone(s.line))
		}
		s.line, s.cut = s.line[:0], false
		rest = rest[end+1:]
	}
	s.mu.Unlock()
	for _, l := range lines {
		s.emit(l)
	}
	return len(b), nil
}

// Tail is the end of what the plugin wrote.
func (s *stderrLog) Tail() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(bytes.ToValidUTF8(s.tail, []byte("?")))
}

func (s *stderrLog) emit(line []byte) {
	level, msg, attrs := parseLine(line)
	ctx := context.Background()
	if !s.log.Enabled(ctx, level) {
		return
	}
	if !s.limit.AllowN(time.Now(), 1) {
		s.mu.Lock()
		s.suppressed++
		s.mu.Unlock()
		return
	}
	s.mu.Lock()
	n := s.suppressed
	s.suppressed = 0
	s.mu.Unlock()
	if n > 0 {
		attrs = append(attrs, slog.Int(obs.KeySuppressed, n))
	}
	s.log.LogAttrs(ctx, level, msg, attrs...)
}

// parseLine reads a line of the SDK's JSON handler.
func parseLine(line []byte) (slog.Level, string, []slog.Attr) {
	var m map[string]any
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &m) != nil {
		return slog.LevelDebug, "plugin wrote", []slog.Attr{slog.String("line", clip(string(bytes.ToValidUTF8(line, []byte("?")))))}
	}
	level := slog.LevelDebug
	if text, ok := m["@level"].(string); ok {
		_ = level.UnmarshalText([]byte(text))
	}
	msg, _ := m["@message"].(string)
	var attrs []slog.Attr
	for _, k := range sortedKeys(m) {
		if k[:min(len(k), 1)] == "@" {
			continue
		}
		if len(attrs) == mostAttrs {
			break
		}
		attrs = append(attrs, slog.String(clip(k), clip(fmt.Sprint(m[k]))))
	}
	return level, clip(msg), attrs
}

func clip(s string) string {
	if len(s) > longestValue {
		return s[:longestValue] + "…"
	}
	return s
}
