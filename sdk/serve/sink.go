package serve

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/protomap"
	"github.com/openphone-host/openphone/sdk/runtime"
)

const (
	// bufferEvents is how many events wait for the host before Emit blocks.
	bufferEvents = 65_536
	// bufferBytes bounds the same by size, so that a host that has stopped reading costs a plugin little memory. One
	// event is always let in, however large.
	bufferBytes = 2 << 20
	// eventOverhead is what an event costs besides its texts.
	eventOverhead = 256
	// batchEvents and batchBytes bound one WatchResponse.
	batchEvents = 512
	batchBytes  = 1 << 20
	// chunkBytes is the largest text that travels in one event; longer ones are cut between characters.
	chunkBytes = 1 << 20
	// maxEvent is the contract's bound of one event.
	maxEvent = 8 << 20
)

// sink numbers events and keeps them until the host has read them. It is safe for concurrent use.
type sink struct {
	log *slog.Logger

	mu     sync.Mutex
	room   sync.Cond // signalled when the buffer shrinks or the sink closes
	queue  fifo
	bytes  int
	seq    uint64
	closed bool
	more   chan struct{} // capacity 1: there is something to send
	reader int           // generation of the stream that may take
	ended  chan struct{} // closed when the reader's generation is over
}

type item struct {
	e    runtime.Event
	cost int
}

// fifo is a queue of events in pieces, so that a long one is neither copied as it grows nor kept as it shrinks.
type fifo struct {
	pieces [][]item
	taken  int // of the first piece
	len    int
}

// fifoPiece is how many events one piece holds.
const fifoPiece = 128

func (f *fifo) push(i item) {
	if n := len(f.pieces); n == 0 || len(f.pieces[n-1]) == fifoPiece {
		f.pieces = append(f.pieces, make([]item, 0, fifoPiece))
	}
	last := &f.pieces[len(f.pieces)-1]
	*last = append(*last, i)
	f.len++
}

func (f *fifo) front() *item { return &f.pieces[0][f.taken] }

func (f *fifo) pop() item {
	i := *f.front()
	*f.front() = item{} // lets go of what it points to
	f.taken++
	f.len--
	if f.taken == len(f.pieces[0]) && (f.taken == fifoPiece || f.len == 0) {
		f.pieces, f.taken = f.pieces[1:], 0
	}
	return i
}

func newSink(log *slog.Logger) *sink {
	s := &sink{log: log, more: make(chan struct{}, 1), ended: make(chan struct{})}
	s.room.L = &s.mu
	return s
}

// Emit implements runtime.Sink.
func (s *sink) Emit(e runtime.Event) {
	if c := chunkOf(&e); c != nil && len(c.Text) > chunkBytes {
		s.emitLong(e, *c)
		return
	}
	s.put(e)
}

// emitLong sends a long text in pieces: only the first one may replace.
func (s *sink) emitLong(e runtime.Event, whole runtime.TextChunk) {
	rest := whole.Text
	for piece := whole; rest != ""; piece.Replace = false {
		n := min(len(rest), chunkBytes)
		for n < len(rest) && n > chunkBytes-utf8.UTFMax && !utf8.RuneStart(rest[n]) {
			n--
		}
		piece.Text, rest = rest[:n], rest[n:]
		next, c := e, piece
		if e.Text != nil {
			next.Text = &c
		} else {
			next.Thought = &c
		}
		s.put(next)
	}
}

func (s *sink) put(e runtime.Event) {
	cost := eventCost(&e)
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed && s.queue.len > 0 && (s.queue.len >= bufferEvents || s.bytes+cost > bufferBytes) {
		s.room.Wait()
	}
	if s.closed {
		return
	}
	s.seq++
	e.Seq = s.seq
	s.queue.push(item{e, cost})
	s.bytes += cost
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// Seq implements runtime.Sink.
func (s *sink) Seq() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seq
}

// close drops what waits and lets every Emit return.
func (s *sink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.queue, s.bytes = fifo{}, 0
	s.room.Broadcast()
}

// stream sends events until ctx ends, the transport fails or another stream takes over.
func (s *sink) stream(ctx context.Context, send func(*runtimev1.WatchResponse) error) error {
	s.mu.Lock()
	close(s.ended)
	s.ended = make(chan struct{})
	over := s.ended
	s.reader++
	me := s.reader
	s.mu.Unlock()
	for {
		batch, ended, replaced := s.take(me)
		if replaced {
			return codes.New(codes.WatchReplaced)
		}
		if len(batch) > 0 {
			if err := send(&runtimev1.WatchResponse{Events: batch}); err != nil {
				return err
			}
			if ended {
				Fault(PointRunEnded)
			}
			continue
		}
		select {
		case <-s.more:
		case <-over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take gives the next batch, and says whether it ends a run and whether another stream has taken over.
func (s *sink) take(me int) (batch []*runtimev1.Event, ended, replaced bool) {
	s.mu.Lock()
	if s.reader != me {
		s.mu.Unlock()
		// The wake-up may have been meant for the newer stream.
		select {
		case s.more <- struct{}{}:
		default:
		}
		return nil, false, true
	}
	var items []item
	for size := 0; s.queue.len > 0 && len(items) < batchEvents; {
		cost := s.queue.front().cost
		if size += cost; len(items) > 0 && size > batchBytes {
			break
		}
		items = append(items, s.queue.pop())
		s.bytes -= cost
	}
	s.room.Broadcast()
	s.mu.Unlock()
	batch = make([]*runtimev1.Event, 0, len(items))
	for i := range items {
		batch = append(batch, s.wire(&items[i].e))
		ended = ended || items[i].e.RunEnded != nil
	}
	return batch, ended, false
}

// wire makes an event fit the contract: valid UTF-8, at most 8 MiB. What cannot fit loses its content, never its number.
func (s *sink) wire(e *runtime.Event) *runtimev1.Event {
	p := protomap.ToEvent(e)
	if c := chunkOf(e); c != nil {
		if !utf8.ValidString(c.Text) {
			scrub(p)
		}
		return p
	}
	scrub(p)
	if proto.Size(p) <= maxEvent {
		return p
	}
	s.log.Error("event too large, content dropped", "seq", e.Seq)
	switch b := p.Body.(type) {
	case *runtimev1.Event_RunEnded:
		b.RunEnded.Message = nil
	case *runtimev1.Event_ToolCall:
		b.ToolCall.Input, b.ToolCall.Output = nil, nil
	}
	if proto.Size(p) > maxEvent {
		p.Body = &runtimev1.Event_CatalogChanged{CatalogChanged: &runtimev1.CatalogChanged{}}
	}
	return p
}

func chunkOf(e *runtime.Event) *runtime.TextChunk {
	if e.Text != nil {
		return e.Text
	}
	return e.Thought
}

// eventCost estimates what an event keeps in memory.
func eventCost(e *runtime.Event) int {
	n := eventOverhead
	if c := chunkOf(e); c != nil {
		return n + len(c.Text)
	}
	switch {
	case e.ToolCall != nil:
		n += len(e.ToolCall.Input.Data) + len(e.ToolCall.Output.Data) + len(e.ToolCall.Title)
	case e.RunEnded != nil && e.RunEnded.Message != nil:
		for _, p := range e.RunEnded.Message.Parts {
			n += len(p.Text) + len(p.Data)
		}
	case e.InteractionOpened != nil && e.InteractionOpened.Approval != nil:
		n += len(e.InteractionOpened.Approval.Subject)
	case e.SettingsChanged != nil:
		n += 256 * len(e.SettingsChanged.Models)
	}
	return n
}

func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
