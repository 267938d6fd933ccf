package phone

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/host/phone/wire"
	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/jsonframe"
)

// peer is one socket from its first frame on: open, then authenticated.
type peer struct {
	listener *Listener
	backend  backend
	socket   *wire.Socket
	phone    Phone // set once, before the socket is listed

	requests sync.WaitGroup
	mu       sync.Mutex
	waiting  int  // requests without an answer
	known    bool // authenticated
}

// Phone implements Peer.
func (p *peer) Phone() Phone { return p.phone }

// Direct implements Peer.
func (p *peer) Direct() bool { return true }

// Event implements Peer.
func (p *peer) Event(frame []byte, key string) { p.socket.Event(frame, key) }

// run serves the socket until it ends; free gives its place back as soon as it has.
func (p *peer) run(live, requests context.Context, free func()) {
	var wg sync.WaitGroup
	wg.Go(func() { p.socket.Run(live) })
	deadline := time.AfterFunc(clawket.AuthDeadline, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.known {
			p.socket.Close(clawket.ClosePolicy, clawket.ReasonAuthRequired)
			p.listener.metrics.refuse(refusedLate)
		}
	})
	p.read(requests)
	deadline.Stop()
	<-p.socket.Ended()
	if p.known { // written by this goroutine only
		p.listener.forget(p)
		p.backend.dialect.Leave(p)
	}
	wg.Wait()
	free()
	p.requests.Wait()
}

func (p *peer) read(requests context.Context) {
	for {
		frame, err := p.socket.Read()
		if err != nil {
			return
		}
		q, err := clawket.ParseRequest(frame)
		switch {
		case errors.Is(err, clawket.ErrUnreadable):
			p.listener.metrics.ended(p.backend.name, endedUnusable)
			p.fail("", codes.New(codes.FrameInvalid))
		case !p.known:
			if err != nil || !p.authenticate(requests, q) {
				p.listener.metrics.refuse(refusedToken)
				p.socket.Close(clawket.ClosePolicy, clawket.ReasonUnauthorized)
				return
			}
			q.Method, q.Params = clawket.MethodHealth, nil
			p.dispatch(requests, q)
		case errors.Is(err, clawket.ErrIgnored):
		case err != nil:
			p.fail(q.ID, codes.New(codes.FrameInvalid))
		case !p.dispatch(requests, q):
			return
		}
	}
}

// authenticate judges the first frame and, if it is right, lists the socket.
func (p *peer) authenticate(ctx context.Context, q clawket.Request) bool {
	if q.Method != clawket.MethodConnect {
		return false
	}
	var params struct {
		Token string `json:"token"`
	}
	if json.Unmarshal(q.Params, &params) != nil || params.Token == "" || len(params.Token) > clawket.MaxTokenLength {
		return false
	}
	id, label, ok := p.listener.opt.Auth.Authenticate(ctx, p.backend.name, params.Token)
	if !ok {
		return false
	}
	p.phone = Phone{ID: id, Label: label}
	p.listener.remember(p)
	if !p.listener.opt.Auth.Valid(ctx, id) {
		p.listener.forget(p)
		return false
	}
	p.mu.Lock()
	p.known = true
	p.mu.Unlock()
	p.socket.Alive()
	p.backend.dialect.Join(p)
	return true
}

// dispatch starts one request; false means that the socket was ended for asking too much.
func (p *peer) dispatch(ctx context.Context, q clawket.Request) bool {
	p.mu.Lock()
	if p.waiting >= clawket.MaxRequests {
		p.mu.Unlock()
		p.listener.metrics.ended(p.backend.name, endedTooMany)
		p.socket.Close(clawket.ClosePolicy, clawket.ReasonTooMany)
		return false
	}
	p.waiting++
	p.mu.Unlock()
	leave, ok := p.listener.admission.Enter()
	if !ok {
		p.answered()
		p.listener.metrics.ended(p.backend.name, endedClosed)
		p.fail(q.ID, codes.New(codes.Restarting))
		return true
	}
	select {
	case p.listener.serving <- struct{}{}:
	default:
		leave()
		p.answered()
		p.listener.metrics.ended(p.backend.name, endedBusy)
		p.fail(q.ID, codes.New(codes.BridgeBusy))
		return true
	}
	p.requests.Go(func() {
		defer leave()
		defer func() { <-p.listener.serving }()
		payload, err := p.serve(ctx, q)
		p.answered() // before the answer goes out: whoever has it may ask again
		if err != nil {
			p.listener.metrics.ended(p.backend.name, endedFailed)
			p.fail(q.ID, err)
			return
		}
		p.listener.metrics.ended(p.backend.name, endedOK)
		p.respond(clawket.Response{Type: clawket.TypeResponse, ID: q.ID, OK: true, Payload: payload})
	})
	return true
}

func (p *peer) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting--
}

// serve calls the dialect. A panic there is a fault of one request and must not take every other phone along.
func (p *peer) serve(ctx context.Context, q clawket.Request) (payload any, err error) {
	defer func() {
		if r := recover(); r != nil {
			p.listener.log.Error("request panicked", obs.KeyRuntime, p.backend.name, obs.KeyMethod, q.Method, "stack", string(debug.Stack()))
			err = codes.New(codes.Internal).Because(fmt.Errorf("panic: %T", r))
		}
	}()
	return p.backend.dialect.Serve(ctx, p, q.Method, q.Params)
}

func (p *peer) fail(id string, err error) {
	level := slog.LevelDebug
	if codes.Of(err) == codes.Internal {
		level = slog.LevelWarn
	}
	p.listener.log.Log(context.Background(), level, "request failed", obs.KeyRuntime, p.backend.name, obs.KeyCode, codes.Of(err), obs.KeyError, logged(err))
	f := p.backend.dialect.Failure(err)
	p.respond(clawket.Response{Type: clawket.TypeResponse, ID: id, Error: &f})
}

// logged keeps the cause for the local log only.
func logged(err error) any {
	if e := codes.As(err); e != nil {
		return e
	}
	return err
}

func (p *peer) respond(r clawket.Response) {
	frame, err := jsonframe.Marshal(r)
	if err != nil { // a payload of ours that is no JSON is a fault of ours
		f := p.backend.dialect.Failure(codes.New(codes.Internal).Because(err))
		frame, _ = jsonframe.Marshal(clawket.Response{Type: clawket.TypeResponse, ID: r.ID, Error: &f})
	}
	p.socket.Respond(frame)
}

func (l *Listener) remember(p *peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sockets[p] = struct{}{}
}

func (l *Listener) forget(p *peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sockets, p)
}
