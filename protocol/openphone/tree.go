package openphone

import (
	"bytes"
	"encoding/json"

	"github.com/openphone-host/openphone/protocol/jsonframe"
)

// maxNesting bounds how deep a manifest nests; ours need 9.
const maxNesting = 32

// node is a JSON value that still knows its text and the order of its members.
type node struct {
	raw     json.RawMessage
	names   []string // of an object, in order
	members map[string]node
	items   []node // of an array
	text    string // of a string
}

// kind is the first byte of the value: { [ " t f n - or a digit.
func (n node) kind() byte {
	if len(n.raw) == 0 {
		return 0
	}
	return n.raw[0]
}

// parse reads a document. A name that stands twice in an object is a violation: readers would disagree about it.
func (r *report) parse(data []byte) (node, bool) {
	if err := jsonframe.Check(data); err != nil {
		r.say("", "this is not JSON in UTF-8")
		return node{}, false
	}
	before := len(r.bad)
	n := r.node(bytes.TrimSpace(data), "", 0)
	return n, len(r.bad) == before
}

func (r *report) node(raw json.RawMessage, pointer string, depth int) node {
	n := node{raw: raw}
	if depth > maxNesting {
		r.say(pointer, "this nests deeper than %d levels", maxNesting)
		return n
	}
	switch raw[0] {
	case '{':
		list, err := jsonframe.Members(raw)
		if err != nil {
			r.say(pointer, "this is not an object")
			return n
		}
		n.members = make(map[string]node, len(list))
		for _, m := range list {
			p := at(pointer, m.Name)
			if _, twice := n.members[m.Name]; twice {
				r.say(p, "%q stands twice in this object", m.Name)
				continue
			}
			n.names = append(n.names, m.Name)
			n.members[m.Name] = r.node(bytes.TrimSpace(m.Value), p, depth+1)
		}
	case '[':
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list) // checked at the top
		for i, item := range list {
			n.items = append(n.items, r.node(bytes.TrimSpace(item), nth(pointer, i), depth+1))
		}
	case '"':
		_ = json.Unmarshal(raw, &n.text)
	}
	return n
}

// object is an object that is being read: what is missing or of the wrong type is reported.
type object struct {
	*report
	node
	pointer string
}

// child opens a value that has to be an object.
func (r *report) child(n node, pointer string) (object, bool) {
	if n.kind() != '{' {
		r.say(pointer, "this has to be an object, and is %s", brief(n.raw))
		return object{}, false
	}
	return object{r, n, pointer}, true
}

// get finds a member of one of the kinds (first bytes of values); what is said when it is another.
func (o object) get(name, kinds, what string, required bool) (node, bool) {
	n, ok := o.members[name]
	switch {
	case !ok && required:
		o.say(o.pointer, "%s is missing", name)
	case ok && bytes.IndexByte([]byte(kinds), n.kind()) < 0:
		o.say(at(o.pointer, name), "%s has to be %s, and is %s", name, what, brief(n.raw))
		return node{}, false
	}
	return n, ok
}

// need is a text that must be there and not empty.
func (o object) need(name string) string {
	n, ok := o.get(name, `"`, "a text", true)
	if ok && n.text == "" {
		o.say(at(o.pointer, name), "%s is empty", name)
	}
	return n.text
}

func (o object) flag(name string, required bool) bool {
	n, _ := o.get(name, "tf", "true or false", required)
	return n.kind() == 't'
}

func (o object) list(name string, required bool) []node {
	n, _ := o.get(name, "[", "a list", required)
	return n.items
}

// schema is a member that has to be an object; its text is kept.
func (o object) schema(name string) json.RawMessage {
	n, _ := o.get(name, "{", "an object", true)
	return n.raw
}

// brief is a value short enough for a sentence.
func brief(raw []byte) string {
	const most = 40
	if len(raw) == 0 {
		return "nothing"
	}
	if len(raw) > most {
		return string(bytes.ToValidUTF8(raw[:most], nil)) + "…"
	}
	return string(raw)
}
