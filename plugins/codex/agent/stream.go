package agent

import (
	"encoding/json"
	"errors"
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
	var odd *json.UnmarshalTypeError // one field has another type: all others are read, and an end must not be missed
	if err := json.Unmarshal(n.Params, &p); err != nil && !errors.As(err, &odd) {
		a.log.Info("notification not readable", "bytes", len(n.Params))
		return
	}
	t := a.threads[p.ThreadID]
	switch n.Method {
	case "account/updated", "account/login/completed":
		if l := a.link; l != nil {
			a.spawn(func() { a.look(a.life, l) })
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
		if t.active == unknownTurn && t.status.Type != "active" {
			t.active = ""
		}
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
			a.finish(r, ending(p.Turn, true), endTime(p.Turn))
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
