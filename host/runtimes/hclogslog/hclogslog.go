// Package hclogslog lets go-plugin, which wants an hclog logger, write into slog. It is the only place that knows hclog,
// and it must not know what is logged. A logger is safe for concurrent use.
package hclogslog

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// New makes an hclog logger that writes into l. All of it becomes debug: the supervisor says once, in its own words, what
// a person should know about a start or an end.
func New(l *slog.Logger) hclog.Logger { return &logger{l: l} }

type logger struct {
	l       *slog.Logger
	name    string
	implied []any
}

var _ hclog.Logger = (*logger)(nil)

func (a *logger) Log(level hclog.Level, msg string, args ...any) {
	if level > hclog.Trace {
		a.l.Debug(msg, stringKeys(args)...)
	}
}
func (a *logger) Trace(string, ...any)             {}
func (a *logger) Debug(msg string, args ...any)    { a.Log(hclog.Debug, msg, args...) }
func (a *logger) Info(msg string, args ...any)     { a.Log(hclog.Info, msg, args...) }
func (a *logger) Warn(msg string, args ...any)     { a.Log(hclog.Warn, msg, args...) }
func (a *logger) Error(msg string, args ...any)    { a.Log(hclog.Error, msg, args...) }
func (a *logger) IsTrace() bool                    { return false }
func (a *logger) IsDebug() bool                    { return a.l.Enabled(context.Background(), slog.LevelDebug) }
func (a *logger) IsInfo() bool                     { return a.IsDebug() }
func (a *logger) IsWarn() bool                     { return a.IsDebug() }
func (a *logger) IsError() bool                    { return a.IsDebug() }
func (a *logger) ImpliedArgs() []any               { return a.implied }
func (a *logger) Name() string                     { return a.name }
func (a *logger) ResetNamed(n string) hclog.Logger { c := *a; c.name = n; return &c }
func (a *logger) SetLevel(hclog.Level)             {}

func (a *logger) With(args ...any) hclog.Logger {
	c := *a
	c.l = a.l.With(stringKeys(args)...)
	c.implied = append(append([]any(nil), a.implied...), args...)
	return &c
}

func (a *logger) Named(n string) hclog.Logger {
	if a.name != "" {
		n = a.name + "." + n
	}
	return a.ResetNamed(n)
}

func (a *logger) GetLevel() hclog.Level {
	if a.IsDebug() {
		return hclog.Debug
	}
	return hclog.Off
}

func (a *logger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return log.New(a.StandardWriter(nil), "", 0)
}

func (a *logger) StandardWriter(*hclog.StandardLoggerOptions) io.Writer { return writer{a} }

type writer struct{ a *logger }

func (w writer) Write(b []byte) (int, error) {
	w.a.Debug(string(bytes.TrimSpace(b)))
	return len(b), nil
}

// stringKeys makes hclog's pairs into slog's: a key is a string, and no value can be a secret of ours, because go-plugin
// sees none but certificates, which it does not log.
func stringKeys(args []any) []any {
	out := make([]any, 0, len(args)+1)
	for i, v := range args {
		if i%2 == 0 {
			out = append(out, strings.ReplaceAll(fmt.Sprint(v), " ", "_"))
			continue
		}
		out = append(out, v)
	}
	if len(out)%2 == 1 {
		out = append(out, "")
	}
	return out
}
