package phone

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/codes"
)

// fakeAuth knows two phones by the tokens "token-a" and "token-b" followed by zeros.
type fakeAuth struct {
	mu      sync.Mutex
	revoked map[string]bool
}

func token(name string) string { return "token-" + name + strings.Repeat("0", 57) }

func (a *fakeAuth) Authenticate(_ context.Context, _, t string) (id, label string, ok bool) {
	for _, name := range []string{"a", "b"} {
		if t == token(name) {
			return name, "phone " + name, a.Valid(context.Background(), name)
		}
	}
	return "", "", false
}

func (a *fakeAuth) Valid(_ context.Context, id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.revoked[id]
}

// fakeDialect answers health and a few methods of its own: echo, hold (until released), big, panic.
type fakeDialect struct {
	mu      sync.Mutex
	calls   []string
	peers   map[Peer]bool
	release chan struct{}
	held    chan struct{}
	big     int
	healthy error
}

func newFakeDialect() *fakeDialect {
	return &fakeDialect{peers: map[Peer]bool{}, release: make(chan struct{}), held: make(chan struct{}, 64)}
}

func (d *fakeDialect) Serve(ctx context.Context, p Peer, method string, params json.RawMessage) (any, error) {
	d.mu.Lock()
	d.calls = append(d.calls, method)
	d.mu.Unlock()
	switch method {
	case "health":
		return map[string]string{"backend": "demo"}, d.healthy
	case "echo":
		return params, nil
	case "hold":
		d.held <- struct{}{}
		select {
		case <-d.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return "released", nil
	case "big":
		return strings.Repeat("x", d.big), nil
	case "panic":
		panic("in a handler")
	case "null":
		return nil, nil
	case "native":
		return nil, errors.New("permission denied: /home/user/x")
	}
	return nil, codes.New(codes.MethodUnsupported)
}

func (d *fakeDialect) Failure(err error) clawket.Failure {
	return clawket.Failure{Code: "demo_error", Message: codes.Lookup(codes.Of(err)).Message}
}

func (d *fakeDialect) Join(p Peer)  { d.mu.Lock(); defer d.mu.Unlock(); d.peers[p] = true }
func (d *fakeDialect) Leave(p Peer) { d.mu.Lock(); defer d.mu.Unlock(); delete(d.peers, p) }

func (d *fakeDialect) called() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.calls...)
}

func (d *fakeDialect) broadcast(frame []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for p := range d.peers {
		p.Event(frame, "")
	}
}

type world struct {
	t       *testing.T
	l       *Listener
	d       *fakeDialect
	auth    *fakeAuth
	addr    string
	stop    context.CancelFunc
	stopped chan error
	dial    func(ctx context.Context) (net.Conn, error)
}

func start(t *testing.T, change func(*Options)) *world {
	t.Helper()
	w := &world{t: t, d: newFakeDialect(), auth: &fakeAuth{revoked: map[string]bool{}}}
	o := Options{Listen: "127.0.0.1:0", Auth: w.auth}
	if change != nil {
		change(&o)
	}
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	l.Handle("demo", w.d)
	l.Handle("pi", w.d)
	w.l, w.addr = l, l.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	w.stop, w.stopped = stop, make(chan error, 1)
	go func() { w.stopped <- l.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-w.stopped; err != nil {
			t.Errorf("Run: %v", err)
		}
		if n := l.Sockets(); n != 0 {
			t.Errorf("%d sockets left", n)
		}
	})
	w.dial = func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", w.addr)
	}
	return w
}

// raw sends a request as it is and gives the status line, or "" when the connection was cut without one.
func (w *world) raw(request string) (status string, rest string) {
	w.t.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(c, request); err != nil {
		w.t.Fatal(err)
	}
	all, _ := io.ReadAll(bufio.NewReader(c))
	status, rest, _ = strings.Cut(string(all), "\r\n")
	return status, rest
}

func upgrade(target string, headers ...string) string {
	return "GET " + target + " HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" +
		"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
}

type client struct {
	t  *testing.T
	ws *websocket.Conn
	n  int
}

