package clawket

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/openphone-host/openphone/protocol/jsonframe"
)

// Types of frames.
const (
	TypeRequest  = "req"
	TypeResponse = "res"
	TypeEvent    = "event"
	TypeTick     = "tick"
	TypePong     = "pong"
)

// Request is what a phone asks.
type Request struct {
	Type   string          `json:"type"`
	ID     string          `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// Response is the answer to one request. A failure to read a frame is answered without an id.
type Response struct {
	Type    string   `json:"type"`
	ID      string   `json:"id,omitempty"`
	OK      bool     `json:"ok"`
	Payload any      `json:"payload,omitempty"`
	Error   *Failure `json:"error,omitempty"`
}

// Failure is what a phone is told about an error; Message is shown to the person.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Event is an update of a backend.
type Event struct {
	Type    string `json:"type"`
	Event   string `json:"event"`
	Payload any    `json:"payload"`
}

// Tick is the sign of life a phone waits for.
type Tick struct {
	Type string `json:"type"`
	TS   int64  `json:"ts"`
	Ack  string `json:"ack,omitempty"`
}

// Incoming is any frame as a client reads it; which fields are set depends on Type.
type Incoming struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	OK      bool            `json:"ok"`
	Event   string          `json:"event"`
	Payload json.RawMessage `json:"payload"`
	Error   *Failure        `json:"error"`
	TS      int64           `json:"ts"`
	Ack     string          `json:"ack"`
}

// Ways a frame of a phone can fail to be a request.
var (
	// ErrUnreadable: no JSON, or null. It is answered without an id and changes nothing.
	ErrUnreadable = errors.New("frame is not readable")
	// ErrNotRequest: JSON, but of another shape. Before authentication it ends the socket.
	ErrNotRequest = errors.New("frame is not a request")
	// ErrIgnored: a frame of another type that asks for nothing, such as a pong.
	ErrIgnored = errors.New("frame asks for nothing")
)

// ParseRequest reads a frame of a phone. With ErrNotRequest the returned id may be set, so that the failure can be
// answered to whoever waits for it.
func ParseRequest(frame []byte) (Request, error) {
	trimmed := bytes.TrimLeft(frame, " \t\r\n")
	if jsonframe.Check(trimmed) != nil || bytes.HasPrefix(trimmed, []byte("null")) {
		return Request{}, ErrUnreadable
	}
	if trimmed[0] != '{' {
		return Request{}, ErrNotRequest
	}
	fields, err := Fields(trimmed)
	if err != nil {
		return Request{}, ErrNotRequest
	}
	var q Request
	q.ID, _ = text(fields["id"])
	if n := jsonframe.Units(q.ID); n < 1 || n > MaxIDUnits {
		q.ID = ""
	}
	q.Type, _ = text(fields["type"])
	switch q.Type {
	case TypeRequest:
	case TypePong, TypeTick, TypeEvent, TypeResponse:
		return q, ErrIgnored
	default:
		return q, ErrNotRequest
	}
	var ok bool
	if q.Method, ok = text(fields["method"]); !ok || q.ID == "" {
		return q, ErrNotRequest
	}
	if p, given := fields["params"]; given {
		if len(p) == 0 || p[0] != '{' {
			return q, ErrNotRequest
		}
		q.Params = p
	}
	return q, nil
}

// Fields splits a JSON object into its members. Names match exactly, and of a name given twice the last one counts, as
// in the other implementations.
func Fields(object []byte) (map[string]json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(object, &m); err != nil {
		return nil, err
	}
	return m, nil
}

func text(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

// Marshal writes a frame without escaping what needs no escaping: byte counts depend on it.
func Marshal(v any) ([]byte, error) { return jsonframe.Marshal(v) }
