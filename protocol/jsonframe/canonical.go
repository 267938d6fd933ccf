package jsonframe

import (
	"bytes"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// Canonical rewrites a value so that equal values have equal text: no white space, members sorted by name at every
// depth (by UTF-16 units, as JavaScript sorts), of a doubled name the last one, strings with the fewest escapes. Digits
// of numbers stay as they are. Errors: ErrUTF8, ErrSyntax, ErrDepth beyond MaxDepth.
func Canonical(data []byte) ([]byte, error) {
	if err := Check(data); err != nil {
		return nil, err
	}
	out, _, err := canonical(make([]byte, 0, len(data)), data, space(data, 0), 0)
	return out, err
}

func canonical(out, b []byte, i, depth int) (_ []byte, next int, err error) {
	switch b[i] {
	case '"':
		end := skipString(b, i)
		if bytes.IndexByte(b[i:end], '\\') < 0 {
			return append(out, b[i:end]...), end, nil // nothing in it could be written otherwise
		}
		return appendUnits(out, units(b[i:end])), end, nil
	case '[':
		if depth == MaxDepth {
			return nil, 0, ErrDepth
		}
		out = append(out, '[')
		for i = space(b, i+1); b[i] != ']'; i = space(b, i) {
			if b[i] == ',' {
				out = append(out, ',')
				i = space(b, i+1)
			}
			if out, i, err = canonical(out, b, i, depth+1); err != nil {
				return nil, 0, err
			}
		}
		return append(out, ']'), i + 1, nil
	case '{':
		if depth == MaxDepth {
			return nil, 0, ErrDepth
		}
		return canonicalObject(out, b, i, depth)
	default:
		end := skip(b, i)
		return append(out, b[i:end]...), end, nil
	}
}

func canonicalObject(out, b []byte, i, depth int) ([]byte, int, error) {
	type member struct {
		name  []uint16
		value int
	}
	var list []member
	for i = space(b, i+1); b[i] != '}'; i = space(b, i) {
		if b[i] == ',' {
			i = space(b, i+1)
		}
		end := skipString(b, i)
		m := member{name: units(b[i:end])}
		m.value = space(b, space(b, end)+1)
		i = skip(b, m.value)
		list = append(list, m)
	}
	// Stable, so that of a doubled name the last one is the last.
	slices.SortStableFunc(list, func(x, y member) int { return slices.Compare(x.name, y.name) })
	out = append(out, '{')
	first := true
	for j, m := range list {
		if j+1 < len(list) && slices.Equal(m.name, list[j+1].name) {
			continue
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		out = append(appendUnits(out, m.name), ':')
		var err error
		if out, _, err = canonical(out, b, m.value, depth+1); err != nil {
			return nil, 0, err
		}
	}
	return append(out, '}'), i + 1, nil
}

// units decodes a string literal into UTF-16 units, the only form in which nothing is lost.
func units(literal []byte) []uint16 {
	s := literal[1 : len(literal)-1]
	out := make([]uint16, 0, len(s))
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			r, n := utf8.DecodeRune(s[i:])
			out = utf16.AppendRune(out, r)
			i += n
			continue
		}
		switch c := s[i+1]; c {
		case 'u':
			var u uint16
			for _, h := range s[i+2 : i+6] {
				u = u<<4 | uint16(hexDigit(h))
			}
			out = append(out, u)
			i += 6
			continue
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		default: // " \ /
			out = append(out, uint16(c))
		}
		i += 2
	}
	return out
}

// plain decodes a string literal as encoding/json does: lone surrogates become U+FFFD.
func plain(literal []byte) string { return string(utf16.Decode(units(literal))) }

// appendUnits writes a string literal as JSON.stringify does.
func appendUnits(out []byte, s []uint16) []byte {
	const hex = "0123456789abcdef"
	escape := func(u uint16) {
		out = append(out, '\\', 'u', hex[u>>12], hex[u>>8&15], hex[u>>4&15], hex[u&15])
	}
	out = append(out, '"')
	for i := 0; i < len(s); i++ {
		u := s[i]
		switch {
		case u == '"' || u == '\\':
			out = append(out, '\\', byte(u))
		case u == '\b':
			out = append(out, '\\', 'b')
		case u == '\f':
			out = append(out, '\\', 'f')
		case u == '\n':
			out = append(out, '\\', 'n')
		case u == '\r':
			out = append(out, '\\', 'r')
		case u == '\t':
			out = append(out, '\\', 't')
		case u < 0x20:
			escape(u)
		case utf16.IsSurrogate(rune(u)):
			if i+1 < len(s) {
				if r := utf16.DecodeRune(rune(u), rune(s[i+1])); r != utf8.RuneError {
					out = utf8.AppendRune(out, r)
					i++
					continue
				}
			}
			escape(u)
		default:
			out = utf8.AppendRune(out, rune(u))
		}
	}
	return append(out, '"')
}

func hexDigit(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	default:
		return c - 'a' + 10
	}
}
