package chat

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/openphone-host/openphone/protocol/clawket"
)

// callDeadline bounds one request; a phone waits 20 s, setters up to 45 s.
const callDeadline = 45 * time.Second

// maxUpdates bounds what may wait for the screen; a terminal that is paused longer loses the connection, not memory.
const maxUpdates = 65536

// failure is an error the host answered; its message is made for people.
type failure clawket.Failure

func (f *failure) Error() string { return f.Message }

// socket is one authenticated socket.
type socket struct {
	backend string
	conn    *websocket.Conn
	health  clawket.Health

	mu      sync.Mutex
	waiting map[string]chan clawket.Incoming
	updates []update
	lost    error

	ready chan struct{} // one token: there may be updates
	done  chan struct{} // closed when the socket is gone
}

type update struct {
	clawket.Update
	raw json.RawMessage
}

// dial connects and authenticates. Serve must run for Call to get answers.
func dial(ctx context.Context, url, backend string) (*socket, error) {
	conn, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, fmt.Errorf("the host does not answer at %s: %w", url, err)
	}
	conn.SetReadLimit(clawket.MaxFrame + 1)
	return &socket{
		backend: backend, conn: conn, waiting: map[string]chan clawket.Incoming{},
		ready: make(chan struct{}, 1), done: make(chan struct{}),
	}, nil
}

// Serve reads until the socket ends or ctx does.
func (p *socket) Serve(ctx context.Context) error {
	defer close(p.done)
	for {
		_, data, err := p.conn.Read(ctx)
		if err == nil {
			err = p.take(data)
		}
		if err != nil {
			p.mu.Lock()
			p.lost = err
			p.mu.Unlock()
			_ = p.conn.CloseNow()
			return err
		}
	}
}

func (p *socket) take(data []byte) error {
	var in clawket.Incoming
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("the host sent something unreadable: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch in.Type {
	case clawket.TypeResponse:
		if c := p.waiting[in.ID]; c != nil {
			delete(p.waiting, in.ID)
			c <- in // buffered
		}
	case clawket.TypeEvent:
		if in.Event != clawket.EventName(p.backend) {
			return nil
		}
		if len(p.updates) >= maxUpdates {
			return errors.New("the terminal is too slow")
		}
		u := update{raw: in.Payload}
		if json.Unmarshal(in.Payload, &u.Update) == nil {
			p.updates = append(p.updates, u)
		}
		select {
		case p.ready <- struct{}{}:
		default:
		}
	}
	return nil
}

// Connect authenticates the socket.
func (p *socket) Connect(ctx context.Context, token string) error {
	return p.Call(ctx, clawket.MethodConnect, map[string]string{"token": token}, &p.health)
}

// Call makes one request. A refusal is a *failure; any other error leaves open what became of it.
func (p *socket) Call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, callDeadline)
	defer cancel()
	id := newID()
	q := clawket.Request{Type: clawket.TypeRequest, ID: id, Method: method}
	if params != nil {
		raw, err := clawket.Marshal(params)
		if err != nil {
			return err
		}
		q.Params = raw
	}
	data, err := clawket.Marshal(q)
	if err != nil {
		return err
	}
	answer := make(chan clawket.Incoming, 1)
	p.mu.Lock()
	p.waiting[id] = answer
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.waiting, id)
		p.mu.Unlock()
	}()
	if err := p.conn.Write(ctx, websocket.MessageText, data); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case in := <-answer:
		if !in.OK {
			if in.Error == nil {
				in.Error = &clawket.Failure{Code: "server", Message: "The host answered without a reason."}
			}
			return (*failure)(in.Error)
		}
		if result == nil || len(in.Payload) == 0 {
			return nil
		}
		return json.Unmarshal(in.Payload, result)
	case <-p.done:
		return fmt.Errorf("%s: the connection to the host was lost", method)
	case <-ctx.Done():
		return fmt.Errorf("%s: the host did not answer", method)
	}
}

// take away what waits.
func (p *socket) drain() []update {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.updates
	p.updates = nil
	return u
}

func (p *socket) err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// Close says goodbye.
func (p *socket) Close() { _ = p.conn.Close(websocket.StatusNormalClosure, "") }

// newID makes an unguessable id of 32 hex digits.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
