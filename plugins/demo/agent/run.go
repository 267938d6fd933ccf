package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// run is one reply being made. Its goroutine plays the script; the calls of the contract leave wishes for it.
type run struct {
	a       *Agent
	ref     runtime.SessionRef
	n       *nativeRun
	script  []step
	resumed bool // an earlier process played the beginning

	mu       sync.Mutex
	stopped  chan struct{}
	stopOnce sync.Once
	patience time.Duration // how long a stop is put off
	ended    bool
	steers   []string
	pending  map[string]*pending
	again    bool          // the host wants all text once more
	wake     chan struct{} // capacity 1: something above changed

	// Of the goroutine alone:
	due      time.Time // when the script is at this point, had nothing ever been late
	catching bool      // the script is not yet where the clock is
	parts    []*part
	asks     int
	tools    int
	files    []runtime.Part // delivered with the reply
	replaced bool
	noSteer  bool
	after    []string // replies of the runtime's own, for when this run has ended
	started  time.Time
}

// part is one part of the reply.
type part struct {
	id     string
	text   strings.Builder
	stored bool
}

// Ways a script ends before its last line.
var (
	errStopped = errors.New("stopped")
	errCut     = errors.New("process ends")
)

// ending is an end the script asked for.
type ending struct {
	reason runtime.EndReason
	code   string
}

func (e *ending) Error() string { return e.reason.String() }

func newRun(a *Agent, ref runtime.SessionRef, n *nativeRun, script []step) *run {
	x := &run{a: a, ref: ref, n: n, script: script, stopped: make(chan struct{}), pending: map[string]*pending{}, wake: make(chan struct{}, 1), due: n.began, started: n.began}
	if s, ok := find(script, "stubborn"); ok {
		x.patience = time.Duration(s.number("", 500)) * time.Millisecond
	}
	_, x.noSteer = find(script, "ignoresteer")
	return x
}

func (x *run) nativeID() string { return "n-" + x.n.id }

func (x *run) emit(e runtime.Event) {
	e.RunID = x.n.id
	x.a.emit(x.ref, e)
}

// main plays the run from its first event to its last.
func (x *run) main() {
	x.catching = x.resumed
	x.emit(runtime.Event{RunStarted: &runtime.RunStarted{NativeRunID: x.nativeID(), InputMessageID: "u-" + x.n.id}})
	x.a.tellActivity(x.ref)
	err := x.play()
	if errors.Is(err, errCut) {
		return // the journal has no end, and the next process tells
	}
	x.finish(err)
	for i, reply := range x.after {
		x.a.ownRun(x.ref, fmt.Sprintf("%s/%d", x.nativeID(), i+1), reply)
	}
}

func (x *run) play() error {
	for _, s := range x.script {
		if err := x.between(); err != nil {
			return err
		}
		if err := x.step(s); err != nil {
			return err
		}
	}
	return x.between()
}

// between looks at what the calls have left.
func (x *run) between() error {
	select {
	case <-x.a.life.Done():
		return errCut
	case <-x.stopped:
		return errStopped
	default:
	}
	x.mu.Lock()
	again := x.again
	x.again = false
	var steers []string
	if !x.noSteer {
		steers, x.steers = x.steers, nil
	}
	x.mu.Unlock()
	if again && !x.catching {
		x.announceText()
	}
	for _, t := range steers {
		x.closePart()
		x.say("steered: " + t)
		x.closePart()
	}
	return nil
}

// wait lets the script's clock go on by d, and the process with it unless it is behind.
func (x *run) wait(d time.Duration) error {
	x.due = x.due.Add(d)
	for {
		left := time.Until(x.due)
		if left <= 0 {
			return x.between()
		}
		x.caughtUp()
		t := time.NewTimer(left)
		select {
		case <-t.C:
		case <-x.wake:
		case <-x.stopped:
		case <-x.a.life.Done():
		}
		t.Stop()
		if err := x.between(); err != nil {
			return err
		}
	}
}

// block waits until ready says so; ready is asked again after every wake-up. limit zero waits for ever.
func (x *run) block(limit time.Duration, ready func() bool) error {
	x.caughtUp()
	ctx := context.Background()
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	for !ready() {
		select {
		case <-x.wake:
		case <-x.stopped:
		case <-x.a.life.Done():
		case <-ctx.Done():
			x.due = time.Now()
			return x.between()
		}
		if err := x.between(); err != nil {
			return err
		}
	}
	x.due = time.Now()
	return nil
}

// caughtUp tells the host what the process missed, once, when the script is where the clock is.
func (x *run) caughtUp() {
	if x.catching {
		x.catching = false
		x.announceText()
	}
}

// announceText sends every part again as a replacing chunk.
func (x *run) announceText() {
	for _, p := range x.parts {
		x.emit(runtime.Event{Text: &runtime.TextChunk{PartID: p.id, Text: p.text.String(), Replace: true}})
	}
}

// say adds to the current part.
func (x *run) say(text string) {
	if len(x.parts) == 0 || x.parts[len(x.parts)-1].stored {
		x.parts = append(x.parts, &part{id: fmt.Sprintf("p%d", len(x.parts)+1)})
	}
	p := x.parts[len(x.parts)-1]
	p.text.WriteString(text)
	if !x.catching {
		x.emit(runtime.Event{Text: &runtime.TextChunk{PartID: p.id, Text: text}})
	}
}

