package serve

import (
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// scrub replaces invalid UTF-8 in every string of a message. A native store or a child's output may hold such bytes, and
// a message with them would break the stream it travels on.
func scrub(m proto.Message) {
	if m == nil {
		return
	}
	scrubMessage(m.ProtoReflect())
}

func scrubMessage(m protoreflect.Message) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap():
			scrubMap(fd, v.Map())
		case fd.IsList():
			scrubList(fd, v.List())
		case fd.Message() != nil:
			scrubMessage(v.Message())
		case fd.Kind() == protoreflect.StringKind && !utf8.ValidString(v.String()):
			m.Set(fd, protoreflect.ValueOfString(validUTF8(v.String())))
		}
		return true
	})
}

func scrubList(fd protoreflect.FieldDescriptor, l protoreflect.List) {
	for i := range l.Len() {
		switch {
		case fd.Message() != nil:
			scrubMessage(l.Get(i).Message())
		case fd.Kind() == protoreflect.StringKind && !utf8.ValidString(l.Get(i).String()):
			l.Set(i, protoreflect.ValueOfString(validUTF8(l.Get(i).String())))
		}
	}
}

func scrubMap(fd protoreflect.FieldDescriptor, m protoreflect.Map) {
	if fd.MapValue().Kind() != protoreflect.StringKind {
		return
	}
	m.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		key := k.String()
		if !utf8.ValidString(key) {
			m.Clear(k)
			key = validUTF8(key)
		}
		m.Set(protoreflect.ValueOfString(key).MapKey(), protoreflect.ValueOfString(validUTF8(v.String())))
		return true
	})
}
