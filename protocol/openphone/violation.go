package openphone

import (
	"fmt"
	"strings"
)

// Violation is one thing that is wrong with a file.
type Violation struct {
	File    string `json:"file"`    // as the caller named it; empty when there was no file
	Pointer string `json:"pointer"` // RFC 6901; empty is the whole document
	Message string `json:"message"` // one sentence
}

func (v Violation) String() string { return fmt.Sprintf("%s#%s: %s", v.File, v.Pointer, v.Message) }

// Violations is everything that is wrong, in the order of the files. As an error it names all of it.
type Violations []Violation

func (v Violations) Error() string {
	list := make([]string, len(v))
	for i := range v {
		list[i] = v[i].String()
	}
	return strings.Join(list, "\n")
}

// report collects what is wrong with one file.
type report struct {
	file string
	bad  Violations
}

func (r *report) say(pointer, format string, args ...any) {
	r.bad = append(r.bad, Violation{File: r.file, Pointer: pointer, Message: fmt.Sprintf(format, args...)})
}

// err is nil when nothing is wrong; a nil Violations in an error would not be.
func (r *report) err() error {
	if len(r.bad) == 0 {
		return nil
	}
	return r.bad
}

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

func at(pointer, name string) string { return pointer + "/" + escapePointer.Replace(name) }

func nth(pointer string, i int) string { return fmt.Sprintf("%s/%d", pointer, i) }
