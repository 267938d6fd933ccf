package sessions

import (
	"strings"
	"unicode/utf8"

	"github.com/openphone-host/openphone/protocol/jsonframe"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// separator stands between the parts of a reply.
const separator = "\n\n"

// transcript is the text of a run: its parts in the order they began. Every byte is kept as it came (STORE-06), up to
// maxReplyBytes; then the oldest text is forgotten.
type transcript struct {
	parts []*part
	bytes int // of all parts

	// live is the parts joined, begun anew when a part was replaced; reading it copies nothing. The last maxLiveUnits
	// of it begin at byte tail.
	live  strings.Builder
	units int // of live from tail on
	tail  int
}

type part struct {
	id   string
	text strings.Builder
	// stale marks a part of an earlier plugin process that the present one has not announced again.
	stale bool
}

// change is what a chunk did to the text.
type change struct {
	text       string
	appends    bool
	startsPart bool
}

// apply adds a chunk; false: nothing changed.
func (t *transcript) apply(c *runtime.TextChunk) (change, bool) {
	p := t.part(c)
	before := p.text.String()
	if c.Replace {
		if rest, ok := strings.CutPrefix(c.Text, before); ok && before != "" {
			c = &runtime.TextChunk{Text: rest} // said again, perhaps with more: for readers that only append
		}
	}
	if c.Replace && before != "" {
		t.bytes += len(c.Text) - len(before)
		p.text = strings.Builder{}
		p.text.WriteString(c.Text)
		t.rebuild()
		return change{text: c.Text}, true
	}
	if c.Text == "" {
		return change{}, false
	}
	p.text.WriteString(c.Text)
	t.bytes += len(c.Text)
	if !t.isLast(p) {
		t.rebuild()
		return change{text: c.Text}, true
	}
	starts := before == "" && t.live.Len() > 0
	if starts {
		t.write(separator)
	}
	t.write(c.Text)
	t.bound()
	return change{text: c.Text, appends: true, startsPart: starts}, true
}

func (t *transcript) part(c *runtime.TextChunk) *part {
	for i := len(t.parts) - 1; i >= 0; i-- {
		if t.parts[i].id == c.PartID {
			t.parts[i].stale = false
			return t.parts[i]
		}
	}
	// A new process that names its parts anew would otherwise repeat the text of the old one.
	if c.Replace && t.dropStale() {
		t.rebuild()
	}
	p := &part{id: c.PartID}
	t.parts = append(t.parts, p)
	return p
}

func (t *transcript) dropStale() bool {
	var kept []*part
	for _, p := range t.parts {
		if p.stale {
			t.bytes -= p.text.Len()
		} else {
			kept = append(kept, p)
		}
	}
	dropped := len(kept) != len(t.parts)
	t.parts = kept
	return dropped
}

// restart says that a new process will announce the text again.
func (t *transcript) restart() {
	for _, p := range t.parts {
		p.stale = true
	}
}

func (t *transcript) isLast(p *part) bool {
	for i := len(t.parts) - 1; i >= 0; i-- {
		if t.parts[i] == p {
			return true
		}
		if t.parts[i].text.Len() > 0 {
			return false
		}
	}
	return false
}

func (t *transcript) write(s string) {
	t.live.WriteString(s)
	t.units += jsonframe.Units(s)
	for all := t.live.String(); t.units > maxLiveUnits; {
		r, n := utf8.DecodeRuneInString(all[t.tail:])
		t.tail += n
		t.units--
		if r > 0xffff {
			t.units--
		}
	}
}

// bound forgets what is too old. Reading the text stays cheap, because all of it happens once per megabyte at most.
func (t *transcript) bound() {
	for t.bytes > maxReplyBytes {
		p := t.parts[0]
		if len(t.parts) > 1 {
			t.bytes -= p.text.Len()
			t.parts = t.parts[1:]
			continue
		}
		rest := lastBytes(p.text.String(), maxReplyBytes/2)
		p.text = strings.Builder{}
		p.text.WriteString(rest)
		t.bytes = len(rest)
	}
	if t.tail > maxReplyBytes {
		rest := strings.Clone(t.full())
		t.live = strings.Builder{}
		t.live.WriteString(rest)
		t.tail = 0
	}
}

func (t *transcript) rebuild() {
	t.live, t.units, t.tail = strings.Builder{}, 0, 0
	t.write(t.reply())
	t.bound()
}

// full is what phones are shown of a running reply.
func (t *transcript) full() string { return t.live.String()[t.tail:] }

// reply is the whole text.
func (t *transcript) reply() string {
	var b strings.Builder
	for _, p := range t.parts {
		if p.text.Len() == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(separator)
		}
		b.WriteString(p.text.String())
	}
	return b.String()
}

func lastBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	for len(s) > 0 && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return s
}
