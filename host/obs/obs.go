// Package obs is what the host tells about itself: structured logs with a level for each component, the last records of
// each in memory, and counters. It knows no component; they name themselves.
//
// Logs leave the host only through the control socket and the log file. Values that must not be read are of types that
// cannot be printed (Redacted) or only shortened (ID), so that a careless line shows nothing. Everything here is safe for
// concurrent use; a log call never blocks on a reader.
package obs

import (
	"log/slog"
	"strings"
)

// Keys of attributes. Lines use these and no other names for the same things.
const (
	keyComponent  = "component"  // part of the host
	KeyRuntime    = "runtime"    // instance id
	KeyGeneration = "generation" // number of a plugin process
	KeyPhone      = "phone"      // ID of a pairing
	KeyMethod     = "method"     // name of a request
	KeyCode       = "code"       // stable error code
	KeyError      = "error"      // cause, for this computer only
	KeyTook       = "took"       // duration
	KeyCount      = "count"      // number of things
	KeySuppressed = "suppressed" // lines like this one that were left out
)

// Redacted is a value that must never be read: a token, a nonce, a pairing payload, prompt or reply text.
type Redacted string

// LogValue implements slog.LogValuer.
func (Redacted) LogValue() slog.Value { return slog.StringValue("[redacted]") }

// String implements fmt.Stringer, so that no other way of printing shows it either.
func (Redacted) String() string { return "[redacted]" }

// GoString implements fmt.GoStringer.
func (Redacted) GoString() string { return "[redacted]" }

// MarshalText keeps it out of every encoding.
func (Redacted) MarshalText() ([]byte, error) { return []byte("[redacted]"), nil }

// ID is an identifier that is shown shortened: enough to follow it through a log, too little to use it.
type ID string

// LogValue implements slog.LogValuer.
func (i ID) LogValue() slog.Value { return slog.StringValue(i.String()) }

// String is the first 8 characters.
func (i ID) String() string {
	if len(i) <= 8 {
		return string(i)
	}
	return strings.ToValidUTF8(string(i[:8]), "?") + "…"
}

// ParseLevel reads debug, info, warn or error; ok is false for anything else.
func ParseLevel(s string) (level slog.Level, ok bool) {
	switch strings.ToLower(s) {
	case "debug":
		return slog.LevelDebug, true
	case "info", "":
		return slog.LevelInfo, true
	case "warn", "warning":
		return slog.LevelWarn, true
	case "error":
		return slog.LevelError, true
	}
	return 0, false
}

// LevelName is the name ParseLevel reads.
func LevelName(l slog.Level) string {
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