func (w *world) open(backend string) *client {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	hc := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return w.dial(ctx) }}}
	ws, resp, err := websocket.Dial(ctx, "ws://"+w.addr+clawket.Path(backend), &websocket.DialOptions{HTTPClient: hc})
	if err != nil {
		status := 0
		if resp != nil {
			status = resp.StatusCode
		}
		w.t.Fatalf("dial: %v (%d)", err, status)
	}
	ws.SetReadLimit(-1)
	w.t.Cleanup(func() { ws.CloseNow() })
	return &client{t: w.t, ws: ws}
}

func (w *world) connect(name string) *client {
	w.t.Helper()
	c := w.open("demo")
	if r := c.ask("connect", `{"token":"`+token(name)+`"}`); !r.OK {
		w.t.Fatalf("connect: %+v", r.Error)
	}
	return c
}

func (c *client) send(text string) {
	c.t.Helper()
	if err := c.ws.Write(context.Background(), websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

func (c *client) request(method, params string) string {
	c.t.Helper()
	c.n++
	id := fmt.Sprintf("r%d", c.n)
	c.send(fmt.Sprintf(`{"type":"req","id":%q,"method":%q,"params":%s}`, id, method, params))
	return id
}

func (c *client) read() clawket.Incoming {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	_, frame, err := c.ws.Read(ctx)
	if err != nil {
		c.t.Fatalf("read: %v", err)
	}
	var in clawket.Incoming
	if err := json.Unmarshal(frame, &in); err != nil {
		c.t.Fatalf("frame: %v", err)
	}
	return in
}

func (c *client) ask(method, params string) clawket.Incoming {
	c.t.Helper()
	id := c.request(method, params)
	for {
		if r := c.read(); r.Type == clawket.TypeResponse && r.ID == id {
			return r
		}
	}
}

// closed reads on until the socket ends and gives its close code and reason; -1 when it was cut.
func (c *client) closed() (int, string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	for {
		_, _, err := c.ws.Read(ctx)
		var ce websocket.CloseError
		if errors.As(err, &ce) {
			return int(ce.Code), ce.Reason
		}
		if err != nil {
			if ctx.Err() != nil {
				c.t.Fatal("socket stays open")
			}
			return -1, ""
		}
	}
}

func (c *client) wantClosed(code int, reason string) {
	c.t.Helper()
	if got, why := c.closed(); got != code || why != reason {
		c.t.Errorf("closed with %d %q, want %d %q", got, why, code, reason)
	}
}

func TestCase1WrongTargetIsCutAndPlainHTTPIsNotFound(t *testing.T) {
	w := start(t, nil)
	host := "Host: " + w.addr
	for _, target := range []string{"/v1/pi/ws?x=1", "/", "/v1/pi/ws/", "//v1/pi/ws", "/v1/PI/ws", "/v1/none/ws", "/v1/pi/ws#", "http://" + w.addr + "/v1/pi/ws"} {
		if status, _ := w.raw(upgrade(target, host)); status != "" {
			t.Errorf("upgrade to %s answered %q", target, status)
		}
	}
	for _, target := range []string{"/health", "/", "/v1/pi/ws"} {
		status, rest := w.raw("GET " + target + " HTTP/1.1\r\n" + host + "\r\n\r\n")
		if status != "HTTP/1.1 404 Not Found" {
			t.Errorf("GET %s: %q", target, status)
		}
		if _, body, _ := strings.Cut(rest, "\r\n\r\n"); body != "" {
			t.Errorf("GET %s has a body: %q", target, body)
		}
	}
	if len(w.d.called()) != 0 {
		t.Errorf("the dialect was called: %v", w.d.called())
	}
}

func TestCase2Origin(t *testing.T) {
	rules.Covers(t, "SYNC-08")
	w := start(t, nil)
	_, port, _ := net.SplitHostPort(w.addr)
	for _, c := range []struct {
		name, host string
		origin     []string
		want       string
	}{
		{"none", w.addr, nil, "101"},
		{"same endpoint", w.addr, []string{"http://" + w.addr}, "101"},
		{"same endpoint with slash", w.addr, []string{"http://" + w.addr + "/"}, "101"},
		{"same name in other case", "Box.local:" + port, []string{"http://bOx.LOCAL:" + port}, "101"},
		{"default port", "box.local", []string{"https://box.local:443"}, "101"},
		{"foreign", w.addr, []string{"https://unrelated.example"}, "403"},
		{"other port", w.addr, []string{"http://127.0.0.1:1"}, "403"},
		{"port of the other scheme", "box.local:443", []string{"http://box.local"}, "403"},
		{"empty", w.addr, []string{""}, "403"},
		{"null", w.addr, []string{"null"}, "403"},
		{"user", w.addr, []string{"http://u@" + w.addr}, "403"},
		{"path", w.addr, []string{"http://" + w.addr + "/path"}, "403"},
		{"query", w.addr, []string{"http://" + w.addr + "?q"}, "403"},
		{"hash", w.addr, []string{"http://" + w.addr + "#h"}, "403"},
		{"scheme", w.addr, []string{"ws://" + w.addr}, "403"},
		{"two", w.addr, []string{"http://" + w.addr, "http://" + w.addr}, "403"},
	} {
		t.Run(c.name, func(t *testing.T) {
			headers := []string{"Host: " + c.host}
			for _, o := range c.origin {
				headers = append(headers, "Origin: "+o)
			}
			conn, err := net.Dial("tcp", w.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			io.WriteString(conn, upgrade("/v1/pi/ws", headers...))
			line, err := bufio.NewReader(conn).ReadString('\n')
			if err != nil || !strings.Contains(line, " "+c.want+" ") {
				t.Errorf("got %q, %v; want %s", line, err, c.want)
			}
		})
	}
	if len(w.d.called()) != 0 {
		t.Errorf("the dialect was called: %v", w.d.called())
	}
}

// A foreign page is told 403 whether or not there is room, and a wrong target is cut before anything else is looked at.
func TestOrderOfChecks(t *testing.T) {
	w := start(t, nil)
	for range clawket.MaxSockets {
		w.open("demo")
	}
	if status, _ := w.raw(upgrade("/v1/pi/ws", "Host: "+w.addr, "Origin: http://x.example")); !strings.Contains(status, "403") {
		t.Errorf("foreign origin without room: %q", status)
	}
	if status, _ := w.raw(upgrade("/v1/pi/x", "Host: "+w.addr, "Origin: http://x.example")); status != "" {
		t.Errorf("wrong target without room: %q", status)
	}
	if status, rest := w.raw(upgrade("/v1/pi/ws", "Host: "+w.addr)); !strings.Contains(status, "429") || !strings.Contains(rest, "Connection: close") {
		t.Errorf("33rd socket: %q %q", status, rest)
	}
}

func TestCase3SocketBound(t *testing.T) {
	rules.Covers(t, "SYNC-08")
	w := start(t, nil)
	var all []*client
	for range clawket.MaxSockets {
		all = append(all, w.open("demo"))
	}
	status, rest := w.raw(upgrade("/v1/demo/ws", "Host: "+w.addr))
	if !strings.Contains(status, "429") || !strings.Contains(rest, "Connection: close") {
		t.Fatalf("33rd socket: %q %q", status, rest)
	}
	all[7].ws.Close(1000, "")
	eventually(t, func() bool { return w.l.Sockets() == clawket.MaxSockets-1 })
	w.connect("a")
}

func TestCase4FirstFrame(t *testing.T) {
	w := start(t, nil)
	right := `"params":{"token":"` + token("a") + `"}`
	for _, c := range []struct{ name, frame string }{
		{"another method", `{"type":"req","id":"1","method":"sessions.list"}`},
		{"wrong token, equal length", `{"type":"req","id":"1","method":"connect","params":{"token":"` + strings.Repeat("f", 64) + `"}}`},
		{"wrong token, other length", `{"type":"req","id":"1","method":"connect","params":{"token":"x"}}`},
		{"token of another type", `{"type":"req","id":"1","method":"connect","params":{"token":7}}`},
		{"no token", `{"type":"req","id":"1","method":"connect"}`},
		{"empty id", `{"type":"req","id":"","method":"connect",` + right + `}`},
		{"id of 201", `{"type":"req","id":"` + strings.Repeat("i", 201) + `","method":"connect",` + right + `}`},
		{"id a number", `{"type":"req","id":1,"method":"connect",` + right + `}`},
		{"no type", `{"id":"1","method":"connect",` + right + `}`},
		{"params a list", `{"type":"req","id":"1","method":"connect","params":[]}`},
		{"a list", `[]`},
		{"a number", `7`},
		{"a text", `"connect"`},
		{"a pong", `{"type":"pong","ts":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := w.open("demo")
			s.t = t
			s.send(c.frame)
			s.wantClosed(clawket.ClosePolicy, clawket.ReasonUnauthorized)
		})
	}
	if len(w.d.called()) != 0 {
		t.Errorf("the dialect was called: %v", w.d.called())
	}
	t.Run("unreadable text leaves the socket open", func(t *testing.T) {
		s := w.open("demo")
		for _, text := range []string{"null", " null ", "{", "", "{}x"} {
			s.send(text)
			if r := s.read(); r.ID != "" || r.OK || r.Error == nil || r.Type != clawket.TypeResponse {
				t.Errorf("%q answered %+v", text, r)
			}
		}
		if r := s.ask("connect", `{"token":"`+token("a")+`"}`); !r.OK || string(r.Payload) != `{"backend":"demo"}` {
			t.Errorf("connect answered %+v", r)
		}
	})
	t.Run("failed health leaves the socket authenticated", func(t *testing.T) {
		w.d.healthy = codes.New(codes.RuntimeUnavailable)
		defer func() { w.d.healthy = nil }()
		s := w.open("demo")
		if r := s.ask("connect", `{"token":"`+token("a")+`","controlOnly":true}`); r.OK {
			t.Error("connect succeeded")
		}
		if r := s.ask("echo", `{"a":1}`); !r.OK {
			t.Error("the socket is not authenticated")
		}
	})
}

func TestCase5SeventeenthRequest(t *testing.T) {
	w := start(t, nil)
	s := w.connect("a")
	for range clawket.MaxRequests {
		s.request("hold", "{}")
	}
	for range clawket.MaxRequests {
		<-w.d.held
	}
	other := w.connect("a") // another socket of the same phone has a bound of its own
	if r := other.ask("echo", `{}`); !r.OK {
		t.Error("another socket is affected")
	}
	s.request("echo", `{}`)
	s.wantClosed(clawket.ClosePolicy, clawket.ReasonTooMany)
	close(w.d.release)

	again := w.connect("a")
	for range 3 * clawket.MaxRequests { // answered ones do not count
		if r := again.ask("echo", `{}`); !r.OK {
			t.Fatal(r.Error)
		}
	}
}

func TestCase6FrameLimits(t *testing.T) {
	w := start(t, nil)
	frame := func(size int) string {
		head, tail := `{"type":"req","id":"x","method":"echo","params":{"p":"`, `"}}`
		return head + strings.Repeat("a", size-len(head)-len(tail)) + tail
	}
	t.Run("8 MiB in and out", func(t *testing.T) {
		s := w.connect("a")
		s.send(frame(clawket.MaxFrame))
		// The answer repeats the params and adds a shorter head.
		if r := s.read(); !r.OK {
			t.Errorf("answered %+v", r.Error)
		}
	})
	t.Run("8 MiB and one byte in", func(t *testing.T) {
		s := w.connect("a")
		s.ws.Write(context.Background(), websocket.MessageText, []byte(frame(clawket.MaxFrame+1)))
		s.wantClosed(clawket.CloseTooBig, clawket.ReasonFrameTooLarge)
	})
	t.Run("result above 8 MiB", func(t *testing.T) {
		w.d.big = clawket.MaxFrame
		s := w.connect("a")
		s.request("big", "{}")
		s.wantClosed(clawket.CloseTooBig, clawket.ReasonFrameTooLarge)
	})
	t.Run("event above 8 MiB is left out", func(t *testing.T) {
		s := w.connect("a")
		w.d.broadcast([]byte(`{"type":"event","p":"` + strings.Repeat("x", clawket.MaxFrame) + `"}`))
		w.d.broadcast([]byte(`{"type":"event","event":"small"}`))
		if e := s.read(); e.Event != "small" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("invalid UTF-8", func(t *testing.T) {
		s := w.connect("a")
		s.send("{\"type\":\"req\",\"id\":\"1\",\"method\":\"echo\",\"params\":{\"p\":\"\xff\"}}")
		s.wantClosed(clawket.CloseInvalidText, clawket.ReasonFrameInvalid)
	})
	t.Run("binary frame", func(t *testing.T) {
		s := w.connect("a")
		s.ws.Write(context.Background(), websocket.MessageBinary, []byte("{}"))
		s.wantClosed(clawket.CloseUnsupported, clawket.ReasonFrameInvalid)
	})
}

func TestCase8NativeTextNeverReachesAPhone(t *testing.T) {
	w := start(t, nil)
	s := w.connect("a")
	r := s.ask("native", "{}")
	if r.OK || r.Error.Code != "demo_error" || strings.Contains(r.Error.Message, "denied") || strings.Contains(r.Error.Message, "/") {
		t.Errorf("answered %+v", r.Error)
	}
}

func TestMalformedFramesOfAnAuthenticatedPhone(t *testing.T) {
	w := start(t, nil)
	s := w.connect("a")
	for _, c := range []struct{ name, frame, id string }{
		{"malformed JSON", `{"type":"req",`, ""},
		{"unknown type", `{"type":"what","id":"i1"}`, "i1"},
		{"method a number", `{"type":"req","id":"i2","method":5}`, "i2"},
		{"params a text", `{"type":"req","id":"i3","method":"echo","params":"x"}`, "i3"},
		{"params null", `{"type":"req","id":"i4","method":"echo","params":null}`, "i4"},
		{"unknown method", `{"type":"req","id":"i5","method":"nope"}`, "i5"},
		{"bridge.stop", `{"type":"req","id":"i6","method":"bridge.stop"}`, "i6"},
		{"a panic inside", `{"type":"req","id":"i7","method":"panic"}`, "i7"},
		{"over-long id", `{"type":"req","id":"` + strings.Repeat("x", 201) + `","method":"echo"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.send(c.frame)
			if r := s.read(); r.OK || r.ID != c.id || r.Error == nil || r.Error.Code != "demo_error" {
				t.Errorf("answered %+v", r)
			}
		})
	}
	s.send(`{"type":"pong","ts":1}`)
	if r := s.ask("null", "{}"); !r.OK || r.Payload != nil {
		t.Errorf("null result answered %+v", r)
	}
}

func TestRevokedPhoneLosesItsSocketsWithinASecond(t *testing.T) {
	rules.Covers(t, "FAULT-14")
	w := start(t, nil)
	a1, a2, b := w.connect("a"), w.connect("a"), w.connect("b")
	w.auth.mu.Lock()
	w.auth.revoked["a"] = true
	w.auth.mu.Unlock()
	began := time.Now()
	if n := w.l.Disconnect("a"); n != 2 {
		t.Errorf("%d sockets ended, want 2", n)
	}
	a1.wantClosed(clawket.ClosePolicy, clawket.ReasonUnauthorized)
	a2.wantClosed(clawket.ClosePolicy, clawket.ReasonUnauthorized)
	if d := time.Since(began); d > time.Second {
		t.Errorf("took %v", d)
	}
	again := w.open("demo")
	again.request("connect", `{"token":"`+token("a")+`"}`)
	again.wantClosed(clawket.ClosePolicy, clawket.ReasonUnauthorized)
	if r := b.ask("echo", "{}"); !r.OK {
		t.Error("the other phone is affected")
	}
}

func TestStopTellsPhonesAndWaitsForRequests(t *testing.T) {
	w := start(t, nil)
	s := w.connect("a")
	w.stop()
	s.wantClosed(clawket.CloseGoingAway, clawket.ReasonHostRestarting)
}

func TestListenFailedHasItsCode(t *testing.T) {
	w := start(t, nil)
	_, err := New(Options{Listen: w.addr, Auth: w.auth})
	if codes.Of(err) != codes.ListenFailed {
		t.Errorf("got %v", err)
	}
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatal("never happened")
		}
		pause := time.NewTimer(2 * time.Millisecond)
		<-pause.C
	}
}
