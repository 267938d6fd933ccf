package phone

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/jsonframe"
)

// pipeListener is a network inside one process, so that a bubble's clock can move while everybody waits for frames.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (l *pipeListener) Dial(context.Context) (net.Conn, error) {
	mine, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return mine, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func bubble(t *testing.T, change func(*Options), test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		pipe := newPipeListener()
		w := start(t, func(o *Options) {
			o.Listener = pipe
			if change != nil {
				change(o)
			}
		})
		w.dial = pipe.Dial
		test(t, w)
	})
}

func TestCase4NoFrameForTenSeconds(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		s := w.open("demo")
		began := time.Now()
		s.wantClosed(clawket.ClosePolicy, clawket.ReasonAuthRequired)
		if d := time.Since(began); d != clawket.AuthDeadline {
			t.Errorf("closed after %v", d)
		}
	})
}

// An unreadable frame is answered, but it does not prolong the deadline.
func TestDeadlineRunsOnAfterUnreadableFrames(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		s := w.open("demo")
		began := time.Now()
		<-time.After(9 * time.Second)
		s.send("null")
		s.read()
		s.wantClosed(clawket.ClosePolicy, clawket.ReasonAuthRequired)
		if d := time.Since(began); d != clawket.AuthDeadline {
			t.Errorf("closed after %v", d)
		}
	})
}

func TestCase7Heartbeat(t *testing.T) {
	rules.Covers(t, "SYNC-08")
	bubble(t, nil, func(t *testing.T, w *world) {
		s := w.connect("a")
		began := time.Now()
		for i := 1; i <= 3; i++ {
			tick := s.read() // the client answers pings while it reads
			if tick.Type != clawket.TypeTick || tick.TS != time.Now().UnixMilli() {
				t.Fatalf("got %+v", tick)
			}
			if d := time.Since(began); d != time.Duration(i)*clawket.Heartbeat {
				t.Errorf("tick %d after %v", i, d)
			}
		}
	})
	bubble(t, nil, func(t *testing.T, w *world) {
		silent := w.connect("a") // reads nothing from now on, so it sends no pong
		other := w.connect("b")
		for range 2 {
			other.read()
		}
		synctest.Wait()
		if n := w.l.Sockets(); n != 1 {
			t.Errorf("%d sockets open after a missed pong, want 1", n)
		}
		if code, _ := silent.closed(); code != -1 {
			t.Errorf("the silent one got close code %d", code)
		}
	})
}

func TestSlowReaderOfEventsIsCutAndOthersGoOn(t *testing.T) {
	bubble(t, func(o *Options) { o.MaxQueued = 1000 }, func(t *testing.T, w *world) {
		slow, fast := w.connect("a"), w.connect("b")
		event := []byte(`{"type":"event","event":"` + strings.Repeat("x", 400) + `"}`)
		got := 0
		for range 8 {
			w.d.broadcast(event)
			if fast.read().Type == clawket.TypeEvent {
				got++
			}
		}
		if got != 8 {
			t.Errorf("the fast reader got %d events", got)
		}
		synctest.Wait()
		if n := w.l.Sockets(); n != 1 {
			t.Errorf("%d sockets open, want 1", n)
		}
		_ = slow
	})
}

func TestSlowReaderOfAnswersIsClosed(t *testing.T) {
	bubble(t, func(o *Options) { o.MaxQueued = 1000 }, func(t *testing.T, w *world) {
		s := w.connect("a")
		for range 3 {
			s.request("echo", `{"p":"`+strings.Repeat("x", 900)+`"}`)
		}
		synctest.Wait()
		s.wantClosed(clawket.CloseTooBig, clawket.ReasonFrameTooLarge)
	})
}

// Only the newest of several snapshots that wait for a slow reader is sent, and never out of order.
func TestWaitingSnapshotsAreReplaced(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		s := w.connect("a")
		send := func(text, key string) {
			frame, _ := jsonframe.Marshal(clawket.Event{Type: clawket.TypeEvent, Event: text})
			w.d.mu.Lock()
			defer w.d.mu.Unlock()
			for p := range w.d.peers {
				p.Event(frame, key)
			}
		}
		send("being written", "")
		synctest.Wait()
		for _, e := range []struct{ text, key string }{{"a", "run"}, {"ab", "run"}, {"tool", ""}, {"abc", "run"}, {"other", "run2"}, {"abcd", "run"}, {"abcde", "run"}} {
			send(e.text, e.key)
		}
		var got []string
		for range 6 {
			got = append(got, s.read().Event)
		}
		if want := "being written ab tool abc other abcde"; strings.Join(got, " ") != want {
			t.Errorf("got %q", got)
		}
	})
}

// A request goes on when its phone disconnects: nothing a phone began is taken back by losing the connection.
func TestRequestOutlivesItsSocket(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		s := w.connect("a")
		s.request("hold", "{}")
		<-w.d.held
		s.ws.CloseNow()
		synctest.Wait()
		if n := w.l.Sockets(); n != 0 {
			t.Errorf("%d sockets open", n)
		}
		if n := w.l.admission.InFlight(); n != 1 {
			t.Errorf("%d requests in flight, want 1", n)
		}
		close(w.d.release)
		synctest.Wait()
		if n := w.l.admission.InFlight(); n != 0 {
			t.Errorf("%d requests in flight, want none", n)
		}
	})
}

// A phone that reconnects again and again cannot pile up requests, and others get an answer meanwhile.
func TestAbandonedRequestsAreBounded(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		for range maxInFlight / clawket.MaxRequests {
			s := w.connect("a")
			for range clawket.MaxRequests {
				s.request("hold", "{}")
			}
			for range clawket.MaxRequests {
				<-w.d.held
			}
			s.ws.CloseNow()
			synctest.Wait()
		}
		s := w.open("demo")
		r := s.ask("connect", `{"token":"`+token("b")+`"}`)
		if r.OK || r.Error.Message != "The computer is busy. Try again in a moment." {
			t.Errorf("answered %+v", r)
		}
		close(w.d.release)
		synctest.Wait()
		if r := s.ask("echo", "{}"); !r.OK {
			t.Errorf("answered %+v", r)
		}
	})
}

// A phone that ignores the close frame is cut within a second all the same.
func TestRevokedPhoneThatDoesNotReadIsCut(t *testing.T) {
	rules.Covers(t, "FAULT-14")
	bubble(t, nil, func(t *testing.T, w *world) {
		w.connect("a")
		w.l.Disconnect("a")
		<-time.After(time.Second)
		synctest.Wait()
		if n := w.l.Sockets(); n != 0 {
			t.Errorf("%d sockets open", n)
		}
	})
}
