package agent

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// outputEvery is how often the growing output of a running command is told.
const outputEvery = 500 * time.Millisecond

// run is one run without an end. Guarded by the agent's mutex.
type run struct {
	id         string
	session    runtime.SessionRef
	turn       string
	title      string // given to the thread when its first turn is over
	stopWanted bool
	lost       bool // its child is gone; the next one tells how it ended
	ended      bool
	joined     []*run

	order   []string // part ids, oldest first
	parts   map[string]*part
	tools   map[string]*tool
	changes map[string][]appserver.Change // of file changes, for their approvals
	images  []runtime.Part
	usage   *runtime.Usage
	input   bool // the prompt's own row was told
}

// part is one text of a run.
type part struct {
	text    strings.Builder
	thought bool
	message bool // text of an agent message: the only kind that is abandoned
	done    bool
}

// tool is one tool call of a run.
type tool struct {
	call   runtime.ToolCall
	output strings.Builder
	told   time.Time
	done   bool
}

func newRun(id string, ref runtime.SessionRef) *run {
	return &run{id: id, session: ref, parts: map[string]*part{}, tools: map[string]*tool{}, changes: map[string][]appserver.Change{}}
}

func (r *run) event(e runtime.Event) runtime.Event {
	e.SessionID, e.NativeID, e.RunID = r.session.SessionID, r.session.NativeID, r.id
	return e
}

// note is every field a notification may have.
type note struct {
	ThreadID       string              `json:"threadId"`
	TurnID         appserver.String    `json:"turnId"`
	ItemID         string              `json:"itemId"`
	Delta          string              `json:"delta"`
	SummaryIndex   int                 `json:"summaryIndex"`
	ContentIndex   int                 `json:"contentIndex"`
	Turn           appserver.Turn      `json:"turn"`
	Item           appserver.Item      `json:"item"`
	Status         json.RawMessage     `json:"status"`
	ThreadSettings *appserver.Settings `json:"threadSettings"`
	ThreadName     appserver.String    `json:"threadName"`
	RequestID      json.RawMessage     `json:"requestId"`
	WillRetry      bool                `json:"willRetry"`
	Error          json.RawMessage     `json:"error"`
	Plan           json.RawMessage     `json:"plan"`
	TokenUsage     struct {
		Last appserver.TokenUsage `json:"last"`
	} `json:"tokenUsage"`
}

func (n *note) turn() string {
	if n.TurnID != "" {
		return string(n.TurnID)
	}
	return n.Turn.ID
}

// onNotification is called by the reader of the child.
func (a *Agent) onNotification(n appserver.Notification) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.take(n)
}

// take handles a notification, or keeps it back while the name of its turn is awaited. Called with the mutex held.
func (a *Agent) take(n appserver.Notification) {
	var p note
	if err := json.Unmarshal(n.Params, &p); err != nil {
		a.log.Info("notification not readable", "bytes", len(n.Params))
		return
	}
	t := a.threads[p.ThreadID]
	switch n.Method {
	case "account/updated", "account/login/completed":
		if l := a.link; l != nil {
			a.wg.Go(func() { a.look(a.life, l) })
		}
		return
	case "serverRequest/resolved":
		a.resolved(p.ThreadID, p.RequestID)
		return
	}
	if t == nil {
		return
	}
	turn := p.turn()
	if turn == "" {
		a.takeThread(t, n.Method, &p)
		return
	}
	r := a.turns[turn]
	if r == nil && t.starting != nil {
		if p.Item.Type == "userMessage" && string(p.Item.ClientID) == t.starting.id {
			r = t.starting
			a.bind(t, r, turn)
		} else {
			if len(t.held) < heldEvents {
				t.held = append(t.held, n)
			}
			return
		}
	}
	if r == nil && n.Method == "turn/started" {
		// A turn nobody here has asked for: its name comes from its own, so that it is the same after a restart.
		r = newRun("codex:"+turn, t.session)
		r.turn, t.active = turn, turn
		a.runs[r.id], a.turns[turn] = r, r
		a.emit(r.event(runtime.Event{RunStarted: &runtime.RunStarted{NativeRunID: turn}}))
	}
	if r != nil {
		a.takeTurn(t, r, n.Method, &p)
	}
}

