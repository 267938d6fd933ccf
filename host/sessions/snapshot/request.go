package snapshot

import (
	"bytes"
	"encoding/json"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/jsonframe"
)

// Request is the parameters of sessions.sync: nothing, a base or a page.
type Request struct {
	Base      *Base
	Page      *Page
	PageIndex bool // also name where the further pages begin; never with Page
}

// Base is a complete state the reader has.
type Base struct{ Epoch, Revision string }

// Page is where to continue in a frozen state.
type Page struct {
	Epoch, Revision string
	Offset          int // 0 to maxRows
}

// ParseRequest reads parameters; absent ones are a first read. Errors: params_invalid for anything that is not exactly
// one of the known forms.
func ParseRequest(params []byte) (Request, error) {
	var r Request
	var in struct {
		Base      json.RawMessage `json:"base"`
		Page      json.RawMessage `json:"page"`
		PageIndex json.RawMessage `json:"pageIndex"`
	}
	if err := jsonframe.DecodeExact(params, &in); err != nil {
		return r, invalid(err)
	}
	if in.PageIndex != nil {
		if !bytes.Equal(in.PageIndex, []byte("true")) {
			return r, invalid(nil)
		}
		r.PageIndex = true
	}
	if in.Base != nil {
		var b struct {
			Epoch    string `json:"epoch"`
			Revision string `json:"revision"`
		}
		if err := jsonframe.DecodeExact(in.Base, &b); err != nil || !isID(b.Epoch) || !isID(b.Revision) {
			return r, invalid(err)
		}
		r.Base = &Base{b.Epoch, b.Revision}
	}
	if in.Page != nil {
		p := struct {
			Epoch    string `json:"epoch"`
			Revision string `json:"revision"`
			Offset   *int   `json:"offset"`
		}{}
		err := jsonframe.DecodeExact(in.Page, &p)
		if err != nil || !isID(p.Epoch) || !isID(p.Revision) || p.Offset == nil || *p.Offset < 0 || *p.Offset > maxRows ||
			r.Base != nil || r.PageIndex {
			return r, invalid(err)
		}
		r.Page = &Page{p.Epoch, p.Revision, *p.Offset}
	}
	return r, nil
}

func invalid(cause error) error {
	e := codes.New(codes.ParamsInvalid)
	if cause != nil {
		return e.Because(cause)
	}
	return e
}

// isID reports whether s is 32 lower-case hex digits.
func isID(s string) bool {
	if len(s) != 32 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
