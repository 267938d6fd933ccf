package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/clawket"
)

// twice is a phone behind a proxy that sends every frame two times.
type twice struct {
	t        *testing.T
	ctx      context.Context
	ws       *websocket.Conn
	n        int
	started  []string // runs, in the order they were announced
	finished []string
}

// ask gives both answers.
func (p *twice) ask(method, params string) (answers []clawket.Incoming) {
	p.t.Helper()
	p.n++
	id := fmt.Sprint("r", p.n)
	frame := []byte(fmt.Sprintf(`{"type":"req","id":%q,"method":%q,"params":%s}`, id, method, params))
	for range 2 {
		if err := p.ws.Write(p.ctx, websocket.MessageText, frame); err != nil {
			p.t.Fatal(err)
		}
	}
	for len(answers) < 2 {
		if in := p.read(); in.Type == clawket.TypeResponse && in.ID == id {
			answers = append(answers, in)
		}
	}
	return answers
}

func (p *twice) read() (in clawket.Incoming) {
	p.t.Helper()
	_, raw, err := p.ws.Read(p.ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	var u clawket.Update
	if err := json.Unmarshal(raw, &in); err != nil {
		p.t.Fatal(err)
	}
	if in.Type == clawket.TypeEvent && json.Unmarshal(in.Payload, &u) == nil {
		switch {
		case u.Type == clawket.UpdateRunStarted && !slices.Contains(p.started, u.RunID):
			p.started = append(p.started, u.RunID)
		case u.Type == clawket.UpdateRunFinished:
			p.finished = append(p.finished, u.RunID)
		}
	}
	return in
}

func TestEveryFrameTwiceIsOneRun(t *testing.T) {
	rules.Covers(t, "FAULT-04")
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	h, err := New(ctx, Options{Home: t.TempDir(), PluginDirs: []string{buildDemo(t)}, Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	run, stop := context.WithCancel(ctx)
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- h.Run(run, nil, func() { close(ready) }) }()
	defer func() { stop(); <-ended }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	pair, err := backend{h}.Pair(ctx, "test", false)
	if err != nil {
		t.Fatal(err)
	}
	ws, _, err := websocket.Dial(ctx, pair.Backends[0].URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow()
	ws.SetReadLimit(clawket.MaxFrame)
	p := &twice{t: t, ctx: ctx, ws: ws}
	for _, a := range p.ask("connect", `{"token":"`+pair.Backends[0].Token+`"}`) {
		if !a.OK {
			t.Fatalf("connect: %+v", a.Error)
		}
	}
	var session clawket.Session
	if err := json.Unmarshal(p.ask("sessions.create", `{}`)[0].Payload, &session); err != nil {
		t.Fatal(err)
	}
	send := func(key, text string) string {
		t.Helper()
		params, _ := json.Marshal(map[string]string{"sessionKey": session.Key, "text": text, "idempotencyKey": key})
		var ids [2]struct{ RunID string }
		for i, a := range p.ask("chat.send", string(params)) {
			if !a.OK {
				t.Fatalf("send %s: %+v", key, a.Error)
			}
			if err := json.Unmarshal(a.Payload, &ids[i]); err != nil {
				t.Fatal(err)
			}
		}
		if ids[0] != ids[1] || ids[0].RunID == "" {
			t.Errorf("send %s: two answers %v", key, ids)
		}
		return ids[0].RunID
	}
	until := func(runID string) {
		for !slices.Contains(p.finished, runID) {
			p.read()
		}
	}

	first := send("k-1", "hello")
	until(first)
	failing := send("k-2", "/fail")
	until(failing)
	// Accepted, failed, tried again: the receipt is returned, and nothing runs.
	if again := send("k-2", "/fail"); again != failing {
		t.Errorf("a retry has the run %s, want %s", again, failing)
	}
	if again := send("k-1", "hello"); again != first {
		t.Errorf("a retry has the run %s, want %s", again, first)
	}
	last := send("k-3", "bye")
	until(last)

	if want := []string{first, failing, last}; !slices.Equal(p.started, want) || !slices.Equal(p.finished, want) {
		t.Errorf("started %v, finished %v, want %v", p.started, p.finished, want)
	}
	var page clawket.History
	if err := json.Unmarshal(p.ask("chat.history", `{"sessionKey":"`+session.Key+`"}`)[0].Payload, &page); err != nil {
		t.Fatal(err)
	}
	var prompts []string
	for _, m := range page.Messages {
		if m.Role == "user" {
			prompts = append(prompts, m.IdempotencyKey+" "+m.Text)
		}
	}
	if want := []string{"k-1 hello", "k-2 /fail", "k-3 bye"}; !slices.Equal(prompts, want) {
		t.Errorf("prompts in the runtime's record: %q, want %q", prompts, want)
	}
}
