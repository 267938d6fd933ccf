package conformance

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/sdk/rpcerr"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// T is one running case.
type T struct {
	*kit
	ctx      context.Context
	problems []string
	skipped  string
	cleanups []func()
}

// stop ends a case from any depth.
type stop struct{}

// Errorf notes a problem and goes on.
func (t *T) Errorf(format string, args ...any) {
	t.problems = append(t.problems, fmt.Sprintf(format, args...))
}

// Fatalf notes a problem and ends the case.
func (t *T) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	panic(stop{})
}

// skip ends the case without a verdict.
func (t *T) skip(why string) {
	t.skipped = why
	panic(stop{})
}

// must ends the case when err is not nil.
func (t *T) must(err error, doing string) {
	if err != nil {
		t.Fatalf("%s: %v", doing, err)
	}
}

func (t *T) cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

// start starts a configured plugin with a data directory of its own.
func (t *T) start() *process { return t.startIn(t.dataDir()) }

// startIn starts a configured plugin on an existing data directory.
func (t *T) startIn(dir string) *process {
	p := t.bare(dir)
	t.must(p.ready(t.ctx, t.kit), "getting ready")
	return p
}

// bare starts a plugin and asks it nothing.
func (t *T) bare(dir string) *process {
	p, err := t.launch(t.ctx, dir, nil)
	t.must(err, "start")
	t.cleanup(p.Kill)
	return p
}

// timed gives a context for one call.
func (t *T) timed(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.ctx, d)
	t.cleanup(cancel)
	return ctx
}

// Deadlines of the four classes.
func (t *T) fast() context.Context     { return t.timed(2 * time.Second) }
func (t *T) io() context.Context       { return t.timed(10 * time.Second) }
func (t *T) settings() context.Context { return t.timed(40 * time.Second) }

// wantCode checks that err carries one of the codes.
func (t *T) wantCode(what string, err error, want ...string) {
	if err == nil {
		t.Errorf("%s succeeded, want %s", what, strings.Join(want, " or "))
		return
	}
	got := rpcerr.Decode(err).Code
	for _, w := range want {
		if got == w && hasDetail(err) {
			return
		}
	}
	t.Errorf("%s failed with %s (%s), want %s", what, got, status.Code(err), strings.Join(want, " or "))
}

// hasDetail reports that a failed call carries its ErrorDetail.
func hasDetail(err error) bool {
	for _, d := range status.Convert(err).Details() {
		if e, ok := d.(*runtimev1.ErrorDetail); ok && e.GetCode() != "" {
			return true
		}
	}
	return false
}

func unimplemented(err error) bool { return status.Code(err) == grpccodes.Unimplemented }

// id makes a name that was never used.
func id(prefix string) string { return prefix + strings.ToLower(rand.Text()[:12]) }

// runID makes a run's name: a UUID.
func runID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// session makes a new conversation. Where the runtime wants to know it beforehand, it is told.
func (t *T) session(p *process) *runtimev1.SessionRef {
	ref := &runtimev1.SessionRef{SessionId: id("conform-"), ProjectPath: t.o.Project}
	if t.has(runtime.CapabilityCreate) {
		r, err := p.Conversations.CreateSession(t.settings(), &runtimev1.CreateSessionRequest{Session: ref})
		t.must(err, "CreateSession")
		ref.NativeId = r.GetSession().GetRef().GetNativeId()
	}
	return ref
}

func prompt(text string) []*runtimev1.Part {
	return []*runtimev1.Part{{Content: &runtimev1.Part_Text{Text: text}}}
}

// need gives a prompt, or fails the case: what was not tried was not shown.
func (t *T) need(text, name string) string {
	t.talks()
	if text == "" {
		t.Fatalf("no prompt %q was given (see --prompts)", name)
	}
	return text
}

// turn is one run of a case.
type turn struct {
	t       *T
	p       *process
	ref     *runtimev1.SessionRef
	run     string
	from    int // position in the events when it was sent
	commit  *runtimev1.CommitRunResponse
	ended   *runtimev1.RunEnded
	endedAt int
}

// talks skips the case when the plugin never replies.
func (t *T) talks() {
	if t.mute() {
		t.skip("channels only")
	}
}

// prepare prepares a run and takes over the native id.
func (t *T) prepare(p *process, ref *runtimev1.SessionRef, text string) *turn {
	t.talks()
	x := &turn{t: t, p: p, ref: ref, run: runID(), from: len(p.events.all())}
	r, err := p.Conversations.PrepareRun(t.settings(), &runtimev1.PrepareRunRequest{Session: ref, RunId: x.run, Input: prompt(text)})
	t.must(err, "PrepareRun")
	x.adopt(r.GetSession())
	return x
}

func (x *turn) adopt(ref *runtimev1.SessionRef) {
	if n := ref.GetNativeId(); n != "" {
		x.ref.NativeId = n
	}
}

// send prepares and commits.
func (t *T) send(p *process, ref *runtimev1.SessionRef, text string) *turn {
	x := t.prepare(p, ref, text)
	x.doCommit()
	return x
}

