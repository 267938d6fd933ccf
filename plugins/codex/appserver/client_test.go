package appserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openphone-host/openphone/internal/rules"
)

// peer is the server's end of a client.
type peer struct {
	*Client
	lines *bufio.Reader  // what the client writes
	out   *io.PipeWriter // what the client reads
	log   *bytes.Buffer
	done  chan error

	mu    sync.Mutex
	notes []Notification
	asks  []ServerRequest
	more  chan struct{}
}

func newPeer(t *testing.T) *peer {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &peer{lines: bufio.NewReaderSize(inR, 1<<16), out: outW, log: &bytes.Buffer{}, done: make(chan error, 1), more: make(chan struct{}, 100)}
	p.Client = New(Options{
		In: outR, Out: inW, Log: slog.New(slog.NewTextHandler(p.log, nil)),
		OnNotification: func(n Notification) {
			p.mu.Lock()
			p.notes = append(p.notes, n)
			p.mu.Unlock()
			p.more <- struct{}{}
		},
		OnRequest: func(r ServerRequest) {
			p.mu.Lock()
			p.asks = append(p.asks, r)
			p.mu.Unlock()
			p.more <- struct{}{}
		},
	})
	var wg sync.WaitGroup
	wg.Go(func() { p.done <- p.Run(t.Context()) })
	t.Cleanup(func() {
		_ = outW.Close()
		_ = inR.Close()
		wg.Wait()
	})
	return p
}

func (p *peer) say(t *testing.T, s string) {
	t.Helper()
	if _, err := io.WriteString(p.out, s); err != nil {
		t.Error(err)
	}
}

