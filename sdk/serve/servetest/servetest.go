// Package servetest serves a runtime inside a test, over the real gRPC services on an in-memory connection: everything of
// a plugin but its process. It must not know any runtime.
//
// A Harness is safe for concurrent use; it ends with its test.
package servetest

import (
	"context"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/sdk/protomap"
	"github.com/openphone-host/openphone/sdk/runtime"
	"github.com/openphone-host/openphone/sdk/serve"
)

// Harness is a served runtime and its events.
type Harness struct {
	*serve.Client
	tb     testing.TB
	events chan runtime.Event
	once   sync.Once
	stop   func()
}

// New serves r, opens Watch and configures it with a fresh data directory. host may be nil.
func New(tb testing.TB, r runtime.Runtime, host runtime.Host) *Harness {
	tb.Helper()
	return NewIn(tb, r, host, tb.TempDir())
}

// NewIn is New with a data directory that may have been used before.
func NewIn(tb testing.TB, r runtime.Runtime, host runtime.Host, dir string) *Harness {
	tb.Helper()
	h := Bare(tb, r, host)
	h.Open()
	if _, err := h.Runtime.Configure(h.tb.Context(), &runtimev1.ConfigureRequest{InstanceId: "test", DataDir: dir, InstanceSecret: "0123456789abcdef0123456789abcdef"}); err != nil {
		tb.Fatalf("Configure: %v", err)
	}
	return h
}

// Bare serves r and asks it nothing.
func Bare(tb testing.TB, r runtime.Runtime, host runtime.Host) *Harness {
	tb.Helper()
	lis := bufconn.Listen(1 << 20)
	g := grpc.NewServer(serve.ServerOptions(nil)...)
	p := &serve.Plugin{Runtime: r, Host: host}
	if err := p.GRPCServer(nil, g); err != nil {
		tb.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = g.Serve(lis) })
	conn, err := grpc.NewClient("passthrough:///bufconn",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(serve.MaxMessage)))
	if err != nil {
		tb.Fatal(err)
	}
	c, err := p.GRPCClient(tb.Context(), nil, conn)
	if err != nil {
		tb.Fatal(err)
	}
	h := &Harness{Client: c.(*serve.Client), tb: tb, events: make(chan runtime.Event, 1<<16)}
	h.stop = func() {
		p.Stop()
		_ = conn.Close()
		g.Stop()
		wg.Wait()
	}
	tb.Cleanup(h.Close)
	return h
}

// Open starts to read events.
func (h *Harness) Open() {
	h.tb.Helper()
	w, err := h.Runtime.Watch(context.Background(), &runtimev1.WatchRequest{})
	if err != nil {
		h.tb.Fatalf("Watch: %v", err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(h.events)
		for {
			m, err := w.Recv()
			if err != nil {
				return
			}
			for _, e := range m.GetEvents() {
				h.events <- *protomap.FromEvent(e)
			}
		}
	})
}

// Close ends the runtime as the end of its process would.
func (h *Harness) Close() { h.once.Do(h.stop) }

// Next gives the next event; the test fails when ctx of the test ends before.
func (h *Harness) Next() runtime.Event {
	h.tb.Helper()
	select {
	case e, ok := <-h.events:
		if !ok {
			h.tb.Fatal("the event stream has ended")
		}
		return e
	case <-h.tb.Context().Done():
		h.tb.Fatal("no event")
	}
	return runtime.Event{}
}

// Until collects events up to and including the first that ok accepts.
func (h *Harness) Until(ok func(runtime.Event) bool) []runtime.Event {
	h.tb.Helper()
	var list []runtime.Event
	for {
		e := h.Next()
		list = append(list, e)
		if ok(e) {
			return list
		}
	}
}

// Ended is a condition for Until: the run has ended.
func Ended(runID string) func(runtime.Event) bool {
	return func(e runtime.Event) bool { return e.RunID == runID && e.RunEnded != nil }
}

// Send prepares and commits a prompt of text.
func (h *Harness) Send(ref runtime.SessionRef, runID, prompt string) (*runtimev1.CommitRunResponse, error) {
	ctx := h.tb.Context()
	if _, err := h.Conversations.PrepareRun(ctx, &runtimev1.PrepareRunRequest{
		Session: protomap.ToSessionRef(&ref), RunId: runID,
		Input: []*runtimev1.Part{{Content: &runtimev1.Part_Text{Text: prompt}}},
	}); err != nil {
		return nil, err
	}
	return h.Conversations.CommitRun(ctx, &runtimev1.CommitRunRequest{RunId: runID})
}

// Text joins the reply of a run from its chunks, as the host does.
func Text(events []runtime.Event, runID string) string {
	var order []string
	parts := map[string]string{}
	for _, e := range events {
		if e.RunID != runID || e.Text == nil {
			continue
		}
		if _, seen := parts[e.Text.PartID]; !seen {
			order = append(order, e.Text.PartID)
		}
		if e.Text.Replace {
			parts[e.Text.PartID] = e.Text.Text
		} else {
			parts[e.Text.PartID] += e.Text.Text
		}
	}
	var all string
	for _, id := range order {
		all += parts[id]
	}
	return all
}
