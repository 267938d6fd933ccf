package agent

import (
	"strings"
	"time"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// item handles the beginning or the end of an item.
func (a *Agent) item(r *run, i appserver.Item, done bool) {
	switch i.Type {
	case "userMessage":
		if string(i.ClientID) == r.id && !r.input {
			r.input = true
			a.emit(r.event(runtime.Event{RunStarted: &runtime.RunStarted{NativeRunID: r.turn, InputMessageID: i.ID}}))
		}
	case "agentMessage":
		if r.parts[i.ID] == nil {
			a.abandon(r) // one message at a time: an unfinished one before it is an attempt that does not count
		}
		a.whole(r, i.ID, string(i.Text), false, true, done)
	case "plan":
		a.whole(r, i.ID, string(i.Text), false, false, done)
	case "reasoning":
		for n, s := range i.Summary {
			a.whole(r, summaryPart(i.ID, n), string(s), true, false, done)
		}
		for n, s := range i.Reasoning() {
			a.whole(r, contentPart(i.ID, n), s, true, false, done)
		}
	case "contextCompaction":
		code := "compaction_started"
		if done {
			code = "compaction_ended"
		}
		a.emit(r.event(runtime.Event{Notice: &runtime.Notice{Severity: runtime.SeverityInfo, Code: code}}))
	default:
		c := toolCall(i)
		if c == nil {
			return
		}
		if i.Type == "fileChange" {
			r.changes[i.ID] = i.Changes
		}
		if !done && c.Status != runtime.ToolStatusFailed {
			c.Status = runtime.ToolStatusRunning
		}
		x := r.tools[i.ID]
		if x == nil {
			x = &tool{}
			r.tools[i.ID] = x
		}
		x.call, x.done = *c, done
		a.emit(r.event(runtime.Event{ToolCall: c}))
		if p := delivered(i); done && p != nil {
			r.images = append(r.images, *p)
		}
	}
}

func (r *run) part(id string, thought, message bool) *part {
	p := r.parts[id]
	if p == nil {
		p = &part{thought: thought, message: message}
		r.parts[id] = p
		r.order = append(r.order, id)
	}
	return p
}

// grow appends to a part, byte for byte.
func (a *Agent) grow(r *run, id, delta string, thought, message bool) {
	if delta == "" {
		return
	}
	p := r.part(id, thought, message)
	p.text.WriteString(delta)
	a.chunk(r, id, p, delta, false)
}

// whole takes a part's text as the runtime has it now. Only what differs from the pieces so far is told.
func (a *Agent) whole(r *run, id, s string, thought, message, done bool) {
	p := r.part(id, thought, message)
	p.done = p.done || done
	have := p.text.String()
	switch {
	case s == have, s == "" && !done:
	case strings.HasPrefix(s, have):
		p.text.WriteString(s[len(have):])
		a.chunk(r, id, p, s[len(have):], false)
	default:
		p.text.Reset()
		p.text.WriteString(s)
		a.chunk(r, id, p, s, true)
	}
}

func (a *Agent) chunk(r *run, id string, p *part, s string, replace bool) {
	c := &runtime.TextChunk{PartID: id, Text: s, Replace: replace}
	if p.thought {
		a.emit(r.event(runtime.Event{Thought: c}))
		return
	}
	a.emit(r.event(runtime.Event{Text: c}))
}

// abandon takes away messages that were begun and never finished: Codex has dropped them itself.
func (a *Agent) abandon(r *run) {
	for _, id := range r.order {
		if p := r.parts[id]; p.message && !p.done {
			p.done = true
			if p.text.Len() > 0 {
				p.text.Reset()
				a.chunk(r, id, p, "", true)
			}
		}
	}
}

// output gathers the output of a command. Pieces may miss the beginning: the end has all of it.
func (a *Agent) output(r *run, id, delta string) {
	x := r.tools[id]
	if x == nil || x.done {
		return
	}
	if x.output.Len() < maxOutput {
		x.output.WriteString(delta)
	}
	if now := a.o.Now(); now.Sub(x.told) >= outputEvery {
		x.told = now
		a.emit(r.event(runtime.Event{ToolCall: &runtime.ToolCall{
			CallID: id, Name: x.call.Name, Kind: x.call.Kind, Status: runtime.ToolStatusRunning, Output: text(x.output.String()),
		}}))
	}
}

func (r *run) count(u appserver.TokenUsage) {
	if r.usage == nil {
		r.usage = &runtime.Usage{
			InputTokens: new(uint64), OutputTokens: new(uint64), CacheReadTokens: new(uint64), TotalTokens: new(uint64),
		}
	}
	*r.usage.InputTokens += u.InputTokens
	*r.usage.OutputTokens += u.OutputTokens
	*r.usage.CacheReadTokens += u.CachedInputTokens
	*r.usage.TotalTokens += u.TotalTokens
}

// finish ends a run: its questions first, then what never completed, then the run, and with it every prompt that was
// added to the same turn. Called with the mutex held.
func (a *Agent) finish(r *run, end *runtime.RunEnded, at time.Time) {
	if r.ended {
		return
	}
	r.ended = true
	for id, q := range a.asks {
		if q.run == r {
			a.closeAsk(id, runtime.ClosureExpired)
		}
	}
	if end.Reason != runtime.EndReasonCancelled {
		a.abandon(r) // a person who stops a reply keeps what was read
	}
	for id, x := range r.tools {
		if !x.done {
			status := runtime.ToolStatusUnknown
			switch {
			case x.call.Kind == "plan":
				status = runtime.ToolStatusSucceeded
			case end.Reason == runtime.EndReasonCancelled:
				status = runtime.ToolStatusFailed
			}
			a.emit(r.event(runtime.Event{ToolCall: &runtime.ToolCall{CallID: id, Name: x.call.Name, Kind: x.call.Kind, Status: status}}))
		}
	}
	if len(r.images) > 0 && end.Message == nil {
		end.Message = r.message()
	}
	if end.Usage == nil {
		end.Usage = r.usage
	}
	delete(a.runs, r.id)
	if a.turns[r.turn] == r {
		delete(a.turns, r.turn)
	}
	a.emit(r.event(runtime.Event{RunEnded: end, At: at}))
	a.nameThread(r)
	for _, j := range r.joined {
		a.finish(j, &runtime.RunEnded{Reason: end.Reason, Code: end.Code}, at)
	}
}

// message is the reply with the images it delivers.
func (r *run) message() *runtime.Message {
	m := &runtime.Message{Role: runtime.RoleAssistant, RunID: r.id, NativeRunID: r.turn}
	for _, id := range r.order {
		if p := r.parts[id]; !p.thought && p.text.Len() > 0 {
			m.Parts = append(m.Parts, runtime.Part{Text: p.text.String()})
		}
	}
	m.Parts = append(m.Parts, r.images...)
	return m
}
