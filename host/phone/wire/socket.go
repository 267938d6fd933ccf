// Package wire is one phone's WebSocket below its meaning: frames in, a bounded queue out, heartbeat, and the ways a
// socket can end. It knows no method, no token and no session.
//
// A Socket has one reader (the caller of Read) and one writer (Run). Respond, Event, Close and Terminate may be called
// from any goroutine and never block: what does not fit ends the socket instead of holding anybody up.
package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/jsonframe"
)

// closeGrace is how long a closing socket may take to flush what is queued and to exchange close frames; then the
// connection is cut. It keeps the promise that a revoked phone is gone within a second (FAULT-14).
const closeGrace = 700 * time.Millisecond

// readChunk is the first buffer of a frame; most requests fit.
const readChunk = 4 << 10

// errEnded says that the socket takes no more frames.
var errEnded = errors.New("socket has ended")

// Options say which connection a socket is made of.
type Options struct {
	WebSocket *websocket.Conn
	Raw       net.Conn // the connection under it, to cut it with
	// MaxFrame and MaxQueued are bytes; 0 means the limits of the wire.
	MaxFrame, MaxQueued int
	// Heartbeat is the pause between pings; 0 means the wire's.
	Heartbeat time.Duration
}

// Socket is one phone.
type Socket struct {
	ws        *websocket.Conn
	raw       net.Conn
	maxFrame  int
	maxQueued int
	beat      time.Duration
	ended     chan struct{} // closed by end
	endOnce   sync.Once
	wake      chan struct{} // capacity 1: there is something to write
	alive     chan struct{} // closed when the heartbeat shall begin
	aliveOnce sync.Once

	mu      sync.Mutex
	queue   []item
	queued  int // bytes in queue and in the write going on
	closing bool
}

type item struct {
	frame  []byte
	key    string // an unsent event of the same key at the end of the queue is replaced
	close  bool
	code   websocket.StatusCode
	reason string
}

// New takes over a connection; the caller must call Run.
func New(o Options) *Socket {
	if o.MaxFrame == 0 {
		o.MaxFrame = clawket.MaxFrame
	}
	if o.MaxQueued == 0 {
		o.MaxQueued = clawket.MaxQueued
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = clawket.Heartbeat
	}
	o.WebSocket.SetReadLimit(-1) // Read has its own, which answers with the close code of the wire
	return &Socket{
		ws: o.WebSocket, raw: o.Raw, maxFrame: o.MaxFrame, maxQueued: o.MaxQueued, beat: o.Heartbeat,
		ended: make(chan struct{}), wake: make(chan struct{}, 1), alive: make(chan struct{}),
	}
}

// Ended is closed when the connection is gone.
func (s *Socket) Ended() <-chan struct{} { return s.ended }

// Run writes what is queued and keeps the heartbeat until the connection is gone. It owns its goroutines.
func (s *Socket) Run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { s.Close(clawket.CloseGoingAway, clawket.ReasonHostRestarting) })
	defer stop()
	var wg sync.WaitGroup
	wg.Go(s.heartbeat)
	s.write()
	s.Terminate()
	wg.Wait()
}

// Read gives the next text frame. Every error means that the socket is done; a frame that breaks the limits ends it with
// its close code before Read returns.
func (s *Socket) Read() ([]byte, error) {
	kind, r, err := s.ws.Reader(context.Background())
	if err != nil {
		s.Terminate()
		return nil, errEnded
	}
	if kind != websocket.MessageText {
		s.abort(clawket.CloseUnsupported, clawket.ReasonFrameInvalid)
		return nil, errEnded
	}
	frame, err := readFrame(r, s.maxFrame)
	if err != nil {
		s.Terminate()
		return nil, errEnded
	}
	if len(frame) > s.maxFrame {
		s.abort(clawket.CloseTooBig, clawket.ReasonFrameTooLarge)
		return nil, errEnded
	}
	if !utf8.Valid(frame) {
		s.abort(clawket.CloseInvalidText, clawket.ReasonFrameInvalid)
		return nil, errEnded
	}
	if s.isClosing() {
		return nil, errEnded
	}
	return frame, nil
}

