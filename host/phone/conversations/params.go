package conversations

import (
	"encoding/json"
	"strings"

	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/jsonframe"
)

// params reads the members of a request one by one and remembers whether any was not what it must be, so that a handler
// asks once, after its last read. An optional member may be absent or null.
type params struct {
	fields map[string]json.RawMessage
	failed bool
}

func (p *params) err() error {
	if p.failed {
		return codes.New(codes.ParamsInvalid)
	}
	return nil
}

func (p *params) given(name string) bool {
	raw, ok := p.fields[name]
	return ok && string(raw) != "null"
}

func (p *params) read(name string, first byte, into any) {
	raw := p.fields[name]
	if len(raw) == 0 || raw[0] != first || json.Unmarshal(raw, into) != nil {
		p.failed = true
	}
}

// text is a required string of 1 to max UTF-16 units.
func (p *params) text(name string, max int) string {
	s := p.anyText(name)
	if s == "" || jsonframe.Units(s) > max {
		p.failed = true
		return ""
	}
	return s
}

// anyText is a required string of any length.
func (p *params) anyText(name string) string {
	var s string
	p.read(name, '"', &s)
	return s
}

// optional is a string of at most max UTF-16 units, empty when absent.
func (p *params) optional(name string, max int) string {
	if !p.given(name) {
		return ""
	}
	s := p.anyText(name)
	if jsonframe.Units(s) > max {
		p.failed = true
	}
	return s
}

func (p *params) sessionKey() string { return p.text("sessionKey", clawket.MaxSessionKeyUnits) }

func (p *params) optionalKey() string { return p.optional("sessionKey", clawket.MaxSessionKeyUnits) }

// flag is a required boolean.
func (p *params) flag(name string) bool {
	var b bool
	raw := p.fields[name]
	if string(raw) != "true" && string(raw) != "false" {
		p.failed = true
		return false
	}
	return json.Unmarshal(raw, &b) == nil && b
}

// optionalFlag is a boolean, false when absent.
func (p *params) optionalFlag(name string) bool { return p.given(name) && p.flag(name) }

// integer is a required whole number.
func (p *params) integer(name string) int64 {
	var n int64
	if raw := p.fields[name]; len(raw) == 0 || json.Unmarshal(raw, &n) != nil || string(raw) == "null" {
		p.failed = true
	}
	return n
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
