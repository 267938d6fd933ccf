package snapshot

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/openphone-host/openphone/protocol/jsonframe"
)

const (
	maxAnswer = 64 << 10 // bytes of one answer
	reserve   = 4096     // kept free in a first page for the offsets of the others
	maxPages  = 512      // offsets in a first page
)

// The answers are put together by hand: the byte counts of the pages are part of the protocol.

func unchanged(epoch, revision string) json.RawMessage {
	return json.RawMessage(`{"kind":"unchanged","epoch":"` + epoch + `","revision":"` + revision + `"}`)
}

func expired(epoch string) json.RawMessage {
	return json.RawMessage(`{"kind":"expired","epoch":"` + epoch + `"}`)
}

// envelope is the size of a page without rows, with the longest nextOffset there is.
func envelope(total, offset int) int {
	return len(`{"kind":"full","epoch":"","revision":"","offset":,"total":,"sessions":[],"nextOffset":10000}`) + 2*32 +
		digits(offset) + digits(total)
}

// fill gives the end of the page that begins at offset: as many rows as fit into limit bytes.
func fill(s *state, offset, limit int) int {
	size := envelope(len(s.rows), offset)
	i := offset
	for ; i < len(s.rows); i++ {
		size += len(s.rows[i].JSON)
		if i > offset {
			size++ // comma
		}
		if size > limit {
			break
		}
	}
	return i
}

// full writes the page that begins at offset and gives where the next one begins.
func full(epoch string, s *state, offset, limit int) (json.RawMessage, int) {
	end := fill(s, offset, limit)
	return page(epoch, s, offset, end), end
}

func page(epoch string, s *state, offset, end int) json.RawMessage {
	b := make([]byte, 0, maxAnswer)
	b = append(b, `{"kind":"full","epoch":"`+epoch+`","revision":"`+s.revision+`","offset":`...)
	b = strconv.AppendInt(b, int64(offset), 10)
	b = append(b, `,"total":`...)
	b = strconv.AppendInt(b, int64(len(s.rows)), 10)
	b = append(b, `,"sessions":[`...)
	for i := offset; i < end; i++ {
		if i > offset {
			b = append(b, ',')
		}
		b = append(b, s.rows[i].JSON...)
	}
	b = append(b, `],"nextOffset":`...)
	if end < len(s.rows) {
		b = strconv.AppendInt(b, int64(end), 10)
	} else {
		b = append(b, `null`...)
	}
	return append(b, '}')
}

// first writes page 0, with the offsets of all others when they are asked for and fit.
func first(epoch string, s *state, index bool) json.RawMessage {
	text, end := full(epoch, s, 0, maxAnswer)
	if !index {
		return text
	}
	if end == len(s.rows) {
		if with := addOffsets(text, nil); len(with) <= maxAnswer {
			return with
		}
		return text
	}
	end = fill(s, 0, maxAnswer-reserve)
	if end == 0 {
		return text
	}
	var offsets []int
	for at := end; at < len(s.rows); at = fill(s, at, maxAnswer) {
		if len(offsets) == maxPages {
			return text
		}
		offsets = append(offsets, at)
	}
	return addOffsets(page(epoch, s, 0, end), offsets)
}

func addOffsets(page json.RawMessage, offsets []int) json.RawMessage {
	b := append(bytes.Clone(page[:len(page)-1]), `,"pageOffsets":[`...)
	for i, o := range offsets {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(o), 10)
	}
	return append(b, ']', '}')
}

// delta writes what changed from old to now; nil when the pages are the better answer.
func delta(epoch string, old, now *state) json.RawMessage {
	limit := min(maxAnswer, now.size-1)
	b := append(make([]byte, 0, maxAnswer), `{"kind":"delta","epoch":"`+epoch+`","baseRevision":"`+old.revision+
		`","revision":"`+now.revision+`","upserts":[`...)
	n := 0
	for _, r := range now.rows {
		if i, known := old.index[r.Key]; known && bytes.Equal(old.rows[i].JSON, r.JSON) {
			continue
		}
		if b = append(comma(b, n), r.JSON...); len(b) > limit {
			return nil
		}
		n++
	}
	b, n = append(b, `],"removedKeys":[`...), 0
	for _, r := range old.rows {
		if _, kept := now.index[r.Key]; !kept {
			if b = append(comma(b, n), quoted(r.Key)...); len(b) > limit {
				return nil
			}
			n++
		}
	}
	b = append(b, `],"order":[`...)
	for i, r := range now.rows {
		if b = append(comma(b, i), quoted(r.Key)...); len(b) > limit {
			return nil
		}
	}
	if b = append(b, ']', '}'); len(b) > limit {
		return nil
	}
	return b
}

func comma(b []byte, before int) []byte {
	if before > 0 {
		return append(b, ',')
	}
	return b
}

func quoted(key string) []byte {
	b, _ := jsonframe.Marshal(key) // a string always has a text
	return b
}

func digits(n int) int { return len(strconv.Itoa(n)) }
