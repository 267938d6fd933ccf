package serve

import (
	"io"
	"log/slog"
	"os"
	"sync"
	"time"
)

// timeFormat is the one go-plugin's host side reads.
const timeFormat = "2006-01-02T15:04:05.000000Z07:00"

// Logger is the plugin's log: one JSON line per record on standard error, with the keys the host's bridge reads. The host
// adds plugin, version and generation. It never holds prompts, replies, credentials or paths outside the project.
var Logger = sync.OnceValue(func() *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(os.Getenv(EnvLogLevel))); err != nil {
		level = slog.LevelInfo
	}
	return slog.New(newHandler(stderr(), level))
})

// newHandler writes hclog's JSON form.
func newHandler(w io.Writer, level slog.Level) slog.Handler {
	return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) > 0 {
			return a
		}
		switch a.Key {
		case slog.TimeKey:
			if t, ok := a.Value.Any().(time.Time); ok {
				return slog.String("@timestamp", t.Format(timeFormat))
			}
		case slog.LevelKey:
			if l, ok := a.Value.Any().(slog.Level); ok {
				return slog.String("@level", levelName(l))
			}
		case slog.MessageKey:
			a.Key = "@message"
		}
		return a
	}})
}

func levelName(l slog.Level) string {
	switch {
	case l < slog.LevelInfo:
		return "debug"
	case l < slog.LevelWarn:
		return "info"
	case l < slog.LevelError:
		return "warn"
	}
	return "error"
}
