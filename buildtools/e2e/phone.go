package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/openphone-host/openphone/protocol/clawket"
)

// phone is one authenticated socket, with everything it was told since it connected.
type phone struct {
	backend string
	conn    *websocket.Conn
	health  clawket.Health
	reading sync.WaitGroup

	mu      sync.Mutex
	waiting map[string]chan clawket.Incoming
	updates []update
	changed chan struct{}
	lost    error
}

type update struct {
	clawket.Update
	raw json.RawMessage
}

// refusal is an error the host answered.
type refusal clawket.Failure

func (r *refusal) Error() string { return r.Code + ": " + r.Message }

// connect opens a socket and authenticates it.
func (p *pairing) connect(ctx context.Context, backend string) (*phone, error) {
	i := slices.IndexFunc(p.Backends, func(b struct{ Backend, URL, Token string }) bool { return b.Backend == backend })
	if i < 0 {
		return nil, fmt.Errorf("the pairing has no backend %s", backend)
	}
	dial, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, _, err := websocket.Dial(dial, p.Backends[i].URL, nil)
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(clawket.MaxFrame + 1)
	ph := &phone{backend: backend, conn: conn, waiting: map[string]chan clawket.Incoming{}, changed: make(chan struct{})}
	ph.reading.Go(func() { ph.read(ctx) })
	return ph, ph.call(ctx, clawket.MethodConnect, map[string]any{"token": p.Backends[i].Token}, &ph.health)
}

func (p *phone) read(ctx context.Context) {
	for {
		_, data, err := p.conn.Read(ctx)
		p.mu.Lock()
		if err != nil {
			p.lost = err
			for id, c := range p.waiting {
				delete(p.waiting, id)
				close(c)
			}
		} else {
			p.take(data)
		}
		close(p.changed)
		p.changed = make(chan struct{})
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// take needs the lock.
func (p *phone) take(data []byte) {
	var in clawket.Incoming
	if json.Unmarshal(data, &in) != nil {
		return
	}
	switch in.Type {
	case clawket.TypeResponse:
		if c := p.waiting[in.ID]; c != nil {
			delete(p.waiting, in.ID)
			c <- in
		}
	case clawket.TypeEvent:
		u := update{raw: in.Payload}
		if json.Unmarshal(in.Payload, &u.Update) == nil {
			p.updates = append(p.updates, u)
		}
	}
}

var errLost = errors.New("the connection was lost")

// call makes one request. A refusal is a *refusal.
func (p *phone) call(ctx context.Context, method string, params map[string]any, result any) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	var b [16]byte
	_, _ = rand.Read(b[:])
	q := clawket.Request{Type: clawket.TypeRequest, ID: hex.EncodeToString(b[:]), Method: method}
	if params != nil {
		raw, err := json.Marshal(params)
		if err != nil {
			return err
		}
		q.Params = raw
	}
	data, err := json.Marshal(q)
	if err != nil {
		return err
	}
	answer := make(chan clawket.Incoming, 1)
	p.mu.Lock()
	gone := p.lost != nil
	p.waiting[q.ID] = answer
	p.mu.Unlock()
	if gone {
		return errLost
	}
	if err := p.conn.Write(ctx, websocket.MessageText, data); err != nil {
		return errors.Join(errLost, err)
	}
	select {
	case in, ok := <-answer:
		switch {
		case !ok:
			return errLost
		case !in.OK && in.Error != nil:
			return (*refusal)(in.Error)
		case !in.OK:
			return errors.New("a refusal without a reason")
		case result == nil || len(in.Payload) == 0:
			return nil
		}
		return json.Unmarshal(in.Payload, result)
	case <-ctx.Done():
		return fmt.Errorf("%s: no answer", method)
	}
}

// mark is the number of updates so far.
func (p *phone) mark() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.updates)
}

// since gives the updates after a mark.
func (p *phone) since(mark int) []update {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.updates[min(mark, len(p.updates)):])
}

// wait gives the first update after the mark that fits.
func (p *phone) wait(ctx context.Context, mark int, what string, fits func(update) bool) (update, error) {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		p.mu.Lock()
		for _, u := range p.updates[min(mark, len(p.updates)):] {
			if fits(u) {
				p.mu.Unlock()
				return u, nil
			}
		}
		changed, lost := p.changed, p.lost
		p.mu.Unlock()
		if lost != nil {
			return update{}, errors.Join(errLost, lost)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return update{}, ctx.Err()
		case <-timeout.C:
			return update{}, fmt.Errorf("no %s; last updates: %s", what, p.last(mark))
		}
	}
}

func (p *phone) last(mark int) string {
	var names []string
	for _, u := range p.since(mark) {
		names = append(names, u.Type)
	}
	return strings.Join(names[max(0, len(names)-12):], " ")
}

func (p *phone) close() {
	_ = p.conn.CloseNow()
	p.reading.Wait()
}

// text is what a phone shows of a run: snapshots replace, deltas append.
func text(updates []update, runID string) string {
	var s string
	for _, u := range updates {
		if u.Type != clawket.UpdateMessageChunk || u.RunID != runID || u.Text == nil {
			continue
		}
		if u.TextMode == "delta" {
			s += *u.Text
		} else {
			s = *u.Text
		}
	}
	return s
}