// replace takes back the current part.
func (x *run) replace(text string) {
	if len(x.parts) == 0 || x.parts[len(x.parts)-1].stored {
		x.say(text)
		return
	}
	p := x.parts[len(x.parts)-1]
	p.text.Reset()
	p.text.WriteString(text)
	x.replaced = true
	if !x.catching {
		x.emit(runtime.Event{Text: &runtime.TextChunk{PartID: p.id, Text: text, Replace: true}})
	}
}

// closePart writes the current part down; what is said next begins another one.
func (x *run) closePart() {
	if len(x.parts) == 0 || x.parts[len(x.parts)-1].stored {
		return
	}
	p := x.parts[len(x.parts)-1]
	p.stored = true
	if p.text.Len() > 0 {
		x.keep(runtime.Message{MessageID: "a-" + x.n.id + "-" + p.id, Role: runtime.RoleAssistant, Parts: []runtime.Part{{Text: p.text.String()}}})
	}
}

// keep writes a message into the journal, unless an earlier process did.
func (x *run) keep(m runtime.Message) {
	x.a.keep(x.n.session, x.n.id, x.nativeID(), m)
}

func (a *Agent) keep(session, runID, nativeRunID string, m runtime.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.store.sessions[session]
	for i := len(c.messages) - 1; i >= 0; i-- {
		if c.messages[i].MessageID == m.MessageID {
			return
		}
	}
	m.RunID, m.NativeRunID, m.CreatedAt = runID, nativeRunID, time.Now().UTC()
	m.ModelID, m.ProviderID = c.modelID(), provider
	if err := a.store.append(record{T: "message", Session: session, Message: &m}); err != nil {
		a.log.Error("journal not written", "error", err)
	}
}

// finish ends the run: open questions first, then the journal, then the host.
func (x *run) finish(err error) {
	x.caughtUp()
	x.closeAll()
	end := &runtime.RunEnded{Reason: runtime.EndReasonCompleted}
	var e *ending
	switch {
	case errors.Is(err, errStopped):
		end.Reason = runtime.EndReasonCancelled
	case errors.As(err, &e):
		end.Reason, end.Code = e.reason, e.code
	}
	x.closePart()
	in, out := uint64(len(x.n.prompt)), uint64(0)
	for _, p := range x.parts {
		out += uint64(p.text.Len())
	}
	end.Usage = &runtime.Usage{InputTokens: &in, OutputTokens: &out}
	x.mu.Lock()
	x.ended = true
	end.UnappliedInput = strings.Join(x.steers, "\n")
	x.mu.Unlock()
	if len(x.files) > 0 || x.replaced {
		end.Message = x.reply()
	}
	x.a.mu.Lock()
	delete(x.a.live, x.n.id)
	stored := *end
	stored.Message = nil // the journal has the rows
	if err := x.a.store.append(record{T: "end", Session: x.n.session, Run: x.n.id, End: &stored}); err != nil {
		x.a.log.Error("journal not written", "error", err)
	}
	row := x.a.row(x.a.store.sessions[x.n.session], true)
	x.a.mu.Unlock()
	x.emit(runtime.Event{RunEnded: end})
	x.a.emit(x.ref, runtime.Event{SessionChanged: &row})
	x.a.tellActivity(x.ref)
}

// reply is the whole reply as the journal has it, files last.
func (x *run) reply() *runtime.Message {
	m := &runtime.Message{MessageID: "a-" + x.n.id, Role: runtime.RoleAssistant, RunID: x.n.id}
	for _, p := range x.parts {
		if p.text.Len() > 0 {
			m.Parts = append(m.Parts, runtime.Part{Text: p.text.String()})
		}
	}
	m.Parts = append(m.Parts, x.files...)
	return m
}

// stop asks the run to end.
func (x *run) stop() {
	x.stopOnce.Do(func() {
		if x.patience > 0 {
			time.AfterFunc(x.patience, func() { close(x.stopped) })
			return
		}
		close(x.stopped)
	})
}

// steer leaves a text for the run; false when it is over.
func (x *run) steer(text string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return false
	}
	x.steers = append(x.steers, text)
	x.nudge()
	return true
}

// announce asks the run to say everything again.
func (x *run) announce() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.again = true
	x.nudge()
}

func (x *run) nudge() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// ownRun is a reply nobody asked for, as some runtimes make after a background task.
func (a *Agent) ownRun(ref runtime.SessionRef, id, reply string) {
	name := "native:" + id
	a.emit(ref, runtime.Event{RunID: name, RunStarted: &runtime.RunStarted{NativeRunID: id}})
	a.emit(ref, runtime.Event{RunID: name, Text: &runtime.TextChunk{PartID: "p1", Text: reply}})
	a.keep(ref.NativeID, name, id, runtime.Message{MessageID: "a-" + name, Role: runtime.RoleAssistant, Parts: []runtime.Part{{Text: reply}}})
	a.emit(ref, runtime.Event{RunID: name, RunEnded: &runtime.RunEnded{Reason: runtime.EndReasonCompleted}})
}

// fail is an end with a code.
func fail(code string) error {
	return &ending{runtime.EndReasonFailed, orElse(code, "demo.failed")}
}

// limit is an end at a limit of the model.
func limit() error { return &ending{runtime.EndReasonLimitReached, codes.RunFailed} }
