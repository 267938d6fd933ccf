package clawket

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/quick"
)

func FuzzParseRequest(f *testing.F) {
	for _, s := range []string{`null`, `{"type":"req","id":"1","method":"connect","params":{"token":"x"}}`, `{"type":"req","id":"1"}`, `[`, `{"type":"req","id":"\ud800","method":"echo","params":{}}`, "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, frame string) {
		q, err := ParseRequest([]byte(frame))
		if err != nil {
			return
		}
		if q.Type != TypeRequest || q.ID == "" || UTF16Len(q.ID) > MaxIDUnits {
			t.Errorf("%q became %+v", frame, q)
		}
		if q.Params != nil && (!json.Valid(q.Params) || q.Params[0] != '{') {
			t.Errorf("%q has params %q", frame, q.Params)
		}
	})
}

func TestUTF16(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		cut3 string
	}{{"", 0, ""}, {"abc", 3, "abc"}, {"abcd", 4, "abc"}, {"é€😀", 4, "é€"}, {"😀😀", 4, "😀"}} {
		if got := UTF16Len(c.text); got != c.n {
			t.Errorf("UTF16Len(%q) = %d, want %d", c.text, got, c.n)
		}
		if got := CutUTF16(c.text, 3); got != c.cut3 {
			t.Errorf("CutUTF16(%q, 3) = %q, want %q", c.text, got, c.cut3)
		}
	}
	prefix := func(s string, n uint8) bool {
		s = strings.ToValidUTF8(s, "")
		cut := CutUTF16(s, int(n))
		return strings.HasPrefix(s, cut) && UTF16Len(cut) <= int(n)
	}
	if err := quick.Check(prefix, nil); err != nil {
		t.Error(err)
	}
}

func TestMarshalEscapesNothingNeedlessly(t *testing.T) {
	got, err := Marshal(map[string]string{"a": "<b>&"})
	if err != nil || string(got) != `{"a":"<b>&"}` {
		t.Errorf("got %s, %v", got, err)
	}
}
