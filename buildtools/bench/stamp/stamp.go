// Package stamp writes a moment into a piece of text and finds it again in a frame, wherever the text stands in it. It
// must not know what carries the text. Its functions hold no state.
package stamp

import (
	"bytes"
	"strconv"
	"time"
)

// mark stands before the nanoseconds and after them; JSON leaves it as it is.
const mark = '^'

// Text is a moment as text, the same length for every moment of this age.
func Text(t time.Time) string {
	b := make([]byte, 0, 24)
	b = append(b, mark)
	b = strconv.AppendInt(b, t.UnixNano(), 10)
	return string(append(b, mark))
}

// Find gives every moment in a frame, in nanoseconds since 1970, appended to list.
func Find(list []int64, frame []byte) []int64 {
	for {
		i := bytes.IndexByte(frame, mark)
		if i < 0 {
			return list
		}
		frame = frame[i+1:]
		end := bytes.IndexByte(frame, mark)
		if end < 0 {
			return list
		}
		n, err := strconv.ParseInt(string(frame[:end]), 10, 64)
		if err != nil {
			continue // the mark stood for something else
		}
		list = append(list, n)
		frame = frame[end+1:]
	}
}
