package sessions

import (
	"strconv"
	"time"

	"github.com/openphone-host/openphone/host/ledger"
	"github.com/openphone-host/openphone/host/store"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// run is one open run in memory, guarded by Conversations.mu.
type run struct {
	id        string
	conv      *conversation
	key       string // the phone's key of the prompt
	nativeID  string
	inputID   string // row of history that is the prompt, with proof
	elsewhere bool   // begun in the runtime: there is no receipt
	state     ledger.State
	outcome   runtime.Outcome
	startedAt time.Time
	text      transcript
	tools     toolCalls
	// committing is the process that is being given the run; 0: none. Nobody else may say what became of it meanwhile.
	committing uint64
	stopping   bool // a phone wants it stopped as soon as the runtime has it
	stopped    bool // a phone asked for the stop
	ending     bool // its end is being written down
}

// preparation is a prompt between its check and its receipt.
type preparation struct {
	runID  string
	key    string // the phone's
	cancel func()
	called bool // off, by a phone
}

func restored(rec store.Run) *run {
	return &run{
		id: rec.RunID, key: rec.Key, nativeID: rec.NativeRunID, outcome: runtime.Outcome(rec.Outcome),
		state: ledger.StateOf(runtime.Outcome(rec.Outcome), false), startedAt: rec.AcceptedAt,
	}
}

// track makes a run open. mu is held.
func (c *Conversations) track(conv *conversation, r *run) {
	r.conv = conv
	conv.runs = append(conv.runs, r)
	c.runs[r.id] = r
}

// forget takes an ended run away. mu is held.
func (c *Conversations) forget(r *run) {
	delete(c.runs, r.id)
	c.ended.add(r.id)
	for i, x := range r.conv.runs {
		if x == r {
			r.conv.runs = append(r.conv.runs[:i:i], r.conv.runs[i+1:]...)
			break
		}
	}
}

// busy reports whether a reply runs or a prompt is on its way. mu is held.
func (conv *conversation) busy() bool { return len(conv.runs) > 0 || conv.prepare != nil }

// update begins an update about the run. mu is held.
func (r *run) update(kind UpdateKind, at time.Time) Update {
	return Update{
		Kind: kind, SessionKey: r.conv.key, RunID: r.id, NativeRunID: r.nativeID, InputMessageID: r.inputID,
		InputKey: r.key, At: at,
	}
}

// toolCalls merges what is said about each call of a run.
type toolCalls struct {
	calls map[string]*runtime.ToolCall
	order []string
	bytes int
	light int // calls at the beginning of order whose payloads were forgotten
}

// merge lays t over what is known and reports whether it is the first of its call.
func (t *toolCalls) merge(x *runtime.ToolCall) (merged *runtime.ToolCall, first bool) {
	old := t.calls[x.CallID]
	m := *x
	if old != nil {
		m = overlay(*old, *x)
		t.bytes -= payloadBytes(old)
	} else {
		if len(t.order) >= maxToolCalls {
			return &m, true
		}
		if t.calls == nil {
			t.calls = map[string]*runtime.ToolCall{}
		}
		t.order = append(t.order, x.CallID)
	}
	t.calls[x.CallID] = &m
	t.bytes += payloadBytes(&m)
	for ; t.bytes > maxToolBytes && t.light < len(t.order); t.light++ {
		light := *t.calls[t.order[t.light]]
		t.bytes -= payloadBytes(&light)
		light.Input, light.Output = runtime.Payload{}, runtime.Payload{}
		t.calls[t.order[t.light]] = &light
	}
	return &m, old == nil
}

func payloadBytes(x *runtime.ToolCall) int { return len(x.Input.Data) + len(x.Output.Data) }

// overlay takes from b what b says and from a the rest.
func overlay(a, b runtime.ToolCall) runtime.ToolCall {
	pick(&a.Name, b.Name)
	pick(&a.Title, b.Title)
	pick(&a.Kind, b.Kind)
	pick(&a.Status, b.Status)
	pick(&a.StartedAt, b.StartedAt)
	pick(&a.FinishedAt, b.FinishedAt)
	pick(&a.Duration, b.Duration)
	pick(&a.NativeCallID, b.NativeCallID)
	pick(&a.ParentCallID, b.ParentCallID)
	if !b.Input.IsZero() {
		a.Input = b.Input
	}
	if !b.Output.IsZero() {
		a.Output = b.Output
	}
	return a
}

func pick[T comparable](into *T, v T) {
	var zero T
	if v != zero {
		*into = v
	}
}

// recent is a bounded set of ids; the oldest one goes first.
type recent struct {
	set  map[string]struct{}
	ring []string
	next int
}

func (s *recent) add(id string) {
	if s.set == nil {
		s.set = map[string]struct{}{}
	}
	if _, ok := s.set[id]; ok {
		return
	}
	if len(s.ring) < maxEndedKept {
		s.ring = append(s.ring, id)
	} else {
		delete(s.set, s.ring[s.next])
		s.ring[s.next] = id
		s.next = (s.next + 1) % maxEndedKept
	}
	s.set[id] = struct{}{}
}

func (s *recent) has(id string) bool { _, ok := s.set[id]; return ok }

func itoa(n int) string { return strconv.Itoa(n) }
