package appserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"
)

// Bounds of the connection.
const (
	maxLineIn   = 32 << 20         // longest line read; the server echoes an image twice, 6.3 MB each
	maxLineOut  = 8 << 20          // longest line written
	maxPending  = 32               // calls waiting for an answer
	callTimeout = 30 * time.Second // time a call may take; after it the outcome is unknown
)

// Notification is something the server says without being asked.
type Notification struct {
	Method string
	Params json.RawMessage
}

// ServerRequest is something the server asks. ID goes back unchanged: it is a number beginning at 0.
type ServerRequest struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
}

// Options of a Client. In, Out and the handlers are needed.
type Options struct {
	In             io.Reader      // the child's standard output
	Out            io.WriteCloser // the child's standard input; closed when Run returns
	OnNotification func(Notification)
	OnRequest      func(ServerRequest)
	Log            *slog.Logger  // nil: discard
	Timeout        time.Duration // of one call; 0: 30 s
}

// Client is one connection to one app server. Make it with New, then call Run.
type Client struct {
	o   Options
	out chan outgoing

	mu      sync.Mutex
	nextID  int64
	pending map[int64]chan answer
	ended   bool
	done    chan struct{}
}

type outgoing struct {
	line    []byte
	written chan error // buffered
}

type answer struct {
	result json.RawMessage
	err    error
}

type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *RPCError       `json:"error,omitempty"`
}

// New makes a client; nothing is read or written before Run.
func New(o Options) *Client {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Timeout == 0 {
		o.Timeout = callTimeout
	}
	return &Client{o: o, out: make(chan outgoing), pending: map[int64]chan answer{}, done: make(chan struct{})}
}

// Run reads until the server ends, the framing breaks or ctx ends, and returns why. Afterwards every call that waited
// has failed as uncertain, and new ones fail as not sent. It owns the connection's goroutines.
func (c *Client) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(c.writeLines)
	stop := context.AfterFunc(ctx, func() { _ = c.o.Out.Close() })
	err := c.readLines()
	stop()
	c.end()
	_ = c.o.Out.Close()
	wg.Wait()
	return err
}

// Done is closed when the connection is over.
func (c *Client) Done() <-chan struct{} { return c.done }

func (c *Client) end() {
	c.mu.Lock()
	pending := c.pending
	c.pending = map[int64]chan answer{}
	if !c.ended {
		c.ended = true
		close(c.done)
	}
	c.mu.Unlock()
	c.diagnose("connection_ended", len(pending), 0)
	for _, ch := range pending {
		ch <- answer{err: errUncertain}
	}
}

func (c *Client) readLines() error {
	r := bufio.NewReaderSize(c.o.In, 64<<10)
	var long []byte
	for {
		piece, err := r.ReadSlice('\n')
		if len(long)+len(piece) > maxLineIn {
			c.diagnose("frame_too_large", c.waiting(), len(long)+len(piece))
			return ErrFrame
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			long = append(long, piece...)
			continue
		case err != nil: // a half line at the end is worth nothing
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("read: %w", err)
		}
		line := piece
		if long != nil {
			line = append(long, piece...)
			long = nil
		}
		c.handle(line)
	}
}

// handle takes one line. Lines that are no object of the protocol are counted and skipped.
func (c *Client) handle(line []byte) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return
	}
	var m message
	if line[0] != '{' || json.Unmarshal(line, &m) != nil {
		c.diagnose("frame_unreadable", c.waiting(), len(line))
		return
	}
	hasID := len(m.ID) > 0 && !bytes.Equal(m.ID, []byte("null"))
	switch {
	case m.Method != "" && hasID:
		c.o.OnRequest(ServerRequest{ID: append(json.RawMessage(nil), m.ID...), Method: m.Method, Params: m.Params})
	case m.Method != "":
		c.o.OnNotification(Notification{Method: m.Method, Params: m.Params})
	case hasID:
		c.settle(m)
	default:
		c.diagnose("frame_unreadable", c.waiting(), len(line))
	}
}