func (x *turn) doCommit() {
	r, err := x.p.Conversations.CommitRun(x.t.settings(), &runtimev1.CommitRunRequest{RunId: x.run})
	x.t.must(err, "CommitRun")
	x.commit = r
	if r.GetOutcome() != runtimev1.Outcome_OUTCOME_DISPATCHED {
		x.t.Fatalf("CommitRun answered %v %s, want dispatched", r.GetOutcome(), r.GetCode())
	}
}

// mine is a condition on events of this run.
func (x *turn) mine(ok func(*runtimev1.Event) bool) func(*runtimev1.Event) bool {
	return func(e *runtimev1.Event) bool { return e.GetRunId() == x.run && ok(e) }
}

func isText(e *runtimev1.Event) bool     { return e.GetText() != nil }
func isEnd(e *runtimev1.Event) bool      { return e.GetRunEnded() != nil }
func isQuestion(e *runtimev1.Event) bool { return e.GetInteractionOpened() != nil }

// wait waits for an event of the run.
func (x *turn) wait(what string, ok func(*runtimev1.Event) bool) *runtimev1.Event {
	e, _, err := x.p.events.until(x.t.ctx, x.from, x.mine(ok))
	x.t.must(err, "waiting for "+what)
	return e
}

// end waits for the end of the run.
func (x *turn) end() *runtimev1.RunEnded {
	e, at, err := x.p.events.until(x.t.ctx, x.from, x.mine(isEnd))
	x.t.must(err, "waiting for the end of the run")
	x.ended, x.endedAt = e.GetRunEnded(), at
	if n := e.GetNativeId(); n != "" {
		x.ref.NativeId = n
	}
	return x.ended
}

// quiet checks that nothing more comes of the run, and its only end was the last thing.
func (x *turn) quiet(d time.Duration) {
	if e, _, err := x.p.events.within(d, x.endedAt, x.mine(func(*runtimev1.Event) bool { return true })); err == nil {
		x.t.Errorf("after the end of the run came %T", e.GetBody())
	}
	n := 0
	for _, e := range x.p.events.all()[x.from:] {
		if e.GetRunId() == x.run && isEnd(e) {
			n++
		}
	}
	if n != 1 {
		x.t.Errorf("the run ended %d times, want once", n)
	}
}

// text joins the reply from its chunks.
func (x *turn) text() string { return joined(x.p.events.all()[x.from:], x.run) }

func joined(events []*runtimev1.Event, run string) string {
	var order []string
	parts := map[string]string{}
	for _, e := range events {
		c := e.GetText()
		if c == nil || e.GetRunId() != run {
			continue
		}
		if _, seen := parts[c.GetPartId()]; !seen {
			order = append(order, c.GetPartId())
		}
		if c.GetReplace() {
			parts[c.GetPartId()] = c.GetText()
		} else {
			parts[c.GetPartId()] += c.GetText()
		}
	}
	var all strings.Builder
	for _, o := range order {
		all.WriteString(parts[o])
	}
	return all.String()
}

// history reads a whole conversation, page by page, oldest first.
func (t *T) history(p *process, ref *runtimev1.SessionRef, page uint32) []*runtimev1.Message {
	var all []*runtimev1.Message
	cursor := ""
	for range 10_000 {
		r, err := p.Conversations.ReadHistory(t.io(), &runtimev1.ReadHistoryRequest{Session: ref, Cursor: cursor, MaxMessages: page, MaxBytes: 7 << 20})
		t.must(err, "ReadHistory")
		if len(r.GetMessages()) > int(page) {
			t.Errorf("a page of at most %d messages has %d", page, len(r.GetMessages()))
		}
		all = append(append([]*runtimev1.Message{}, r.GetMessages()...), all...)
		if cursor = r.GetNextCursor(); cursor == "" {
			return all
		}
	}
	t.Fatalf("the history has no end")
	return nil
}

// list scans the catalog.
func (t *T) list(p *process, q *runtimev1.ListSessionsRequest) ([]*runtimev1.Session, *runtimev1.ScanEnd) {
	stream, err := p.Conversations.ListSessions(t.timed(30*time.Second), q)
	t.must(err, "ListSessions")
	var rows []*runtimev1.Session
	var end *runtimev1.ScanEnd
	for {
		m, err := stream.Recv()
		if err == io.EOF {
			break
		}
		t.must(err, "ListSessions")
		if end != nil {
			t.Errorf("ListSessions goes on after its end")
		}
		if len(m.GetSessions()) > 500 {
			t.Errorf("a batch has %d rows, at most 500 are allowed", len(m.GetSessions()))
		}
		rows, end = append(rows, m.GetSessions()...), m.GetEnd()
	}
	if end == nil {
		t.Errorf("ListSessions ended without an end")
	}
	return rows, end
}

// alive checks that the process still answers.
func (t *T) alive(p *process) {
	if _, err := p.Runtime.Health(t.fast(), &runtimev1.HealthRequest{}); err != nil {
		t.Fatalf("the plugin does not answer any more: %v", p.why(err))
	}
}

// files lists everything below a folder, with sizes.
func files(root string) []string {
	var list []string
	_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && path != root {
			rel, _ := filepath.Rel(root, path)
			list = append(list, rel)
		}
		return nil
	})
	return list
}
