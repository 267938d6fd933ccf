// Package preview makes the one line that stands under a conversation's title from its last message.
//
// It knows nothing of conversations. Of is a pure function.
package preview

import (
	"regexp"
	"strings"
	"unicode"
)

const (
	// maxCharacters is the length of a preview in Unicode characters.
	maxCharacters = 160
	// maxLooked is how much of a message is looked at, in bytes: a preview is its beginning.
	maxLooked = 16 << 10

	camera = "📷"
)

var (
	image  = regexp.MustCompile(`!\[([^\]]*)\]\([^)]*\)`)
	link   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	fence  = regexp.MustCompile("(?m)^[ \t]*(```|~~~).*$")
	marker = regexp.MustCompile(`(?m)^[ \t]*(?:(?:#{1,6}|[-*+]|\d{1,9}[.)])(?:[ \t]+|$)|>[ \t]?)+`)
	pairs  = []*regexp.Regexp{
		regexp.MustCompile(`\*\*(\S|\S[^\n]*?\S)\*\*`),
		regexp.MustCompile(`__(\S|\S[^\n]*?\S)__`),
		regexp.MustCompile(`~~(\S|\S[^\n]*?\S)~~`),
	}
)

// Of is the preview of a message: its text without markup, on one line. A message without visible text but with an
// image is a camera; text that is nothing but markup stands as it is. Empty: the message shows nothing and counts as
// nothing (SYNC-09).
func Of(text string, hasImage bool) string {
	if len(text) > maxLooked {
		text = text[:maxLooked]
	}
	text = strings.ToValidUTF8(text, "") // also what the cut has split
	plain := image.ReplaceAllString(text, "$1")
	plain = link.ReplaceAllString(plain, "$1")
	plain = fence.ReplaceAllString(plain, "")
	plain = strings.ReplaceAll(plain, "`", "")
	for _, p := range pairs {
		plain = p.ReplaceAllString(plain, "$1")
	}
	plain = oneLine(marker.ReplaceAllString(plain, ""))
	switch {
	case plain != "":
		return plain
	case hasImage:
		return camera
	default:
		return oneLine(text)
	}
}

// oneLine makes every run of white space one space and cuts.
func oneLine(s string) string {
	words := strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' })
	r := []rune(strings.Join(words, " "))
	if len(r) > maxCharacters {
		r = r[:maxCharacters]
	}
	return string(r)
}
