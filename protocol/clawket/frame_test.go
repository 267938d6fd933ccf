package clawket

import (
	"encoding/json"
	"testing"

	"github.com/openphone-host/openphone/protocol/jsonframe"
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
		if q.Type != TypeRequest || q.ID == "" || jsonframe.Units(q.ID) > MaxIDUnits {
			t.Errorf("%q became %+v", frame, q)
		}
		if q.Params != nil && (!json.Valid(q.Params) || q.Params[0] != '{') {
			t.Errorf("%q has params %q", frame, q.Params)
		}
	})
}

func TestMarshalEscapesNothingNeedlessly(t *testing.T) {
	got, err := Marshal(map[string]string{"a": "<b>&"})
	if err != nil || string(got) != `{"a":"<b>&"}` {
		t.Errorf("got %s, %v", got, err)
	}
}
