package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/openphone-host/openphone/buildtools/bench/stamp"
	"github.com/openphone-host/openphone/protocol/clawket"
)

// smallBuffer is what the kernel may hold for a paused phone, so that the host feels the pause.
const smallBuffer = 4 << 10

// phone is one authenticated socket. It notes how long each piece of text was under way.
type phone struct {
	conn   *websocket.Conn
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	gate   chan struct{} // holds one token; nothing is read while somebody else has it
	ended  chan string   // run ids
	lost   chan struct{}

	mu      sync.Mutex
	waiting map[string]chan clawket.Incoming
	ages    []time.Duration
}

// dial opens a socket and authenticates it. Small: with a small receive buffer.
func dial(ctx context.Context, o offer, small bool) (*phone, error) {
	dialer := &net.Dialer{}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, addr)
		if t, ok := c.(*net.TCPConn); ok && small {
			err = errors.Join(err, t.SetReadBuffer(smallBuffer))
		}
		return c, err
	}}
	opening, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, _, err := websocket.Dial(opening, o.URL, &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(clawket.MaxFrame + 1)
	p := &phone{
		conn: conn, ended: make(chan string, 64), lost: make(chan struct{}), waiting: map[string]chan clawket.Incoming{},
		ages: make([]time.Duration, 0, 20_000), gate: make(chan struct{}, 1),
	}
	p.gate <- struct{}{}
	p.ctx, p.cancel = context.WithCancel(ctx)
	p.wg.Go(p.read)
	if err := p.call(clawket.MethodConnect, map[string]any{"token": o.Token}, nil); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *phone) close() {
	p.cancel()
	_ = p.conn.CloseNow()
	p.wg.Wait()
}

var (
	pieceOfText = []byte(`"` + clawket.UpdateMessageChunk + `"`)
	endOfRun    = []byte(`"` + clawket.UpdateRunFinished + `"`)
	response    = []byte(`{"type":"` + clawket.TypeResponse + `"`)
)

func (p *phone) read() {
	defer close(p.lost)
	var moments []int64
	for {
		p.gate <- <-p.gate
		_, frame, err := p.conn.Read(p.ctx)
		now := time.Now().UnixNano()
		if err != nil {
			return
		}
		switch {
		case bytes.Contains(frame, pieceOfText):
			moments = stamp.Find(moments[:0], frame)
			p.mu.Lock()
			for _, m := range moments {
				p.ages = append(p.ages, time.Duration(now-m))
			}
			p.mu.Unlock()
		case bytes.Contains(frame, endOfRun):
			var e struct{ Payload clawket.Update }
			if json.Unmarshal(frame, &e) == nil {
				p.ended <- e.Payload.RunID
			}
		case bytes.HasPrefix(frame, response):
			p.answered(frame)
		}
	}
}

func (p *phone) answered(frame []byte) {
	var in clawket.Incoming
	if json.Unmarshal(frame, &in) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.waiting[in.ID]; c != nil {
		delete(p.waiting, in.ID)
		c <- in
	}
}

// taken gives the ages noted so far and forgets them.
func (p *phone) taken() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := append([]time.Duration(nil), p.ages...)
	p.ages = p.ages[:0]
	return list
}

func (p *phone) call(method string, params map[string]any, answer any) error {
	q := clawket.Request{Type: clawket.TypeRequest, ID: newID(), Method: method}
	var err error
	if q.Params, err = json.Marshal(params); err != nil {
		return err
	}
	frame, err := json.Marshal(q)
	if err != nil {
		return err
	}
	c := make(chan clawket.Incoming, 1)
	p.mu.Lock()
	p.waiting[q.ID] = c
	p.mu.Unlock()
	if err := p.conn.Write(p.ctx, websocket.MessageText, frame); err != nil {
		return err
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case in := <-c:
		if !in.OK {
			return fmt.Errorf("%s: %s", method, in.Error.Message)
		}
		if answer == nil {
			return nil
		}
		return json.Unmarshal(in.Payload, answer)
	case <-p.lost:
		return fmt.Errorf("%s: the connection was lost", method)
	case <-late.C:
		return fmt.Errorf("%s: no answer", method)
	}
}

// conversation makes one and gives its key.
func (p *phone) conversation() (string, error) {
	var s clawket.Session
	err := p.call(clawket.MethodSessionsCreate, map[string]any{}, &s)
	return s.Key, err
}

// send gives the run of a prompt once the host has its receipt.
func (p *phone) send(key, text string) (string, error) {
	var r struct {
		RunID string `json:"runId"`
	}
	err := p.call(clawket.MethodChatSend, map[string]any{"sessionKey": key, "text": text, "idempotencyKey": newID()}, &r)
	return r.RunID, err
}

// finish waits for the end of a run.
func (p *phone) finish(run string) error {
	late := time.NewTimer(2 * patience)
	defer late.Stop()
	for {
		select {
		case id := <-p.ended:
			if id == run {
				return nil
			}
		case <-p.lost:
			return errors.New("the connection was lost in the middle of a reply")
		case <-late.C:
			return errors.New("the reply does not end")
		}
	}
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
