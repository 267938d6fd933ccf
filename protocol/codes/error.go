// Package codes is the error registry: every stable code that may cross a border, with whose fault it is, whether it
// may be tried again, what became of the effect, and the one fixed sentence a person is shown. The constants and the
// table in codes.gen.go come from codes.json; docs/errors.md is the same table for people.
//
// Nothing that a runtime, a provider or a path says can get into a message: parameters are names and numbers of at
// most 200 characters, and the cause is for the local log only. The package does no I/O and is safe for concurrent use.
package codes

import (
	"errors"
	"fmt"
	"log/slog"
	"sort"
	"strings"
	"time"
)

// Outcome says whether an effect happened; the zero value is unknown, which is never tried again.
type Outcome string

// Outcomes.
const (
	Unknown       Outcome = ""               // it may have happened
	NotDispatched Outcome = "not_dispatched" // proven: it did not happen
	Dispatched    Outcome = "dispatched"     // it ran and failed
)

// Info is one row of the registry.
type Info struct {
	Code      string
	Number    int
	Source    string // host, plugin, runtime, phone, relay
	Retry     string // never, after_reconnect, after_ms, user
	Outcome   Outcome
	CloseCode int
	Message   string // {name} is replaced by the parameter of that name
	Since     string
}

// Error is a failure with a stable code.
type Error struct {
	Code       string
	Outcome    Outcome
	Source     string
	RetryAfter time.Duration // 0: not by itself
	Params     map[string]string
	cause      error
}

// New makes an error of the registry. params are pairs of name and value.
func New(code string, params ...string) *Error {
	info := Lookup(code)
	e := &Error{Code: code, Outcome: info.Outcome, Source: info.Source}
	for i := 0; i+1 < len(params); i += 2 {
		if e.Params == nil {
			e.Params = map[string]string{}
		}
		e.Params[params[i]] = bound(params[i+1])
	}
	return e
}

// Because attaches a cause for the local log; it is never shown or sent.
func (e *Error) Because(cause error) *Error { c := *e; c.cause = cause; return &c }

// With sets the outcome.
func (e *Error) With(o Outcome) *Error { c := *e; c.Outcome = o; return &c }

// Error is the code and the fixed sentence, nothing else.
func (e *Error) Error() string { return e.Code + ": " + e.Message() }

// Message is the sentence for a person.
func (e *Error) Message() string { return Fill(Lookup(e.Code).Message, e.Params) }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.cause }

// LogValue shows code and cause to the local log.
func (e *Error) LogValue() slog.Value {
	if e.cause == nil {
		return slog.StringValue(e.Code)
	}
	return slog.StringValue(fmt.Sprintf("%s (%v)", e.Code, e.cause))
}

// Is matches errors of the same code.
func (e *Error) Is(target error) bool {
	var t *Error
	return errors.As(target, &t) && t != nil && t.Code == e.Code
}

// As finds the coded error in a chain; nil when there is none.
func As(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// Of is the code of an error: "" for nil, internal for an error without one.
func Of(err error) string {
	if err == nil {
		return ""
	}
	if e := As(err); e != nil {
		return e.Code
	}
	return Internal
}

// Lookup finds the row of a code. An unknown code has the row of unknown_code under its own name.
func Lookup(code string) Info {
	if i, ok := table[code]; ok {
		return i
	}
	i := table[UnknownCode]
	i.Code = code
	return i
}

// Known reports whether the registry has the code.
func Known(code string) bool { _, ok := table[code]; return ok }

// All lists the registry in order of number.
func All() []Info {
	list := make([]Info, 0, len(table))
	for _, i := range table {
		list = append(list, i)
	}
	sort.Slice(list, func(a, b int) bool { return list[a].Number < list[b].Number })
	return list
}

// Fill replaces {name} by its parameter; a missing one becomes a dash.
func Fill(text string, params map[string]string) string {
	for {
		i := strings.IndexByte(text, '{')
		if i < 0 {
			return text
		}
		j := strings.IndexByte(text[i:], '}')
		if j < 0 {
			return text
		}
		v, ok := params[text[i+1:i+j]]
		if !ok {
			v = "-"
		}
		text = text[:i] + strings.NewReplacer("{", "(", "}", ")").Replace(bound(v)) + text[i+j+1:]
	}
}

func bound(s string) string {
	r := []rune(s)
	if len(r) > 200 {
		r = r[:200]
	}
	return string(r)
}
