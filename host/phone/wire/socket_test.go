package wire

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/openphone-host/openphone/protocol/clawket"
)

// keeper gives a test the connection under a WebSocket.
type keeper struct {
	http.ResponseWriter
	conn net.Conn
}

func (k *keeper) Unwrap() http.ResponseWriter { return k.ResponseWriter }

// pair makes a Socket, not yet running, and its client. run starts it.
func pair(t *testing.T, o Options) (s *Socket, client *websocket.Conn, run func()) {
	t.Helper()
	made, ended := make(chan *Socket), make(chan struct{})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k := &keeper{ResponseWriter: w}
		k.conn = r.Context().Value(connKey{}).(net.Conn)
		ws, err := websocket.Accept(k, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		o.WebSocket, o.Raw = ws, k.conn
		made <- New(o)
		<-ended
	}))
	srv.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	srv.Start()
	t.Cleanup(srv.Close)
	client, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(srv.URL, "http"), nil)
	if err == nil {
		client.SetReadLimit(-1)
		s = <-made
	} else {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		s.Terminate()
		wg.Wait()
		close(ended)
		client.CloseNow()
	})
	return s, client, func() { wg.Go(func() { s.Run(t.Context()) }) }
}

type connKey struct{}

// rest reads until the end: the frames, and the close code, -1 when the connection was cut.
func rest(t *testing.T, client *websocket.Conn) (frames []string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for {
		_, b, err := client.Read(ctx)
		var ce websocket.CloseError
		switch {
		case errors.As(err, &ce):
			return frames, int(ce.Code)
		case ctx.Err() != nil:
			t.Fatal("the socket stays open")
		case err != nil:
			return frames, -1
		}
		frames = append(frames, string(b))
	}
}

func TestCloseComesAfterWhatIsQueued(t *testing.T) {
	s, client, run := pair(t, Options{})
	s.Respond([]byte("one"))
	s.Event([]byte("two"), "")
	s.Close(clawket.ClosePolicy, "why")
	s.Respond([]byte("never"))
	run()
	if frames, code := rest(t, client); strings.Join(frames, " ") != "one two" || code != clawket.ClosePolicy {
		t.Errorf("got %q, closed with %d", frames, code)
	}
}

func TestTooLargeAnswerDiscardsWhatIsQueued(t *testing.T) {
	s, client, run := pair(t, Options{MaxFrame: 10})
	s.Event([]byte("waiting"), "")
	s.Respond([]byte("much too large"))
	run()
	if frames, code := rest(t, client); len(frames) != 0 || code != clawket.CloseTooBig {
		t.Errorf("got %q, closed with %d", frames, code)
	}
}

func TestTooLargeEventIsLeftOut(t *testing.T) {
	s, client, run := pair(t, Options{MaxFrame: 10})
	s.Event([]byte("much too large"), "")
	s.Event([]byte("small"), "")
	s.Close(clawket.CloseNormal, "")
	run()
	if frames, code := rest(t, client); strings.Join(frames, " ") != "small" || code != clawket.CloseNormal {
		t.Errorf("got %q, closed with %d", frames, code)
	}
}

func TestFullQueueEndsTheSocket(t *testing.T) {
	s, client, run := pair(t, Options{MaxQueued: 10})
	for range 3 {
		s.Event([]byte("12345"), "")
	}
	run()
	if frames, code := rest(t, client); code != -1 {
		t.Errorf("got %q, closed with %d; a slow reader of events is cut", frames, code)
	}
}

// A replaced event does not count twice.
func TestReplacedEventsTakeNoRoom(t *testing.T) {
	s, client, run := pair(t, Options{MaxQueued: 10})
	for range 10 {
		s.Event([]byte("12345678"), "run")
	}
	s.Close(clawket.CloseNormal, "")
	run()
	if frames, code := rest(t, client); len(frames) != 1 || code != clawket.CloseNormal {
		t.Errorf("got %q, closed with %d", frames, code)
	}
}

func TestReadLimits(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  websocket.MessageType
		frame string
		code  int
	}{
		{"too large", websocket.MessageText, "12345678901", clawket.CloseTooBig},
		{"binary", websocket.MessageBinary, "{}", clawket.CloseUnsupported},
		{"not UTF-8", websocket.MessageText, "\xff", clawket.CloseInvalidText},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, client, run := pair(t, Options{MaxFrame: 10})
			run()
			if err := client.Write(t.Context(), websocket.MessageText, []byte("1234567890")); err != nil {
				t.Fatal(err)
			}
			if frame, err := s.Read(); err != nil || string(frame) != "1234567890" {
				t.Fatalf("at the limit: %q, %v", frame, err)
			}
			if err := client.Write(t.Context(), c.kind, []byte(c.frame)); err != nil {
				t.Fatal(err)
			}
			if frame, err := s.Read(); err == nil {
				t.Errorf("read %q", frame)
			}
			if _, code := rest(t, client); code != c.code {
				t.Errorf("closed with %d, want %d", code, c.code)
			}
		})
	}
}

func TestEndOfContextSaysGoodbye(t *testing.T) {
	s, client, _ := pair(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { s.Run(ctx) })
	cancel()
	if _, code := rest(t, client); code != clawket.CloseGoingAway {
		t.Errorf("closed with %d", code)
	}
	wg.Wait()
	select {
	case <-s.Ended():
	default:
		t.Error("Run returned before the end")
	}
}
