package jsonframe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// DecodeExact reads the parameters of a request into the struct v points to. Absent parameters (no bytes) are an empty
// object. Unlike encoding/json it refuses unknown members, arrays, null and text that is not UTF-8, matches names letter
// for letter, and refuses null for a field that is not json.RawMessage.
func DecodeExact(params []byte, v any) error {
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
		if !known {
			return fmt.Errorf("jsonframe: unknown member %.40q", m.Name)
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
