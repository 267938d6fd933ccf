package openphone

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/openphone-host/openphone/protocol/jsonframe"
)

// maxExact is the largest integer that every reader of JSON keeps exactly: 2^53-1.
const maxExact = 1<<53 - 1

// errParams refuses what cannot be parameters.
var errParams = errors.New("openphone: parameters have to be a JSON object")

// CanonicalParams rewrites the parameters of a command so that equal parameters have equal text, the text that
// ParamsHash is of: members sorted at every depth, no white space, non-ASCII unescaped, null kept, numbers as JavaScript
// prints them. Integers beyond 2^53-1 and numbers too large for a double are refused: two of them could share a hash.
func CanonicalParams(params []byte) ([]byte, error) {
	text, err := jsonframe.Canonical(params)
	if err != nil {
		return nil, err
	}
	if text[0] != '{' {
		return nil, errParams
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			end := i + 1
			for text[end] != '"' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			out = append(out, text[i:end+1]...)
			i = end + 1
		case c == '-' || '0' <= c && c <= '9':
			end := i + 1
			for bytes.IndexByte([]byte("0123456789+-.eE"), text[end]) >= 0 {
				end++ // a number is always followed by , ] or }
			}
			if out, err = appendNumber(out, string(text[i:end])); err != nil {
				return nil, err
			}
			i = end
		default:
			out = append(out, c)
			i++
		}
	}
	return out, nil
}

// appendNumber writes the shortest text that reads back as the same double, in the layout of JavaScript.
func appendNumber(out []byte, literal string) ([]byte, error) {
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return nil, fmt.Errorf("openphone: the number %.40s is too large", literal)
	}
	abs := math.Abs(f)
	switch {
	case abs > maxExact:
		return nil, fmt.Errorf("openphone: the number %.40s is beyond 2^53-1 and would not be exact everywhere", literal)
	case f == 0:
		return append(out, '0'), nil // also -0
	case abs >= 1e-6:
		return strconv.AppendFloat(out, f, 'f', -1, 64), nil
	}
	text := strconv.AppendFloat(nil, f, 'e', -1, 64)
	return append(out, bytes.Replace(text, []byte("e-0"), []byte("e-"), 1)...), nil // JavaScript writes e-7
}

// ParamsHash binds an approval to the parameters it was given for: "sha256:" and the hex digest of CanonicalParams.
func ParamsHash(params []byte) (string, error) {
	text, err := CanonicalParams(params)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
