package cli

import (
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// plain turns a message into what --json prints: names as in the .proto file, every field present, times as RFC 3339 or
// null, enums in lower case without their prefix. protojson would print process ids as strings.
func plain(m proto.Message) map[string]any {
	r := m.ProtoReflect()
	out := map[string]any{}
	fields := r.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		v := r.Get(f)
		switch {
		case f.IsMap():
			entries := map[string]any{}
			v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				entries[k.String()] = value(f.MapValue(), v)
				return true
			})
			out[string(f.Name())] = entries
		case f.IsList():
			list := make([]any, v.List().Len())
			for i := range list {
				list[i] = value(f, v.List().Get(i))
			}
			out[string(f.Name())] = list
		case f.Message() != nil && !r.Has(f):
			out[string(f.Name())] = nil
		default:
			out[string(f.Name())] = value(f, v)
		}
	}
	return out
}

func value(f protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch {
	case f.Message() != nil:
		if t, ok := v.Message().Interface().(*timestamppb.Timestamp); ok {
			return t.AsTime().Format(time.RFC3339Nano)
		}
		return plain(v.Message().Interface())
	case f.Enum() != nil:
		d := f.Enum().Values().ByNumber(v.Enum())
		if d == nil {
			return "unspecified"
		}
		zero := string(f.Enum().Values().ByNumber(0).Name())
		return strings.ToLower(strings.TrimPrefix(string(d.Name()), strings.TrimSuffix(zero, "UNSPECIFIED")))
	}
	return v.Interface()
}
