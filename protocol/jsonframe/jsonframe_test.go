package jsonframe

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestMarshal(t *testing.T) {
	t.Parallel()
	got, err := Marshal(map[string]string{"a": "<b> & \u2028"})
	if want := `{"a":"<b> & ` + "\\u2028" + `"}`; string(got) != want || err != nil {
		t.Errorf("Marshal = %s, %v; want %s", got, err, want)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		`{"a":1}`: nil, ` null `: nil, `"\ud800"`: nil, "\"\xff\"": ErrUTF8, "\"\xed\xa0\x80\"": ErrUTF8,
		``: ErrSyntax, `{`: ErrSyntax, `{} {}`: ErrSyntax, `{"a":01}`: ErrSyntax, `NaN`: ErrSyntax,
	} {
		if got := Check([]byte(text)); !errors.Is(got, want) {
			t.Errorf("Check(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()
	text := " {\"a\" : 1.0e+5 ,\n\"\\u0062\":{\"x\":[\"}\",{}]},\"a\":\"\\ud800\\\"\" , \"\":null}\t"
	list, err := Members([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range list {
		got = append(got, m.Name+"="+string(m.Value))
	}
	if d := cmp.Diff([]string{`a=1.0e+5`, `b={"x":["}",{}]}`, `a="\ud800\""`, `=null`}, got); d != "" {
		t.Errorf("members (-want +got):\n%s", d)
	}
	for text, want := range map[string]error{`[]`: ErrNotObject, `null`: ErrNotObject, `"{}"`: ErrNotObject, `{`: ErrSyntax} {
		if _, err := Members([]byte(text)); !errors.Is(err, want) {
			t.Errorf("Members(%s) = %v, want %v", text, err, want)
		}
	}
}

func TestEdit(t *testing.T) {
	t.Parallel()
	set := func(name, value string) func([]byte) ([]byte, error) {
		return func(b []byte) ([]byte, error) { return Set(b, name, json.RawMessage(value)) }
	}
	del := func(name string) func([]byte) ([]byte, error) {
		return func(b []byte) ([]byte, error) { return Delete(b, name) }
	}
	for _, c := range []struct {
		name     string
		do       func([]byte) ([]byte, error)
		in, want string
	}{
		{"replace", set("a", "2"), `{ "z":1.10, "a" : 1 , "b":"\u00e4"}`, `{ "z":1.10, "a" : 2 , "b":"\u00e4"}`},
		{"replace the last of two", set("a", "3"), `{"a":1,"a":2}`, `{"a":1,"a":3}`},
		{"add", set("<", "[]"), `{"a":1 }`, `{"a":1,"<":[] }`},
		{"add to nothing", set("a", "1"), ` { } `, ` {"a":1 } `},
		{"delete the first", del("a"), `{"a":1 , "b":2}`, `{"b":2}`},
		{"delete the last", del("b"), `{"a":1 , "b":2 }`, `{"a":1 }`},
		{"delete in the middle", del("b"), `{"a":1,"b":2,"c":3}`, `{"a":1,"c":3}`},
		{"delete all of a name", del("a"), `{"a":1,"b":0,"a":2}`, `{"b":0}`},
		{"delete everything", del("a"), `{"a":1,"a":1}`, `{}`},
		{"delete nothing", del("x"), `{"a":1}`, `{"a":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := []byte(c.in)
			got, err := c.do(in)
			if string(got) != c.want || err != nil {
				t.Errorf("got %s, %v; want %s", got, err, c.want)
			}
			if string(in) != c.in {
				t.Error("the argument was changed")
			}
		})
	}
	if _, err := Set([]byte(`{}`), "a", json.RawMessage(`{`)); !errors.Is(err, ErrSyntax) {
		t.Errorf("a broken value: %v", err)
	}
	if v, err := Get([]byte(`{"a":1,"a":2}`), "a"); string(v) != "2" || err != nil {
		t.Errorf("Get = %s, %v, want the last", v, err)
	}
	if v, err := Get([]byte(`{"A":1}`), "a"); v != nil || err != nil {
		t.Errorf("Get of a missing one = %s, %v", v, err)
	}
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct{ name, in, want string }{
		{"sorted at every depth", ` { "b" : [ { "d":1, "c":2 } ], "a" : { } } `, `{"a":{},"b":[{"c":2,"d":1}]}`},
		{"the last of a doubled name", `{"a":1,"b":2,"a":3}`, `{"a":3,"b":2}`},
		{"digits stay", `[1.0,1e5,12345678901234567890,-0]`, `[1.0,1e5,12345678901234567890,-0]`},
		{"escapes", `"\u0041\/\u00e4\u2028<\u001f\u007f\n\"\\"`, "\"A/ä\u2028<\\u001f\u007f\\n\\\"\\\\\""},
		{"pairs and lone surrogates", `["\ud83d\ude00","\uDE00","\ud83dx"]`, `["😀","\ude00","\ud83dx"]`},
		// U+FF61 is above the surrogates of U+1F600 in UTF-16 but below it in UTF-8.
		{"order of UTF-16", `{"｡":1,"😀":2}`, `{"😀":2,"｡":1}`},
		{"names that differ only in a lone surrogate", `{"\ud801":1,"\ud800":2}`, `{"\ud800":2,"\ud801":1}`},
		{"scalars", ` true `, `true`},
		{"the deepest", deep(MaxDepth), deep(MaxDepth)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := Canonical([]byte(c.in))
			if string(got) != c.want || err != nil {
				t.Errorf("Canonical(%s) = %s, %v; want %s", c.in, got, err, c.want)
			}
		})
	}
	for text, want := range map[string]error{
		deep(MaxDepth + 1):             ErrDepth,
		`{"a":` + deep(MaxDepth) + `}`: ErrDepth,
		`{"a":`:                        ErrSyntax,
		"\"\xc0\"":                     ErrUTF8,
		strings.Repeat(`{"a":`, 25) + `1` + strings.Repeat("}", 25): ErrDepth,
	} {
		if _, err := Canonical([]byte(text)); !errors.Is(err, want) {
			t.Errorf("Canonical(%.40s) = %v, want %v", text, err, want)
		}
	}
}

func TestDecodeExact(t *testing.T) {
	t.Parallel()
	type params struct {
		Key  string          `json:"sessionKey"`
		N    *int            `json:"n,omitempty"`
		Raw  json.RawMessage `json:"raw"`
		List []string        `json:"list"`
		Skip string          `json:"-"`
	}
	n := 3
	for _, c := range []struct {
		name, in string
		want     *params // nil: refused
	}{
		{"absent", ``, &params{}},
		{"all", `{"sessionKey":"k","n":3,"raw":null,"list":["a"]}`, &params{Key: "k", N: &n, Raw: json.RawMessage(`null`), List: []string{"a"}}},
		{"unknown", `{"x":1,"sessionKey":"k"}`, nil},
		{"another case is another name", `{"SessionKey":"k"}`, nil},
		{"a field without a name", `{"Skip":"x"}`, nil},
		{"the last of two", `{"list":["a","b"],"list":["c"]}`, &params{List: []string{"c"}}},
		{"null", `null`, nil},
		{"array", `[]`, nil},
		{"null field", `{"sessionKey":null}`, nil},
		{"null pointer field", `{"n":null}`, nil},
		{"wrong type", `{"sessionKey":1}`, nil},
		{"fraction", `{"n":1.5}`, nil},
		{"too big", `{"n":99999999999999999999}`, nil},
		{"not UTF-8", "{\"sessionKey\":\"\xff\"}", nil},
		{"cut", `{"sessionKey":"k"`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got params
			err := DecodeExact([]byte(c.in), &got)
			if (err == nil) != (c.want != nil) {
				t.Fatalf("err = %v, refused = %v", err, c.want == nil)
			}
			if c.want != nil {
				if d := cmp.Diff(*c.want, got); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
			}
		})
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in        string
		units, at int
		head      string
	}{
		{"", 0, 3, ""},
		{"abc", 3, 2, "ab"},
		{"ä€", 2, 1, "ä"},
		{"a😀b", 4, 2, "a"},
		{"a😀b", 4, 3, "a😀"},
		{"a😀b", 4, 4, "a😀b"},
		{"a\xffb", 3, 2, "a\xff"},
		{"x", 1, 0, ""},
	} {
		if got := Units(c.in); got != c.units {
			t.Errorf("Units(%q) = %d, want %d", c.in, got, c.units)
		}
		if got := CutUnits(c.in, c.at); got != c.head {
			t.Errorf("CutUnits(%q, %d) = %q, want %q", c.in, c.at, got, c.head)
		}
	}
}

// Whatever is set is there, and nothing else has changed.
func TestEditProperty(t *testing.T) {
	t.Parallel()
	value := rapid.SampledFrom([]string{`1.50`, `"\u00e4"`, `{"b":[1, 2]}`, `null`, `[]`})
	rapid.Check(t, func(rt *rapid.T) {
		var b bytes.Buffer
		b.WriteString("{")
		for i, n := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", `c\"`, ""}), 0, 5).Draw(rt, "names") {
			if i > 0 {
				b.WriteString(" ,")
			}
			b.WriteString(`"` + n + `": ` + value.Draw(rt, "value"))
		}
		b.WriteString(" }")
		name, v := rapid.SampledFrom([]string{"a", "x", `c"`}).Draw(rt, "name"), value.Draw(rt, "new")
		out, err := Set(b.Bytes(), name, json.RawMessage(v))
		if err != nil {
			rt.Fatal(err)
		}
		if got, _ := Get(out, name); string(got) != v {
			rt.Fatalf("Set(%s) = %s", b.Bytes(), out)
		}
		before, _ := Delete(b.Bytes(), name)
		after, err := Delete(out, name)
		if err != nil || Check(after) != nil {
			rt.Fatalf("Delete(%s) = %s, %v", out, after, err)
		}
		x, _ := Canonical(before)
		y, _ := Canonical(after)
		if !bytes.Equal(x, y) {
			rt.Fatalf("the rest changed: %s, %s", before, after)
		}
	})
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"b":[1,{"a":"\ud800"}],"a":-1.5e7}`, `"\\\"\u0000"`, ` [ ] `, `{"a":1,"a":2}`, "\xff", `{`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := Canonical(data)
		if err != nil {
			return
		}
		if err := Check(out); err != nil {
			t.Fatalf("%s became %s: %v", data, out, err)
		}
		again, err := Canonical(out)
		if err != nil || !bytes.Equal(out, again) {
			t.Fatalf("not stable: %s, then %s, %v", out, again, err)
		}
		var a, b any
		if json.Unmarshal(data, &a) == nil && json.Unmarshal(out, &b) == nil && !bytes.Contains(data, []byte(`\u`)) && !reflect.DeepEqual(a, b) {
			t.Fatalf("%s means something else than %s", out, data)
		}
	})
}

func FuzzEdit(f *testing.F) {
	f.Add([]byte(` {"a" : [1,"]"] , "b":{}}`), "a")
	f.Add([]byte(`{}`), "x")
	f.Add([]byte(`[]`), "")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		out, err := Set(data, name, json.RawMessage(`"new"`))
		if err != nil {
			return
		}
		if err := Check(out); err != nil {
			t.Fatalf("%s became %s: %v", data, out, err)
		}
		if out, err = Delete(out, name); err != nil || Check(out) != nil {
			t.Fatalf("then %s: %v", out, err)
		}
		if v, err := Get(out, name); v != nil || err != nil {
			t.Fatalf("still there in %s: %v", out, err)
		}
	})
}
