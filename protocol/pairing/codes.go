package pairing

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Alphabet is what access codes and 12-character codes are made of; it has no characters that are mistaken for others.
const Alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"

// Normalize brings a typed code into the form that is hashed: upper case, letters and digits only.
func Normalize(code string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, code)
}

// CodeHash is the sha256 of a code as the registry keeps it, in hex: of an access code, of a normalized 12-character
// code, or of six digits.
func CodeHash(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}

// Proof is the HMAC a side of the six-digit exchange proves its knowledge of the code with, in hex. key is the raw hash
// of the digits, parts are joined by colons after the name of the step.
func Proof(key []byte, step string, parts ...string) string {
	m := hmac.New(sha256.New, key)
	m.Write([]byte("clawket-pair-v2:" + step + ":" + strings.Join(parts, ":")))
	return hex.EncodeToString(m.Sum(nil))
}
