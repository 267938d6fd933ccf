package jsonframe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// DecodeParams reads the parameters of a request into the struct v points to. Absent parameters (no bytes) are an
// empty object. Unlike encoding/json it refuses arrays, null and text that is not UTF-8, matches names letter for
// letter, and refuses null for a field that is not json.RawMessage. Unknown members are ignored.
func DecodeParams(params []byte, v any) error { return decode(params, v, false) }

// DecodeExact is DecodeParams that refuses unknown members too.
func DecodeExact(params []byte, v any) error { return decode(params, v, true) }

func decode(params []byte, v any, exact bool) error {
	if len(params) == 0 {
		return nil
	}
	list, err := Members(params)
	if err != nil {
		return err
	}
	target := reflect.ValueOf(v).Elem()
	fields := map[string]reflect.Value{}
	for i := range target.NumField() {
		f := target.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && name != "-" {
			if name == "" {
				name = f.Name
			}
			fields[name] = target.Field(i)
		}
	}
	for _, m := range list {
		f, known := fields[m.Name]
		switch {
		case !known && exact:
			return fmt.Errorf("jsonframe: unknown member %.40q", m.Name)
		case !known:
			continue
		}
		f.SetZero() // of a doubled name the last one counts, whole
		if raw, ok := f.Addr().Interface().(*json.RawMessage); ok {
			*raw = bytes.Clone(m.Value)
			continue
		}
		if string(m.Value) == "null" {
			return fmt.Errorf("jsonframe: member %.40q is null", m.Name)
		}
		if err := json.Unmarshal(m.Value, f.Addr().Interface()); err != nil {
			return fmt.Errorf("jsonframe: member %.40q has the wrong type", m.Name)
		}
	}
	return nil
}
