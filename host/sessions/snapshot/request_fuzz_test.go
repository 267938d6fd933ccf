package snapshot

import (
	"strings"
	"testing"
)

// Whatever a phone sends: a request that is understood is one of the three forms, within its bounds.
func FuzzParseRequest(f *testing.F) {
	id := strings.Repeat("0a", 16)
	for _, s := range []string{
		``, `{}`, `{"pageIndex":true}`, `{"base":{"epoch":"` + id + `","revision":"` + id + `"}}`,
		`{"page":{"epoch":"` + id + `","revision":"` + id + `","offset":65}}`, `[]`, `{"page":{"offset":1e3}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		r, err := ParseRequest(params)
		if err != nil {
			return
		}
		if b := r.Base; b != nil && (r.Page != nil || !isID(b.Epoch) || !isID(b.Revision)) {
			t.Errorf("%s: %+v", params, b)
		}
		if p := r.Page; p != nil && (r.PageIndex || !isID(p.Epoch) || !isID(p.Revision) || p.Offset < 0 || p.Offset > maxRows) {
			t.Errorf("%s: %+v", params, p)
		}
	})
}