func (c *Client) settle(m message) {
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	if err != nil {
		c.diagnose("answer_unknown", c.waiting(), 0)
		return
	}
	c.mu.Lock()
	ch, ok := c.pending[id]
	delete(c.pending, id)
	c.mu.Unlock()
	if !ok {
		c.diagnose("answer_late", c.waiting(), 0)
		return
	}
	if m.Error != nil {
		ch <- answer{err: m.Error}
		return
	}
	ch <- answer{result: m.Result}
}

func (c *Client) writeLines() {
	for {
		select {
		case <-c.done:
			return
		case o := <-c.out:
			_, err := c.o.Out.Write(o.line)
			o.written <- err
			if err != nil {
				c.diagnose("write_failed", c.waiting(), len(o.line))
			}
		}
	}
}

// send hands a line to the writer. ErrNotSent: it was not handed over. Any other error: part of it may be out.
func (c *Client) send(ctx context.Context, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	line = append(line, '\n')
	if len(line) > maxLineOut {
		c.diagnose("frame_too_large", c.waiting(), len(line))
		return fmt.Errorf("%w: %w", ErrNotSent, ErrFrame)
	}
	o := outgoing{line: line, written: make(chan error, 1)}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrNotSent, ctx.Err())
	}
	select {
	case <-c.done:
		return ErrNotSent
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrNotSent, ctx.Err())
	case c.out <- o:
	}
	select {
	case err := <-o.written:
		if err != nil {
			return fmt.Errorf("%w: %w", errUncertain, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errUncertain, ctx.Err())
	}
}

// call sends a request and waits for its answer. A call without an answer in time is uncertain and is never repeated.
func (c *Client) call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	ch := make(chan answer, 1)
	c.mu.Lock()
	if c.ended || len(c.pending) >= maxPending {
		full := !c.ended
		n := len(c.pending)
		c.mu.Unlock()
		if full {
			c.diagnose("calls_full", n, 0)
		}
		return ErrNotSent
	}
	c.nextID++
	id := c.nextID
	c.pending[id] = ch
	c.mu.Unlock()
	if params == nil {
		params = struct{}{}
	}
	if err := c.send(ctx, request{Method: method, ID: id, Params: params}); err != nil {
		c.forget(id)
		return err
	}
	select {
	case a := <-ch:
		if a.err != nil {
			return a.err
		}
		if result == nil {
			return nil
		}
		if err := json.Unmarshal(a.result, result); err != nil {
			return fmt.Errorf("%w: %w", ErrReply, err)
		}
		return nil
	case <-ctx.Done():
		c.forget(id)
		c.diagnose("call_timeout", c.waiting(), 0)
		return fmt.Errorf("%w: %w", errUncertain, ctx.Err())
	}
}

type request struct {
	Method string `json:"method"`
	ID     int64  `json:"id"`
	Params any    `json:"params"`
}

func (c *Client) forget(id int64) {
	c.mu.Lock()
	delete(c.pending, id)
	c.mu.Unlock()
}

func (c *Client) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending)
}

// Respond answers a server request. The errors are those of a call that was sent or not.
func (c *Client) Respond(ctx context.Context, id json.RawMessage, result any) error {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	return c.send(ctx, struct {
		ID     json.RawMessage `json:"id"`
		Result any             `json:"result"`
	}{id, result})
}

// Refuse answers a server request with the error of an unknown method, so that approvals fail closed.
func (c *Client) Refuse(ctx context.Context, id json.RawMessage) error {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	return c.send(ctx, struct {
		ID    json.RawMessage `json:"id"`
		Error RPCError        `json:"error"`
	}{id, RPCError{Code: rpcUnsupported, Message: "not supported"}})
}

// diagnose writes a fixed reason and numbers to the local log: no method, parameter, path, id or native text. A logger
// that fails disturbs nothing.
func (c *Client) diagnose(reason string, pending, size int) {
	defer func() { _ = recover() }()
	attrs := []slog.Attr{slog.String("reason", reason), slog.Int("pending", pending)}
	if size > 0 {
		attrs = append(attrs, slog.Int("bytes", size))
	}
	c.o.Log.LogAttrs(context.Background(), slog.LevelInfo, "app server", attrs...)
}
