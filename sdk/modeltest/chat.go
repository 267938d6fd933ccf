package modeltest

// chat is the Chat Completions API.
type chat struct{}

var chatUsage = object{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}

func (chat) send(o *reply, delta object, finish any) {
	o.event("", object{
		"id": o.id, "object": "chat.completion.chunk", "created": 0, "model": o.request.Model,
		"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}},
	})
}

func (d chat) begin(o *reply) { d.send(o, object{"role": "assistant", "content": ""}, nil) }

func (d chat) open(o *reply, b *block) {}

func (d chat) delta(o *reply, b *block, text string) {
	switch b.kind {
	case kindText:
		d.send(o, object{"content": text}, nil)
	case kindReasoning:
		d.send(o, object{"reasoning_content": text}, nil)
	}
}

func (d chat) shut(o *reply, b *block) {
	if b.kind.isCall() {
		d.send(o, object{"tool_calls": []object{d.call(o, b)}}, nil)
	}
}

// call is one tool call; its index counts calls only.
func (chat) call(o *reply, b *block) object {
	index := 0
	for _, x := range o.blocks[:b.index] {
		if x.kind.isCall() {
			index++
		}
	}
	return object{"index": index, "id": b.id, "type": "function", "function": object{"name": b.fullName(), "arguments": b.arguments()}}
}

func (chat) failed(o *reply, code, message string) {
	o.event("", object{"error": object{"code": code, "type": code, "message": message}})
}

func (chat) reason(o *reply) string {
	if o.called() {
		return "tool_calls"
	}
	return "stop"
}

func (d chat) end(o *reply) {
	d.send(o, object{}, d.reason(o))
	o.event("", object{"id": o.id, "object": "chat.completion.chunk", "created": 0, "model": o.request.Model, "choices": []object{}, "usage": chatUsage})
	o.write("data: [DONE]\n\n")
}

func (d chat) whole(o *reply) any {
	message := object{"role": "assistant", "content": nil}
	var text, thought string
	var calls []object
	for _, b := range o.blocks {
		switch b.kind {
		case kindText:
			text += b.text.String()
			message["content"] = text
		case kindReasoning:
			thought += b.text.String()
			message["reasoning_content"] = thought
		default:
			calls = append(calls, d.call(o, b))
			message["tool_calls"] = calls
		}
	}
	return object{
		"id": o.id, "object": "chat.completion", "created": 0, "model": o.request.Model, "usage": chatUsage,
		"choices": []object{{"index": 0, "message": message, "finish_reason": d.reason(o)}},
	}
}