// takeThread handles what belongs to a thread as a whole.
func (a *Agent) takeThread(t *thread, method string, p *note) {
	row := func(s runtime.Session) {
		s.Ref = t.session
		a.emit(runtime.Event{SessionID: t.session.SessionID, NativeID: t.id, SessionChanged: &s})
	}
	yes, no := true, false
	switch method {
	case "thread/settings/updated":
		if p.ThreadSettings != nil {
			t.apply(*p.ThreadSettings)
			a.tellSettings(t)
		}
	case "thread/status/changed":
		_ = json.Unmarshal(p.Status, &t.status)
	case "thread/name/updated":
		if p.ThreadName != "" {
			row(runtime.Session{Title: string(p.ThreadName)})
		}
	case "thread/archived":
		row(runtime.Session{Archived: &yes})
	case "thread/unarchived":
		row(runtime.Session{Archived: &no})
	case "thread/closed", "thread/deleted":
		delete(a.threads, t.id)
		if method == "thread/deleted" {
			a.emit(runtime.Event{CatalogChanged: &runtime.CatalogChanged{}})
		}
	}
}

// takeTurn handles what belongs to a turn. Status idle ends nothing; only a turn that is over does.
func (a *Agent) takeTurn(t *thread, r *run, method string, p *note) {
	switch method {
	case "item/started", "item/completed":
		a.item(r, p.Item, method == "item/completed")
	case "item/agentMessage/delta":
		a.grow(r, p.ItemID, p.Delta, false, true)
	case "item/plan/delta":
		a.grow(r, p.ItemID, p.Delta, false, false)
	case "item/reasoning/summaryTextDelta":
		a.grow(r, summaryPart(p.ItemID, p.SummaryIndex), p.Delta, true, false)
	case "item/reasoning/textDelta":
		a.grow(r, contentPart(p.ItemID, p.ContentIndex), p.Delta, true, false)
	case "item/commandExecution/outputDelta":
		a.output(r, p.ItemID, p.Delta)
	case "thread/tokenUsage/updated":
		r.count(p.TokenUsage.Last)
	case "turn/plan/updated":
		a.emit(r.event(runtime.Event{ToolCall: &runtime.ToolCall{
			CallID: "plan:" + r.turn, Name: "update_plan", Kind: "plan", Status: runtime.ToolStatusRunning,
			Input: jsonPayload(map[string]any{"plan": p.Plan}),
		}}))
		r.tools["plan:"+r.turn] = &tool{call: runtime.ToolCall{CallID: "plan:" + r.turn, Kind: "plan"}}
	case "error":
		if p.WillRetry {
			a.emit(r.event(runtime.Event{Notice: &runtime.Notice{Severity: runtime.SeverityWarning, Code: retryCode(p.Error)}}))
		}
	case "turn/completed":
		if p.Turn.Terminal() {
			for _, i := range p.Turn.Items {
				if _, known := r.parts[i.ID]; known || i.Type == "agentMessage" {
					a.item(r, i, true)
				}
			}
			a.finish(r, ending(p.Turn, true), seconds(p.Turn.CompletedAt))
			if t.active == r.turn {
				t.active = ""
			}
		}
	}
}

func summaryPart(item string, n int) string { return item + ":s" + strconv.Itoa(n) }
func contentPart(item string, n int) string { return item + ":c" + strconv.Itoa(n) }

// retryCode tells a computer without a network from other trouble that is tried again.
func retryCode(raw json.RawMessage) string {
	var e appserver.TurnError
	if json.Unmarshal(raw, &e) == nil && strings.Contains(string(e.Message), "waiting for network") {
		return "waiting_for_network"
	}
	return "retrying"
}

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
