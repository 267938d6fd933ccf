package appserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/openphone-host/openphone/protocol/golden"
)

// wire is a client between two pipes.
type wire struct {
	t       *testing.T
	client  *Client
	lines   *bufio.Scanner // what the client writes
	server  io.Writer      // what it reads
	notes   chan Notification
	asked   chan ServerRequest
	pending map[string]chan outcome // by recorded id
	ids     map[string]int64        // recorded id: the client's
}

type outcome struct {
	result json.RawMessage
	err    error
}

func newWire(t *testing.T) *wire {
	t.Helper()
	fromServer, server := io.Pipe()
	fromClient, toServer := io.Pipe()
	w := &wire{
		t: t, server: server, lines: bufio.NewScanner(fromClient), notes: make(chan Notification, 1), asked: make(chan ServerRequest, 1),
		pending: map[string]chan outcome{}, ids: map[string]int64{},
	}
	w.lines.Buffer(nil, maxLineOut)
	w.client = New(Options{In: fromServer, Out: toServer, OnNotification: func(n Notification) { w.notes <- n }, OnRequest: func(r ServerRequest) { w.asked <- r }})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = w.client.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		_ = server.Close()
		wg.Wait()
	})
	return w
}

// sent reads one line of the client and compares it with a recorded message, but for the id.
func (w *wire) sent(want json.RawMessage, method bool) int64 {
	w.t.Helper()
	if !w.lines.Scan() {
		w.t.Fatalf("nothing was written for %s", want)
	}
	got, recorded := fields(w.t, w.lines.Bytes()), fields(w.t, want)
	var id int64
	if method {
		if err := json.Unmarshal(got["id"], &id); err != nil {
			w.t.Fatalf("id %s: %v", got["id"], err)
		}
		delete(got, "id")
		delete(recorded, "id")
		delete(recorded, "jsonrpc") // accepted by the server, written by no client of ours
		if recorded["params"] == nil {
			delete(got, "params") // the client writes empty ones where the recorded client wrote none
		}
	}
	w.same("written", got, recorded)
	return id
}

func (w *wire) same(what string, got, want map[string]json.RawMessage) {
	w.t.Helper()
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if !golden.Same(a, b) {
		w.t.Errorf("%s\n got %.500s\nwant %.500s", what, a, b)
	}
}

func fields(t *testing.T, b []byte) map[string]json.RawMessage {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatalf("%.200s: %v", b, err)
	}
	return m
}

// play passes one recorded frame through the client and back out.
func (w *wire) play(f golden.Frame) {
	w.t.Helper()
	m := f.Parse()
	ctx := w.t.Context()
	switch {
	case f.Dir == golden.ToServer && m.IsRequest():
		ch := make(chan outcome, 1)
		w.pending[string(m.ID)] = ch
		go func() {
			var result json.RawMessage
			var params any
			if m.Params != nil {
				params = m.Params
			}
			err := w.client.call(ctx, m.Method, params, &result)
			ch <- outcome{result, err}
		}()
		w.ids[string(m.ID)] = w.sent(f.Msg, true)
	case f.Dir == golden.ToServer && m.IsAnswer() && m.Error == nil:
		done := make(chan error, 1)
		go func() { done <- w.client.Respond(ctx, m.ID, m.Result) }()
		w.sent(f.Msg, false)
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	case f.Dir == golden.ToClient && m.IsRequest():
		w.receive(f.Msg)
		r := <-w.asked
		w.same("server request", map[string]json.RawMessage{"id": r.ID, "method": quoted(r.Method), "params": r.Params}, fields(w.t, f.Msg))
	case f.Dir == golden.ToClient && m.IsAnswer():
		w.answer(f, m)
	case f.Dir == golden.ToClient && m.Method != "":
		w.receive(f.Msg)
		n := <-w.notes
		want := fields(w.t, f.Msg)
		delete(want, "emittedAtMs") // the server's clock on the envelope, which nobody uses
		w.same("notification", map[string]json.RawMessage{"method": quoted(n.Method), "params": n.Params}, want)
	}
}

func (w *wire) receive(msg json.RawMessage) {
	w.t.Helper()
	if _, err := w.server.Write(append(append([]byte(nil), msg...), '\n')); err != nil {
		w.t.Fatal(err)
	}
}

func (w *wire) answer(f golden.Frame, m golden.Message) {
	w.t.Helper()
	ch, ok := w.pending[string(m.ID)]
	if !ok {
		return // the question was not recorded
	}
	msg := fields(w.t, f.Msg)
	msg["id"], _ = json.Marshal(w.ids[string(m.ID)])
	b, _ := json.Marshal(msg)
	w.receive(b)
	got := <-ch
	delete(w.pending, string(m.ID))
	if m.Error == nil {
		if got.err != nil || !golden.Same(got.result, m.Result) {
			w.t.Errorf("answer %.500s, %v\nwant %.500s", got.result, got.err, m.Result)
		}
		return
	}
	var rpc *RPCError
	if !errors.As(got.err, &rpc) {
		w.t.Fatalf("error answer became %v", got.err)
	}
	b, _ = json.Marshal(rpc)
	if !golden.Same(b, m.Error) {
		w.t.Errorf("error %s\nwant %s", b, m.Error)
	}
	if strings.Contains(rpc.Error(), rpc.Message) {
		w.t.Errorf("the error shows the runtime's text: %s", rpc.Error())
	}
}

func quoted(s string) json.RawMessage { b, _ := json.Marshal(s); return b }

// All recordings go through the connection without a loss: what the client is told and what it writes is, member by
// member and digit by digit, what was recorded.
func TestRecordingsAreLossless(t *testing.T) {
	files, err := filepath.Glob("../testdata/[0-9]*.jsonl")
	if err != nil || len(files) != 60 {
		t.Fatalf("%d recordings, want 60 (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			frames, err := golden.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			w := newWire(t)
			for _, f := range frames {
				w.play(f)
			}
		})
	}
}
