package modeltest

// responses is the Responses API.
type responses struct{}

var responsesUsage = object{"input_tokens": 10, "input_tokens_details": nil, "output_tokens": 5, "output_tokens_details": nil, "total_tokens": 15}

func (responses) send(o *reply, name string, data object) {
	data["type"] = name
	o.event(name, data)
}

func (d responses) begin(o *reply) {
	d.send(o, "response.created", object{"response": object{"id": o.id}})
}

func (d responses) open(o *reply, b *block) {
	switch b.kind {
	case kindText:
		d.send(o, "response.output_item.added", object{"output_index": b.index, "item": object{"type": "message", "role": "assistant", "id": b.id, "content": []any{}}})
	case kindReasoning:
		d.send(o, "response.output_item.added", object{"output_index": b.index, "item": object{"type": "reasoning", "id": b.id, "summary": []any{}}})
		d.send(o, "response.reasoning_summary_part.added", object{"item_id": b.id, "output_index": b.index, "summary_index": 0, "part": object{"type": "summary_text", "text": ""}})
	}
}

func (d responses) delta(o *reply, b *block, text string) {
	switch b.kind {
	case kindText:
		d.send(o, "response.output_text.delta", object{"item_id": b.id, "output_index": b.index, "content_index": 0, "delta": text})
	case kindReasoning:
		d.send(o, "response.reasoning_summary_text.delta", object{"item_id": b.id, "output_index": b.index, "summary_index": 0, "delta": text})
	}
}

func (d responses) shut(o *reply, b *block) {
	d.send(o, "response.output_item.done", object{"output_index": b.index, "item": d.item(b)})
}

func (responses) item(b *block) object {
	text := b.text.String()
	var item object
	switch b.kind {
	case kindText:
		return object{"type": "message", "role": "assistant", "id": b.id, "content": []object{{"type": "output_text", "text": text}}}
	case kindReasoning:
		return object{"type": "reasoning", "id": b.id, "summary": []object{{"type": "summary_text", "text": text}}, "encrypted_content": "x"}
	case kindCustom:
		item = object{"type": "custom_tool_call", "call_id": b.id, "name": b.name, "input": text}
	default:
		item = object{"type": "function_call", "call_id": b.id, "name": b.name, "arguments": text}
	}
	if b.namespace != "" {
		item["namespace"] = b.namespace
	}
	return item
}

func (d responses) failed(o *reply, code, message string) {
	d.send(o, "response.failed", object{"response": object{"id": o.id, "status": "failed", "error": object{"code": code, "message": message}}})
}

func (d responses) end(o *reply) {
	d.send(o, "response.completed", object{"response": object{"id": o.id, "usage": responsesUsage}})
}

func (d responses) whole(o *reply) any {
	output := []object{}
	for _, b := range o.blocks {
		output = append(output, d.item(b))
	}
	return object{"id": o.id, "object": "response", "status": "completed", "model": o.request.Model, "output": output, "usage": responsesUsage}
}
