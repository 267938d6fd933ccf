package phone

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/openphone-host/openphone/host/phone/wire"
	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/codes"
)

const (
	// maxHeader bounds the head of an HTTP request in bytes; an upgrade needs a few hundred.
	maxHeader = 16 << 10
	// headerDeadline is how long a connection may take to send it.
	headerDeadline = 10 * time.Second
	// maxConns is how many TCP connections may be open at once, those included that have not sent anything yet.
	maxConns = 128
	// maxInFlight is how many requests may be served at once, those included whose socket is gone: a phone that keeps
	// reconnecting must not pile them up.
	maxInFlight = clawket.MaxSockets * clawket.MaxRequests
	// stopGrace is how long open sockets may take to end when Run is cancelled.
	stopGrace = 2 * time.Second
)

// Options configure a Listener.
type Options struct {
	// Listen is host:port; port 0 takes a free one. Ignored when Listener is given.
	Listen string
	// Listener is an open one, for tests and for socket activation.
	Listener net.Listener
	Auth     Authenticator
	// Admission is shared with other ways into the host; nil means one of its own.
	Admission *Admission
	Log       *slog.Logger          // nil discards
	Metrics   prometheus.Registerer // nil registers nothing
	// MaxFrame and MaxQueued are bytes, for tests; 0 means the limits of the wire.
	MaxFrame, MaxQueued int
}

// Listener serves phones on one address.
type Listener struct {
	opt       Options
	log       *slog.Logger
	metrics   *metrics
	admission *Admission
	ln        net.Listener
	dialects  map[string]backend // by request target; fixed before Run
	serving   chan struct{}      // one place for each request being served

	mu      sync.Mutex
	slots   int // sockets open or being opened
	sockets map[*peer]struct{}
	stopped bool
	work    sync.WaitGroup // hijacked connections, which the HTTP server no longer counts
}

type backend struct {
	name    string
	dialect Dialect
}

// New opens the address. Failures are listen_failed.
func New(o Options) (*Listener, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Admission == nil {
		o.Admission = &Admission{}
	}
	l := &Listener{opt: o, log: o.Log, admission: o.Admission, ln: o.Listener, dialects: map[string]backend{}, sockets: map[*peer]struct{}{}, serving: make(chan struct{}, maxInFlight)}
	l.metrics = newMetrics(o.Metrics, l)
	if l.ln == nil {
		ln, err := net.Listen("tcp", o.Listen)
		if err != nil {
			return nil, codes.New(codes.ListenFailed).Because(err)
		}
		l.ln = ln
	}
	return l, nil
}

// Handle serves /v1/<name>/ws with d. It must be called before Run.
func (l *Listener) Handle(name string, d Dialect) {
	l.dialects[clawket.Path(name)] = backend{name, d}
}

// Addr is the address really listened on.
func (l *Listener) Addr() net.Addr { return l.ln.Addr() }

// Sockets counts open sockets, authenticated or not.
func (l *Listener) Sockets() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slots
}

// Run serves until ctx ends, then ends every socket and returns when the last request has come back.
func (l *Listener) Run(ctx context.Context) error {
	live, stop := context.WithCancel(ctx)
	defer stop()
	// Requests outlive their socket, because a phone that went away takes nothing back; they do not outlive the host.
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	srv := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { l.serve(live, requests, w, r) }),
		ReadHeaderTimeout: headerDeadline,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(l.log.Handler(), slog.LevelDebug),
	}
	srv.SetKeepAlivesEnabled(false) // nothing here is worth a second request
	var wg sync.WaitGroup
	wg.Go(func() {
		<-live.Done()
		l.mu.Lock()
		l.stopped = true
		l.mu.Unlock()
		srv.Close()
	})
	err := srv.Serve(newCapped(l.ln, maxConns))
	stop()
	wg.Wait()
	late := time.AfterFunc(stopGrace, func() {
		cut()
		for _, p := range l.list(func(*peer) bool { return true }) {
			p.socket.Terminate()
		}
	})
	defer late.Stop()
	l.work.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Disconnect ends every socket of one phone: its pairing is revoked.
func (l *Listener) Disconnect(phoneID string) int {
	gone := l.list(func(p *peer) bool { return p.phone.ID == phoneID })
	for _, p := range gone {
		p.socket.Close(clawket.ClosePolicy, clawket.ReasonUnauthorized)
	}
	return len(gone)
}

// Connected counts authenticated sockets per phone.
func (l *Listener) Connected() map[string]int {
	n := map[string]int{}
	for _, p := range l.list(func(*peer) bool { return true }) {
		n[p.phone.ID]++
	}
	return n
}

func (l *Listener) list(want func(*peer) bool) []*peer {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []*peer
	for p := range l.sockets {
		if want(p) {
			found = append(found, p)
		}
	}
	return found
}

// serve answers one HTTP request. The order of the checks is part of the protocol: target, origin, number of sockets,
// WebSocket handshake; nothing of a runtime is touched before the last.
func (l *Listener) serve(live, requests context.Context, w http.ResponseWriter, r *http.Request) {
	if !isUpgrade(r) {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	b, ok := l.dialects[r.RequestURI]
	if !ok {
		l.metrics.refuse(refusedTarget)
		destroy(w)
		return
	}
	if !originAllowed(r) {
		l.metrics.refuse(refusedOrigin)
		refuse(w, http.StatusForbidden)
		return
	}
	if !l.takeSlot() {
		l.metrics.refuse(refusedFull)
		refuse(w, http.StatusTooManyRequests)
		return
	}
	defer l.work.Done()
	free := sync.OnceFunc(l.freeSlot)
	defer free()
	keep := &connKeeper{ResponseWriter: w}
	// The origin was checked above, by a rule that is stricter than the library's.
	ws, err := websocket.Accept(keep, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return
	}
	s := wire.New(wire.Options{WebSocket: ws, Raw: keep.conn, MaxFrame: l.opt.MaxFrame, MaxQueued: l.opt.MaxQueued})
	p := &peer{listener: l, backend: b, socket: s}
	p.run(live, requests, free)
}

func (l *Listener) takeSlot() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped || l.slots >= clawket.MaxSockets {
		return false
	}
	l.slots++
	l.work.Add(1) // under mu, so that no socket begins after Run has stopped counting
	return true
}

func (l *Listener) freeSlot() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slots--
}

func isUpgrade(r *http.Request) bool {
	if r.Header.Get("Upgrade") == "" {
		return false
	}
	for _, v := range r.Header.Values("Connection") {
		for token := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(token), "upgrade") {
				return true
			}
		}
	}
	return false
}

// refuse answers without a body and without a second request on the connection.
func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Connection", "close")
	w.WriteHeader(status)
}

// destroy cuts the connection without a word.
func destroy(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // cuts it as well
	}
	conn.Close()
}

// connKeeper remembers the connection under a WebSocket, so that it can be cut without asking anybody.
type connKeeper struct {
	http.ResponseWriter
	conn net.Conn
}

// Unwrap lets http.ResponseController reach the writer underneath.
func (k *connKeeper) Unwrap() http.ResponseWriter { return k.ResponseWriter }

// Hijack implements http.Hijacker.
func (k *connKeeper) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(k.ResponseWriter).Hijack()
	k.conn = conn
	return conn, rw, err
}