func (p *peer) hear(t *testing.T) string {
	t.Helper()
	line, err := p.lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func TestServerRequestsAreAnsweredUnderTheirID(t *testing.T) {
	p := newPeer(t)
	p.say(t, `{"method":"item/x/requestApproval","id":0,"params":{}}`+"\n")
	<-p.more
	done := make(chan error, 1)
	go func() { done <- p.Respond(t.Context(), p.asks[0].ID, map[string]string{"decision": "accept"}) }()
	if got := p.hear(t); got != `{"id":0,"result":{"decision":"accept"}}`+"\n" {
		t.Errorf("answer %q", got)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	go func() { done <- p.Refuse(t.Context(), p.asks[0].ID) }()
	if got := p.hear(t); !strings.Contains(got, `"id":0`) || !strings.Contains(got, `-32601`) {
		t.Errorf("refusal %q", got)
	}
	<-done
}

func TestBadInput(t *testing.T) {
	rules.Covers(t, "CX-20")
	p := newPeer(t)
	secret := "/home/somebody/secret"
	for _, line := range []string{
		`{"method":"half`, `[1,2]`, `"text"`, `{"method":"` + secret + `"`, `{}`, "\xff\xfe", `{"id":"text","result":{}}`, `{"id":99,"result":{}}`, "",
	} {
		p.say(t, line+"\n")
	}
	p.say(t, `{"method":"un`)
	p.say(t, `known/thing","params":{"a":"é`[:len(`known/thing","params":{"a":"é`)-1])
	p.say(t, "\xa9\"}}\n")
	<-p.more
	if len(p.notes) != 1 || p.notes[0].Method != "unknown/thing" || string(p.notes[0].Params) != `{"a":"é"}` {
		t.Errorf("notifications %+v", p.notes)
	}
	_ = p.out.Close()
	if err := <-p.done; err != nil {
		t.Errorf("end of input: %v", err)
	}
	if s := p.log.String(); strings.Contains(s, secret) || !strings.Contains(s, "reason=frame_unreadable") || !strings.Contains(s, "bytes=") {
		t.Errorf("log %s", s)
	}
}

func TestOutcomes(t *testing.T) {
	rules.Covers(t, "CX-20")
	t.Run("refused", func(t *testing.T) {
		p := newPeer(t)
		done := make(chan error, 1)
		go func() { _, err := p.TurnStart(t.Context(), TurnParams{ThreadID: "t"}); done <- err }()
		p.hear(t)
		p.say(t, `{"id":1,"error":{"code":-32600,"message":"thread not found: t"}}`+"\n")
		err := <-done
		if !Rejected(err) || Classify(err) != RefusalNotLoaded || strings.Contains(err.Error(), "thread") {
			t.Errorf("%v", err)
		}
	})
	t.Run("connection lost", func(t *testing.T) {
		p := newPeer(t)
		done := make(chan error, 1)
		go func() { _, err := p.TurnStart(t.Context(), TurnParams{ThreadID: "t"}); done <- err }()
		p.hear(t)
		_ = p.out.Close()
		if err := <-done; Rejected(err) || !errors.Is(err, errUncertain) {
			t.Errorf("%v", err)
		}
		<-p.done
		if _, err := p.TurnStart(t.Context(), TurnParams{ThreadID: "t"}); !errors.Is(err, ErrNotSent) {
			t.Errorf("afterwards: %v", err)
		}
	})
	t.Run("caller gone before", func(t *testing.T) {
		p := newPeer(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.TurnStart(ctx, TurnParams{}); !errors.Is(err, ErrNotSent) {
			t.Errorf("%v", err)
		}
	})
	t.Run("too large", func(t *testing.T) {
		p := newPeer(t)
		_, err := p.TurnStart(t.Context(), TurnParams{Input: []UserInput{{Type: "text", Text: strings.Repeat("x", maxLineOut)}}})
		if !errors.Is(err, ErrNotSent) {
			t.Errorf("%v", err)
		}
	})
	t.Run("unreadable", func(t *testing.T) {
		p := newPeer(t)
		done := make(chan error, 1)
		go func() { _, err := p.TurnStart(t.Context(), TurnParams{}); done <- err }()
		p.hear(t)
		p.say(t, `{"id":1,"result":[]}`+"\n")
		if err := <-done; Rejected(err) || !errors.Is(err, ErrReply) {
			t.Errorf("%v", err)
		}
	})
}

func TestTimeoutIsUncertain(t *testing.T) {
	rules.Covers(t, "CX-20")
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		done := make(chan error, 1)
		start := time.Now()
		go func() { _, err := p.TurnStart(t.Context(), TurnParams{}); done <- err }()
		p.hear(t)
		err := <-done
		if Rejected(err) || !errors.Is(err, errUncertain) || time.Since(start) != callTimeout {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		p.say(t, `{"id":1,"result":{"turn":{"id":"x"}}}`+"\n") // too late: it settles nothing
		p.say(t, `{"method":"a","params":{}}`+"\n")
		<-p.more
		if s := p.log.String(); !strings.Contains(s, "reason=call_timeout") || !strings.Contains(s, "reason=answer_late") {
			t.Errorf("log %s", s)
		}
	})
}

func TestTooManyCalls(t *testing.T) {
	p := newPeer(t)
	var wg sync.WaitGroup
	for range maxPending {
		wg.Go(func() { _, _ = p.ThreadRead(t.Context(), "t") })
		p.hear(t)
	}
	if _, err := p.ThreadRead(t.Context(), "t"); !errors.Is(err, ErrNotSent) {
		t.Errorf("%v", err)
	}
	_ = p.out.Close()
	wg.Wait()
}

func TestLongLines(t *testing.T) {
	p := newPeer(t)
	long := strings.Repeat("x", 7<<20)
	p.say(t, `{"method":"m","params":{"a":"`+long+`"}}`+"\n")
	<-p.more
	if len(p.notes) != 1 || len(p.notes[0].Params) != len(long)+8 {
		t.Error("a long line was not read whole")
	}
	go func() {
		piece := strings.Repeat("y", 1<<20)
		for range 40 {
			if _, err := io.WriteString(p.out, piece); err != nil {
				return
			}
		}
	}()
	if err := <-p.done; !errors.Is(err, ErrFrame) {
		t.Errorf("a line over 32 MiB: %v", err)
	}
}

// A logger that breaks disturbs neither the call nor what comes after it.
func TestBrokenLogger(t *testing.T) {
	rules.Covers(t, "CX-20")
	p := newPeer(t)
	p.o.Log = slog.New(panicking{})
	done := make(chan error, 1)
	go func() { _, err := p.ThreadRead(t.Context(), "t"); done <- err }()
	p.hear(t)
	p.say(t, "not json\n"+`{"id":1,"result":{"thread":{"id":"t"}}}`+"\n")
	if err := <-done; err != nil {
		t.Error(err)
	}
	_ = p.out.Close()
	if err := <-p.done; err != nil {
		t.Error(err)
	}
}

type panicking struct{}

func (panicking) Enabled(context.Context, slog.Level) bool  { return true }
func (panicking) Handle(context.Context, slog.Record) error { panic("log") }
func (p panicking) WithAttrs([]slog.Attr) slog.Handler      { return p }
func (p panicking) WithGroup(string) slog.Handler           { return p }

func TestClassify(t *testing.T) {
	for _, tc := range []struct {
		code    int
		message string
		data    string
		want    Refusal
	}{
		{-32600, "thread 01a2 already has an active writer", "", RefusalActiveWriter},
		{-32600, "no rollout found for thread id 01a2", "", RefusalNoRollout},
		{-32600, "thread not loaded: 01a2", "", RefusalNotLoaded},
		{-32603, "failed to read thread: thread-store internal error: failed to read session metadata /a: rollout at /a is empty", "", RefusalNoRollout},
		{-32600, "session 01a2 is archived. Run `codex unarchive 01a2` to unarchive it first.", "", RefusalArchived},
		{-32601, "list_turns is not supported yet", "", RefusalEmptyHistory},
		{-32600, "thread 01a2 is not materialized yet; thread/turns/list is unavailable before first user message", "", RefusalEmptyHistory},
		{-32601, "method not found", "", RefusalOther},
		{-32600, "no active turn to steer", "", RefusalNoActiveTurn},
		{-32600, "expected active turn id `a` but found `b`", "", RefusalOtherTurn},
		{-32600, "expected active turn id a but found b", "", RefusalOtherTurn},
		{-32600, "invalid cursor: x", "", RefusalCursor},
		{-32600, "failed to load configuration: default_permissions refers to undefined profile `x`", "", RefusalProfile},
		{-32600, "failed to load configuration: TOML", "", RefusalConfig},
		{-32602, "too long", `{"input_error_code":"input_too_large"}`, RefusalTooLarge},
		{-32600, "x", `{"config_write_error_code":"configVersionConflict"}`, RefusalConflict},
		{-32600, "Invalid request: missing field `threadId`", "", RefusalOther},
	} {
		if got := Classify(&RPCError{Code: tc.code, Message: tc.message, Data: json.RawMessage(tc.data)}); got != tc.want {
			t.Errorf("%q: %v, want %v", tc.message, got, tc.want)
		}
	}
}
