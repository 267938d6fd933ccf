package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

type object = map[string]any

// block is one item of a reply.
type block struct {
	kind      kind // kindText, kindReasoning, kindCall or kindCustom
	id        string
	index     int
	text      strings.Builder // text, thought, arguments or input
	namespace string
	name      string
}

// dialect writes the parts of a reply in the words of one API. Every method writes whole events.
type dialect interface {
	begin(r *reply)
	open(r *reply, b *block)
	delta(r *reply, b *block, text string)
	shut(r *reply, b *block)
	failed(r *reply, code, message string)
	end(r *reply)
	// whole is the answer to a request that did not ask for a stream.
	whole(r *reply) any
}

// reply is the answer to one request; it is used by one goroutine.
type reply struct {
	server  *Server
	request *Request
	w       http.ResponseWriter
	dialect dialect
	id      string
	begun   bool
	current *block
	blocks  []*block
}

func newReply(s *Server, api string, r *Request, w http.ResponseWriter) *reply {
	out := &reply{server: s, request: r, w: w, id: s.id("resp")}
	switch api {
	case "responses":
		out.dialect = responses{}
	case "chat":
		out.dialect = chat{}
	default:
		out.dialect = messages{}
	}
	return out
}

// step does one step of output.
func (o *reply) step(st Step) {
	o.start()
	switch st.kind {
	case kindText, kindReasoning:
		if o.current == nil || o.current.kind != st.kind {
			o.close()
			o.add(&block{kind: st.kind})
		}
		for _, d := range st.deltas {
			o.current.text.WriteString(d)
			if o.request.Stream {
				o.dialect.delta(o, o.current, d)
				o.flush()
			}
		}
	case kindBreak:
		o.close()
	case kindCall, kindCustom:
		o.close()
		b := &block{kind: st.kind, name: st.name, namespace: st.namespace}
		o.add(b)
		b.text.WriteString(st.input)
		if o.request.Stream {
			o.dialect.delta(o, b, st.input)
		}
		o.close()
	case kindRaw:
		o.write(st.input)
		o.flush()
	}
}

func (o *reply) start() {
	if o.begun {
		return
	}
	o.begun = true
	if o.request.Stream {
		o.w.Header().Set("Content-Type", "text/event-stream")
		o.w.Header().Set("Cache-Control", "no-store")
		o.w.WriteHeader(http.StatusOK)
		o.dialect.begin(o)
	}
}

func (o *reply) add(b *block) {
	b.id = o.server.id(map[kind]string{kindText: "msg", kindReasoning: "rs", kindCall: "call", kindCustom: "call"}[b.kind])
	b.index = len(o.blocks)
	o.blocks = append(o.blocks, b)
	o.current = b
	if o.request.Stream {
		o.dialect.open(o, b)
	}
}

func (o *reply) close() {
	if o.current != nil && o.request.Stream {
		o.dialect.shut(o, o.current)
		o.flush()
	}
	o.current = nil
}

func (o *reply) finish() {
	o.start()
	o.close()
	if !o.request.Stream {
		writeJSON(o.w, http.StatusOK, o.dialect.whole(o))
		return
	}
	o.dialect.end(o)
	o.flush()
}

func (o *reply) refuse(status int, body string) {
	if o.begun {
		panic(http.ErrAbortHandler)
	}
	o.w.Header().Set("Content-Type", "application/json")
	o.w.WriteHeader(status)
	o.write(body)
}

func (o *reply) fail(code, message string) {
	if !o.request.Stream {
		body, _ := json.Marshal(object{"error": object{"code": code, "type": code, "message": message}})
		o.refuse(http.StatusBadRequest, string(body))
		return
	}
	o.start()
	o.dialect.failed(o, code, message)
	o.flush()
}

// event writes one server-sent event; name may be empty.
func (o *reply) event(name string, data any) {
	if name != "" {
		o.write("event: " + name + "\n")
	}
	b, err := json.Marshal(data)
	if err != nil {
		panic("modeltest: " + err.Error())
	}
	o.write("data: " + string(b) + "\n\n")
}

// write ignores a broken connection: the request's context tells of it.
func (o *reply) write(s string) { _, _ = fmt.Fprint(o.w, s) }

// flush sends what is written; before the first output there is nothing, so that a late error is still a status.
func (o *reply) flush() {
	if !o.begun {
		return
	}
	_ = http.NewResponseController(o.w).Flush()
}

// called reports whether the reply calls a tool.
func (o *reply) called() bool {
	for _, b := range o.blocks {
		if b.kind.isCall() {
			return true
		}
	}
	return false
}

// arguments are the arguments of a call as JSON text, for APIs without free text tools.
func (b *block) arguments() string {
	if b.kind == kindCustom {
		j, _ := json.Marshal(object{"input": b.text.String()})
		return string(j)
	}
	return b.text.String()
}

// fullName is the name of a called tool for APIs without namespaces.
func (b *block) fullName() string {
	if b.namespace == "" {
		return b.name
	}
	return b.namespace + "__" + b.name
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func itoa(n int) string { return strconv.Itoa(n) }

func contains(s, part string) bool { return strings.Contains(s, part) }