func readFrame(r io.Reader, max int) ([]byte, error) {
	r = io.LimitReader(r, int64(max)+1)
	frame := make([]byte, 0, readChunk)
	for {
		if len(frame) == cap(frame) {
			frame = append(frame, 0)[:len(frame)]
		}
		n, err := r.Read(frame[len(frame):cap(frame)])
		frame = frame[:len(frame)+n]
		if err == io.EOF {
			return frame, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// Respond queues an answer. One that is too large, or that a slow reader leaves too many bytes before, ends the socket.
func (s *Socket) Respond(frame []byte) {
	s.mu.Lock()
	tooMuch := len(frame) > s.maxFrame || s.queued > s.maxQueued
	if !tooMuch {
		s.put(item{frame: frame})
	}
	s.mu.Unlock()
	if tooMuch {
		s.abort(clawket.CloseTooBig, clawket.ReasonFrameTooLarge)
	}
}

// Event queues an update. One above the frame limit is left out; a reader too slow for it is cut off. An event with a key
// replaces the one before it if that has the same key and was not sent yet: only the newest snapshot matters.
func (s *Socket) Event(frame []byte, key string) {
	if len(frame) > s.maxFrame {
		return
	}
	s.mu.Lock()
	tooSlow := s.queued >= s.maxQueued
	if !tooSlow {
		if n := len(s.queue); key != "" && n > 0 && s.queue[n-1].key == key {
			s.queued += len(frame) - len(s.queue[n-1].frame)
			s.queue[n-1].frame = frame
		} else {
			s.put(item{frame: frame, key: key})
		}
	}
	s.mu.Unlock()
	if tooSlow {
		s.Terminate()
	}
}

// put needs mu.
func (s *Socket) put(i item) {
	if s.closing {
		return
	}
	s.closing = i.close
	s.queue = append(s.queue, i)
	s.queued += len(i.frame)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Alive starts the heartbeat: the phone has authenticated.
func (s *Socket) Alive() { s.aliveOnce.Do(func() { close(s.alive) }) }

// Close ends the socket after what is queued, with a code and a fixed reason, within a second.
func (s *Socket) Close(code int, reason string) {
	s.mu.Lock()
	s.put(item{close: true, code: websocket.StatusCode(code), reason: reason})
	s.mu.Unlock()
	s.cutLater()
}

// abort is Close without flushing.
func (s *Socket) abort(code int, reason string) {
	s.mu.Lock()
	if !s.closing {
		s.queue, s.queued = nil, 0
	}
	s.put(item{close: true, code: websocket.StatusCode(code), reason: reason})
	s.mu.Unlock()
	s.cutLater()
}

func (s *Socket) cutLater() { time.AfterFunc(closeGrace, s.Terminate) }

// Terminate cuts the connection.
func (s *Socket) Terminate() {
	s.endOnce.Do(func() {
		close(s.ended)
		s.raw.Close()
	})
}

func (s *Socket) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

func (s *Socket) write() {
	for {
		i, ok := s.next()
		if !ok {
			select {
			case <-s.wake:
				continue
			case <-s.ended:
				return
			}
		}
		if i.close {
			_ = s.ws.Close(i.code, i.reason)
			return
		}
		err := s.ws.Write(context.Background(), websocket.MessageText, i.frame)
		s.mu.Lock()
		s.queued -= len(i.frame)
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *Socket) next() (item, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return item{}, false
	}
	i := s.queue[0]
	s.queue[0] = item{}
	if s.queue = s.queue[1:]; len(s.queue) == 0 {
		s.queue = nil
	}
	return i, true
}

// heartbeat sends a tick and a ping at every beat and cuts the connection when the pong has not come by the next one.
func (s *Socket) heartbeat() {
	select {
	case <-s.alive:
	case <-s.ended:
		return
	}
	beat := time.NewTicker(s.beat)
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
		case <-s.ended:
			return
		}
		tick, _ := jsonframe.Marshal(clawket.Tick{Type: clawket.TypeTick, TS: time.Now().UnixMilli()})
		s.Event(tick, "")
		ctx, cancel := context.WithTimeout(context.Background(), s.beat)
		err := s.ws.Ping(ctx)
		cancel()
		if err != nil {
			s.Terminate()
			return
		}
	}
}
