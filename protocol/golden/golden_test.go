package golden

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const recording = `{"dir":"c2s","msg":{"method":"turn/start","id":4,"params":{}}}
{"dir":"s2c","msg":{"id":4,"result":{"turn":{"id":"t"}}}}

{"dir":"s2c","msg":{"method":"ask","id":0,"params":{}},"scenario":"x"}
{"dir":"c2s","msg":{"id":0,"result":{"decision":"accept"}},"scenario":"x"}
{"dir":"s2c","msg":{"method":"turn/completed","params":{}},"scenario":"x"}
`

func TestRead(t *testing.T) {
	frames, err := Read(strings.NewReader(recording))
	if err != nil {
		t.Fatal(err)
	}
	if len(frames) != 5 || frames[1].Dir != ToClient || frames[2].Line != 4 {
		t.Errorf("frames = %+v", frames)
	}
	if got := Scenarios(frames); cmp.Diff([]string{"x"}, got) != "" || len(Scenario(frames, "x")) != 3 {
		t.Errorf("scenarios = %q", got)
	}
	for _, bad := range []string{"{", `{"dir":"up","msg":{}}`, `{"dir":"c2s"}`} {
		if _, err := Read(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestSame(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":[1]}`, `{ "b":[1], "a":1 }`, true},
		{`{"a":12345678901234567890}`, `{"a":12345678901234567891}`, false},
		{`{"id":0}`, `{}`, false},
		{`{"a":1.0}`, `{"a":1}`, false},
		{`{`, `{`, false},
	} {
		if got := Same([]byte(tt.a), []byte(tt.b)); got != tt.want {
			t.Errorf("Same(%s, %s) = %v", tt.a, tt.b, got)
		}
	}
}

func TestServerPlaysItsHalf(t *testing.T) {
	frames, err := Read(strings.NewReader(recording))
	if err != nil {
		t.Fatal(err)
	}
	client := `{"method":"initialize","id":"a","params":{}}
{"method":"turn/start","id":77,"params":{"x":1}}
{"id":0,"result":{"decision":"decline"}}
{"method":"late","id":78}
`
	var out bytes.Buffer
	s := &Server{Other: func(method string, _ json.RawMessage) Answer {
		if method == "initialize" {
			return Answer{Result: map[string]any{"userAgent": "x"}}
		}
		return Answer{Code: -1, Message: "no " + method}
	}}
	if err := s.Play(frames, strings.NewReader(client), &out); err != nil {
		t.Fatal(err)
	}
	want := `{"id":"a","result":{"userAgent":"x"}}
{"id":77,"result":{"turn":{"id":"t"}}}
{"method":"ask","id":0,"params":{}}
{"method":"turn/completed","params":{}}
{"error":{"code":-1,"message":"no late"},"id":78}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	if len(s.Heard) != 4 || s.Heard[2].Result == nil {
		t.Errorf("heard = %+v", s.Heard)
	}
}

func TestServerTellsOfAClientThatLeaves(t *testing.T) {
	frames, _ := Read(strings.NewReader(recording))
	for _, client := range []string{"", `{"method":"turn/start","id":1}` + "\n", "nonsense\n"} {
		if err := (&Server{}).Play(frames, strings.NewReader(client), io.Discard); err == nil {
			t.Errorf("client %q: no error", client)
		}
	}
}
