package agent

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/golden"
)

// handler answers one call of the app server.
type handler func(method string, params json.RawMessage) golden.Answer

// fakeClient is a client whose server is a function; calls records what was asked.
func fakeClient(t *testing.T, h handler) (*appserver.Client, *calls) {
	t.Helper()
	toServer, serverOut := io.Pipe()
	fromServer, clientOut := io.Pipe()
	seen := &calls{}
	client := appserver.New(appserver.Options{
		In: toServer, Out: clientOut,
		OnNotification: func(appserver.Notification) {}, OnRequest: func(appserver.ServerRequest) {},
	})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer serverOut.Close()
		s := golden.Server{Other: func(method string, params json.RawMessage) golden.Answer {
			seen.add(method, params)
			return h(method, params)
		}}
		if err := s.Play(nil, fromServer, serverOut); err != nil {
			t.Errorf("fake server: %v", err)
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	wg.Go(func() { _ = client.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return client, seen
}

type call struct {
	method string
	params json.RawMessage
}

type calls struct {
	mu   sync.Mutex
	list []call
}

func (c *calls) add(method string, params json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, call{method, params})
}

// count is how often a method was called with parameters that contain text.
func (c *calls) count(method, text string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, x := range c.list {
		if x.method == method && containsText(x.params, text) {
			n++
		}
	}
	return n
}

func containsText(b []byte, text string) bool {
	for i := 0; i+len(text) <= len(b); i++ {
		if string(b[i:i+len(text)]) == text {
			return true
		}
	}
	return false
}

// fakeLibrary is a library over a fake server. home and project may be empty.
func fakeLibrary(t *testing.T, h handler, home, project string) (*library, *calls, *clock) {
	t.Helper()
	client, seen := fakeClient(t, h)
	now := &clock{at: time.Unix(1_800_000_000, 0)}
	return newLibrary(libraryOptions{
		client:  func(context.Context) (*appserver.Client, error) { return client, nil },
		seq:     func() uint64 { return 7 },
		home:    func() string { return home },
		project: func() string { return project },
		now:     now.now,
	}), seen, now
}

type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func ok(v any) golden.Answer { return golden.Answer{Result: v} }

func fail(code int, message string) golden.Answer { return golden.Answer{Code: code, Message: message} }

func params[T any](t *testing.T, raw json.RawMessage) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Errorf("parameters: %v", err)
	}
	return v
}

// recordedAnswers answers each call with the recorded answers to its method, in order.
func recordedAnswers(t *testing.T, file string) handler {
	t.Helper()
	frames, err := golden.Load("../testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	method := map[string]string{}
	queue := map[string][]golden.Message{}
	for _, f := range frames {
		m := f.Parse()
		if f.Dir == golden.ToServer && m.IsRequest() {
			method[string(m.ID)] = m.Method
		}
		if f.Dir == golden.ToClient && m.IsAnswer() {
			queue[method[string(m.ID)]] = append(queue[method[string(m.ID)]], m)
		}
	}
	return func(name string, _ json.RawMessage) golden.Answer {
		if len(queue[name]) == 0 {
			return fail(-32600, "not recorded")
		}
		m := queue[name][0]
		queue[name] = queue[name][1:]
		if m.Error != nil {
			var e appserver.RPCError
			_ = json.Unmarshal(m.Error, &e)
			return fail(e.Code, e.Message)
		}
		return ok(m.Result)
	}
}
