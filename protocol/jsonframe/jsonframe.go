// Package jsonframe treats JSON text as what it is: text of somebody else. It edits and compares objects without
// touching what it was not asked to touch: numbers keep their digits, members their order, strings their escapes and
// lone surrogates, where encoding/json would round, sort or replace.
//
// It knows no message and no peer. Everything is a pure function of its arguments and safe for concurrent use; results
// never share memory with arguments unless said so.
package jsonframe

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// MaxDepth is how deep arrays and objects may nest in text that is made canonical.
const MaxDepth = 24

// What can be wrong with a text.
var (
	ErrSyntax    = errors.New("jsonframe: not JSON")
	ErrUTF8      = errors.New("jsonframe: not UTF-8")
	ErrNotObject = errors.New("jsonframe: not an object")
	ErrDepth     = errors.New("jsonframe: nested too deep")
)

// Marshal is json.Marshal without the escaping of <, > and &.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes()[:b.Len()-1], nil // without the line feed
}

// Check reports whether data is one JSON value in valid UTF-8; encoding/json would replace what is not UTF-8.
func Check(data []byte) error {
	if !utf8.Valid(data) {
		return ErrUTF8
	}
	if !json.Valid(data) {
		return ErrSyntax
	}
	return nil
}

// Member is one member of an object. Its slices point into the text it was read from.
type Member struct {
	Name  string
	Value json.RawMessage

	start, end int // of the whole member in the text, without commas
	value      int // start of the value
}

// Members splits an object, in order. A name may occur twice: readers take the last one.
func Members(object []byte) ([]Member, error) {
	if err := Check(object); err != nil {
		return nil, err
	}
	i := space(object, 0)
	if object[i] != '{' {
		return nil, ErrNotObject
	}
	// The text is valid JSON, so the walk below only needs to find where things end.
	var list []Member
	for i = space(object, i+1); object[i] != '}'; i = space(object, i) {
		if object[i] == ',' {
			i = space(object, i+1)
		}
		m := Member{start: i}
		i = skipString(object, i)
		m.Name = plain(object[m.start:i])
		i = space(object, space(object, i)+1) // behind the colon
		m.value = i
		i = skip(object, i)
		m.end = i
		m.Value = object[m.value:i:i]
		list = append(list, m)
	}
	return list, nil
}

// Get finds a member's value, pointing into object; nil when there is none.
func Get(object []byte, name string) (json.RawMessage, error) {
	list, err := Members(object)
	if err != nil {
		return nil, err
	}
	if m := find(list, name); m != nil {
		return m.Value, nil
	}
	return nil, nil
}

// Set replaces a member's value, or adds the member at the end. Everything else keeps its bytes.
func Set(object []byte, name string, value json.RawMessage) ([]byte, error) {
	if err := Check(value); err != nil {
		return nil, err
	}
	list, err := Members(object)
	if err != nil {
		return nil, err
	}
	if m := find(list, name); m != nil {
		return splice(object, m.value, m.end, value), nil
	}
	key, err := Marshal(name)
	if err != nil {
		return nil, err
	}
	text := append(append(key, ':'), value...)
	at := bytes.IndexByte(object, '{') + 1
	if n := len(list); n > 0 {
		at = list[n-1].end
		text = append([]byte{','}, text...)
	}
	return splice(object, at, at, text), nil
}

// Delete removes all members of a name. Everything else keeps its bytes.
func Delete(object []byte, name string) ([]byte, error) {
	list, err := Members(object)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return bytes.Clone(object), nil
	}
	out := append(make([]byte, 0, len(object)), object[:list[0].start]...)
	kept := 0
	for i, m := range list {
		if m.Name == name {
			continue
		}
		if kept > 0 {
			out = append(out, object[list[i-1].end:m.start]...) // the comma and what is around it
		}
		kept++
		out = append(out, object[m.start:m.end]...)
	}
	return append(out, object[list[len(list)-1].end:]...), nil
}

func find(list []Member, name string) *Member {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

func splice(text []byte, from, to int, with []byte) []byte {
	out := make([]byte, 0, len(text)-(to-from)+len(with))
	return append(append(append(out, text[:from]...), with...), text[to:]...)
}

// The three below walk valid JSON.

func space(b []byte, i int) int {
	for b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r' {
		i++
	}
	return i
}

func skipString(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func skip(b []byte, i int) int {
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		depth := 0
		for {
			switch b[i] {
			case '"':
				i = skipString(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			i++
			if depth == 0 {
				return i
			}
		}
	default: // number, true, false, null
		for i < len(b) && bytes.IndexByte([]byte(" \t\r\n,]}"), b[i]) < 0 {
			i++
		}
		return i
	}
}
