// Package modeltest is a scripted fake model: an HTTP server on the loopback interface that speaks the streaming
// Responses, Chat Completions and Messages APIs and answers every prompt from a script, so that real agent programs
// can be driven without an account, a network or chance. Without a script it echoes the prompt.
//
// It knows nothing of any runtime, of the plugin contract or of the host, and imports only the standard library.
// A Server is safe for concurrent use; each request is answered on its own goroutine by net/http.
package modeltest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// maxBody bounds a request body: six images of 5 MiB in base64, and room.
	maxBody = 64 << 20
	// maxRecorded bounds the requests kept; the oldest go first. Counts are kept for all.
	maxRecorded = 4096
)

// Options configure a Server; the zero value echoes.
type Options struct {
	// Listen is the address, by default a free port of 127.0.0.1.
	Listen string
	// Scripts are tried in order.
	Scripts []Script
	// Default answers prompts that no script matches; nil is Echo.
	Default func(prompt string) []Step
	// Observe is called with each finished request, from the goroutine that served it; it may be nil.
	Observe func(Request)
	// Log takes faults; nil discards.
	Log *slog.Logger
}

// Server is a running fake model.
type Server struct {
	opts     Options
	http     *http.Server
	listener net.Listener
	serving  sync.WaitGroup

	mu       sync.Mutex
	scripts  []*boundScript
	bound    map[string][]Step // the script in use for a prompt, for the replies after its tools
	requests []*Request
	counts   map[string]int
	gates    map[string]*gate
	changed  chan struct{} // closed and replaced at each change
	nextID   int
}

type boundScript struct {
	Script
	used bool
}

type gate struct {
	reached  int
	released int
}

// New starts a server on the loopback interface. Like httptest it panics when there is no port to be had.
func New(opts Options) *Server {
	s, err := Open(opts)
	if err != nil {
		panic("modeltest: " + err.Error())
	}
	return s
}

// Open starts a server.
func Open(opts Options) (*Server, error) {
	if opts.Listen == "" {
		opts.Listen = "127.0.0.1:0"
	}
	if opts.Default == nil {
		opts.Default = Echo
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	l, err := net.Listen("tcp", opts.Listen)
	if err != nil {
		return nil, err
	}
	s := &Server{opts: opts, listener: l, bound: map[string][]Step{}, counts: map[string]int{}, gates: map[string]*gate{}, changed: make(chan struct{})}
	s.Add(opts.Scripts...)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/responses", s.serve("responses"))
	mux.HandleFunc("POST /v1/chat/completions", s.serve("chat"))
	mux.HandleFunc("POST /v1/messages", s.serve("messages"))
	mux.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, object{"input_tokens": 10})
	})
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, object{"object": "list", "data": []object{{"id": "fake", "object": "model", "owned_by": "modeltest"}}})
	})
	mux.HandleFunc("POST /release", func(w http.ResponseWriter, r *http.Request) {
		s.Release(r.URL.Query().Get("gate"))
		w.WriteHeader(http.StatusNoContent)
	})
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(opts.Log.Handler(), slog.LevelDebug)}
	s.serving.Go(func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			opts.Log.Error("serving ended", "err", err)
		}
	})
	return s, nil
}

// URL is the base without a path: http://127.0.0.1:PORT. Responses clients want URL()+"/v1".
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Close breaks all connections and ends the server.
func (s *Server) Close() {
	if err := s.http.Close(); err != nil {
		s.opts.Log.Debug("close", "err", err)
	}
	s.serving.Wait()
}

// Add puts scripts at the end of the list.
func (s *Server) Add(scripts ...Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sc := range scripts {
		s.scripts = append(s.scripts, &boundScript{Script: sc})
	}
}

// Release opens a gate for one request that waits at it, or for the next that comes.
func (s *Server) Release(name string) {
	s.change(func() { s.gate(name).released++ })
}

// Count is the number of requests whose last element was this prompt: how often the model was asked it. Requests that
// bring tool outputs are not counted, repeated attempts are.
func (s *Server) Count(prompt string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[prompt]
}

// Requests are the recorded requests, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Request, len(s.requests))
	for i, r := range s.requests {
		list[i] = *r
	}
	return list
}

