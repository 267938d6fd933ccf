package modeltest

import "encoding/json"

// messages is the Messages API.
type messages struct{}

func (messages) send(o *reply, name string, data object) {
	data["type"] = name
	o.event(name, data)
}

func (d messages) begin(o *reply) {
	m := d.message(o)
	m["stop_reason"] = nil
	d.send(o, "message_start", object{"message": m})
}

func (messages) message(o *reply) object {
	return object{
		"id": o.id, "type": "message", "role": "assistant", "model": o.request.Model, "content": []any{}, "stop_sequence": nil,
		"usage": object{"input_tokens": 10, "output_tokens": 5},
	}
}

func (d messages) open(o *reply, b *block) {
	empty := object{"type": "text", "text": ""}
	switch {
	case b.kind == kindReasoning:
		empty = object{"type": "thinking", "thinking": "", "signature": ""}
	case b.kind.isCall():
		empty = object{"type": "tool_use", "id": b.id, "name": b.fullName(), "input": object{}}
	}
	d.send(o, "content_block_start", object{"index": b.index, "content_block": empty})
}

func (d messages) delta(o *reply, b *block, text string) {
	delta := object{"type": "text_delta", "text": text}
	switch {
	case b.kind == kindReasoning:
		delta = object{"type": "thinking_delta", "thinking": text}
	case b.kind.isCall():
		delta = object{"type": "input_json_delta", "partial_json": b.arguments()}
	}
	d.send(o, "content_block_delta", object{"index": b.index, "delta": delta})
}

func (d messages) shut(o *reply, b *block) {
	if b.kind == kindReasoning {
		d.send(o, "content_block_delta", object{"index": b.index, "delta": object{"type": "signature_delta", "signature": "x"}})
	}
	d.send(o, "content_block_stop", object{"index": b.index})
}

func (d messages) failed(o *reply, code, message string) {
	d.send(o, "error", object{"error": object{"type": code, "message": message}})
}

func (messages) reason(o *reply) string {
	if o.called() {
		return "tool_use"
	}
	return "end_turn"
}

func (d messages) end(o *reply) {
	d.send(o, "message_delta", object{"delta": object{"stop_reason": d.reason(o), "stop_sequence": nil}, "usage": object{"output_tokens": 5}})
	d.send(o, "message_stop", object{})
}

func (d messages) whole(o *reply) any {
	content := []object{}
	for _, b := range o.blocks {
		switch {
		case b.kind == kindText:
			content = append(content, object{"type": "text", "text": b.text.String()})
		case b.kind == kindReasoning:
			content = append(content, object{"type": "thinking", "thinking": b.text.String(), "signature": "x"})
		default:
			content = append(content, object{"type": "tool_use", "id": b.id, "name": b.fullName(), "input": json.RawMessage(b.arguments())})
		}
	}
	m := d.message(o)
	m["content"], m["stop_reason"] = content, d.reason(o)
	return m
}
