package openphone

import (
	"strings"
	"testing"
)

func TestParamsHash(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, params, want string }{
		{"a message", `{"to":"+15551234567","body":"on my way"}`, "1e920af2c02daa49a449d1ebe938e08f196a9dfa6a3c05b36adbabbd7387193b"},
		{"the same in another order and layout", "{ \"body\" : \"on my way\",\n\"to\":\"+15551234567\" }", "1e920af2c02daa49a449d1ebe938e08f196a9dfa6a3c05b36adbabbd7387193b"},
		{"nothing", `{}`, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"},
		{"nested", `{"z":{"b":2,"a":1},"a":[3,{"y":true,"x":null}]}`, "ec6c43224edc1d346f2e8e60a653b47df2346dabf8d9e4f8d7b378845125a250"},
		{"not ASCII", `{"body":"café → 😀"}`, "c8e0a199ed18106634a6a12bd76a9a2211e68028bc5846d208a6a8c77234557c"},
		{"separators and controls", "{\"a\":\"<&>\u2028\\u0007\"}", "370ef448ea41f6583ad70705fa364e6236ac6d12c3287c986caae04098ae6e5b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got, err := ParamsHash([]byte(c.params)); err != nil || got != "sha256:"+c.want {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

func TestCanonicalParams(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, params, want string }{
		{"an emoji stands before U+FFFF", "{\"\uffff\":1,\"😀\":2}", "{\"😀\":2,\"\uffff\":1}"},
		{"numbers as JavaScript writes them", `{"a":[1.0,1e3,-0,0.50,1E-7,-1.5e-10,0.000001,123.456,9007199254740991]}`, `{"a":[1,1000,0,0.5,1e-7,-1.5e-10,0.000001,123.456,9007199254740991]}`},
		{"digits in texts stay", `{"1.0":"2.0 \" 3.0"}`, `{"1.0":"2.0 \" 3.0"}`},
		{"null stays", `{"a":null}`, `{"a":null}`},
		{"two integers that a double does not keep apart", `{"a":9007199254740993}`, ""},
		{"too large", `{"a":1e400}`, ""},
		{"no object", `[1]`, ""},
		{"no JSON", `{"a":}`, ""},
		{"nothing at all", ``, ""},
		{"too deep", `{"a":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + "}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := CanonicalParams([]byte(c.params))
			if string(got) != c.want || (err != nil) != (c.want == "") {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}
