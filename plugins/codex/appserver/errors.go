package appserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Errors of calls. Everything that is neither an *RPCError nor ErrNotSent leaves the outcome unknown.
var (
	// ErrNotSent says that not one byte of the request was written.
	ErrNotSent = errors.New("appserver: not sent")
	// errUncertain says that the request was handed over and no answer came.
	errUncertain = errors.New("appserver: outcome unknown")
	// ErrReply says that the answer came and could not be read; the request was executed.
	ErrReply = errors.New("appserver: reply not readable")
	// ErrFrame says that the peer broke the framing; the connection is over.
	ErrFrame = errors.New("appserver: frame too large")
)

// RPCError is an error answer: the request was understood or not, and in either case not executed.
type RPCError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error shows the number alone: messages hold paths and text of providers.
func (e *RPCError) Error() string { return fmt.Sprintf("appserver: error %d", e.Code) }

// Rejected reports that the request certainly had no effect.
func Rejected(err error) bool {
	var e *RPCError
	return errors.As(err, &e) || errors.Is(err, ErrNotSent)
}

// Refusal is what an error answer is about, as far as a caller has to tell them apart.
type Refusal int

// Refusals.
const (
	RefusalOther          Refusal = iota
	RefusalActiveWriter           // another process has the thread loaded
	RefusalNoRollout              // the thread has no record
	RefusalNotLoaded              // the thread is not loaded in this process
	RefusalArchived               // the thread is archived
	RefusalEmptyHistory           // the thread has no history yet, or not in this form
	RefusalNoActiveTurn           // nothing is running
	RefusalOtherTurn              // another turn is running
	RefusalCursor                 // the cursor is not known
	RefusalConfig                 // the configuration of the computer cannot be loaded
	RefusalProfile                // the permission profile does not exist
	RefusalConflict               // the configuration changed meanwhile
	RefusalTooLarge               // the input is too long
	RefusalNotInitialized         // the handshake is missing
)

// rpcUnsupported is the code of a call a thread does not support; it does not mean that the method is missing.
const rpcUnsupported = -32601

// Classify tells what an error is about. Code -32600 is used for almost everything, so the literal beginnings of the
// messages decide.
func Classify(err error) Refusal {
	var e *RPCError
	if !errors.As(err, &e) {
		return RefusalOther
	}
	m := e.Message
	switch {
	case e.Code == rpcUnsupported && strings.HasSuffix(m, "is not supported yet"),
		strings.HasPrefix(m, "thread ") && strings.Contains(m, " is not materialized yet;"):
		return RefusalEmptyHistory
	case strings.HasPrefix(m, "thread ") && strings.HasSuffix(m, "already has an active writer"):
		return RefusalActiveWriter
	case strings.HasPrefix(m, "no rollout found for thread id"), strings.HasPrefix(m, "invalid thread id"),
		strings.HasPrefix(m, "invalid session id"):
		return RefusalNoRollout
	case strings.Contains(m, "failed to read session metadata") && strings.HasSuffix(m, " is empty"):
		return RefusalNoRollout // its process died between making the file and writing the first line
	case strings.HasPrefix(m, "thread not found:"), strings.HasPrefix(m, "thread not loaded:"):
		return RefusalNotLoaded
	case strings.HasPrefix(m, "session ") && strings.Contains(m, " is archived."):
		return RefusalArchived
	case strings.HasPrefix(m, "no active turn to"):
		return RefusalNoActiveTurn
	case strings.HasPrefix(m, "expected active turn id"):
		return RefusalOtherTurn
	case strings.HasPrefix(m, "invalid cursor"):
		return RefusalCursor
	case strings.Contains(m, "default_permissions refers to undefined profile"),
		strings.Contains(m, "default_permissions requires a `[permissions]` table"):
		return RefusalProfile
	case strings.HasPrefix(m, "failed to load configuration"):
		return RefusalConfig
	case strings.HasPrefix(m, "Not initialized"):
		return RefusalNotInitialized
	}
	var data struct {
		Input  string `json:"input_error_code"`
		Config string `json:"config_write_error_code"`
	}
	_ = json.Unmarshal(e.Data, &data)
	switch {
	case data.Input == "input_too_large":
		return RefusalTooLarge
	case data.Config == "configVersionConflict":
		return RefusalConflict
	}
	return RefusalOther
}