// WaitRequest waits until the prompt was asked.
func (s *Server) WaitRequest(ctx context.Context, prompt string) error {
	return s.wait(ctx, func() bool { return s.counts[prompt] > 0 })
}

// WaitGate waits until n requests have come to the gate, counted from the start.
func (s *Server) WaitGate(ctx context.Context, name string, n int) error {
	return s.wait(ctx, func() bool { return s.gate(name).reached >= n })
}

// WaitClosed waits until a client closed while the prompt was answered.
func (s *Server) WaitClosed(ctx context.Context, prompt string) error {
	return s.wait(ctx, func() bool {
		for _, r := range s.requests {
			if r.Closed && r.Prompt == prompt {
				return true
			}
		}
		return false
	})
}

func (s *Server) wait(ctx context.Context, ok func() bool) error {
	for {
		s.mu.Lock()
		if ok() {
			s.mu.Unlock()
			return nil
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// change runs f under the lock and wakes everything that waits.
func (s *Server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// gate needs the lock.
func (s *Server) gate(name string) *gate {
	g := s.gates[name]
	if g == nil {
		g = &gate{}
		s.gates[name] = g
	}
	return g
}

// record notes a request and chooses its steps.
func (s *Server) record(r *Request) (steps []Step) {
	s.change(func() {
		s.requests = append(s.requests, r)
		if len(s.requests) > maxRecorded {
			s.requests = s.requests[1:]
		}
		if r.New {
			s.counts[r.Prompt]++
			s.bound[r.Prompt] = s.choose(r.Prompt)
		}
		whole, ok := s.bound[r.Prompt]
		if !ok {
			whole = s.choose(r.Prompt)
		}
		steps = round(whole, r.Round)
	})
	return steps
}

// choose needs the lock.
func (s *Server) choose(prompt string) []Step {
	for _, sc := range s.scripts {
		if !sc.used && contains(prompt, sc.Match) {
			sc.used = sc.Once
			return sc.Steps
		}
	}
	return s.opts.Default(prompt)
}

// id makes an id that no other item of this server has.
func (s *Server) id(prefix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextID++
	return prefix + "_" + itoa(s.nextID)
}

func (s *Server) serve(api string) http.HandlerFunc {
	return func(w http.ResponseWriter, hr *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, hr.Body, maxBody))
		if err != nil {
			writeJSON(w, http.StatusRequestEntityTooLarge, object{"error": object{"message": "body too large"}})
			return
		}
		r, err := parse(api, body)
		if err != nil {
			writeJSON(w, http.StatusBadRequest, object{"error": object{"message": err.Error()}})
			return
		}
		r.Header = hr.Header.Clone()
		steps := s.record(r)
		defer func() {
			s.change(func() { r.Closed = r.Closed || hr.Context().Err() != nil })
			if s.opts.Observe != nil {
				s.mu.Lock()
				seen := *r
				s.mu.Unlock()
				s.opts.Observe(seen)
			}
		}()
		s.play(hr.Context(), newReply(s, api, r, w), steps)
	}
}

// play does the steps. A broken connection ends it quietly.
func (s *Server) play(ctx context.Context, out *reply, steps []Step) {
	for _, st := range steps {
		switch st.kind {
		case kindError:
			out.refuse(st.status, st.input)
			return
		case kindFailed:
			out.fail(st.name, st.input)
			return
		case kindCut:
			out.flush()
			panic(http.ErrAbortHandler)
		case kindHang:
			out.flush()
			<-ctx.Done()
			return
		case kindDelay:
			out.flush()
			t := time.NewTimer(st.wait)
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				return
			}
		case kindGate:
			out.flush()
			if s.pass(ctx, st.name) != nil {
				return
			}
		default:
			out.step(st)
		}
		if ctx.Err() != nil {
			return
		}
	}
	out.finish()
}

// pass waits at a gate.
func (s *Server) pass(ctx context.Context, name string) error {
	s.change(func() { s.gate(name).reached++ })
	return s.wait(ctx, func() bool {
		g := s.gate(name)
		if g.released == 0 {
			return false
		}
		g.released--
		return true
	})
}
