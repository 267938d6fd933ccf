package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/openphone-host/openphone/protocol/clawket"
)

// survivals kills host and plugin at a random moment while a runtime that outlives them replies, as the demo does with
// /survive: the phone has every byte of the text in the end (FAULT-09).
func survivals(ctx context.Context, g *ground, r *report) (err error) {
	cases := []scenario{{"host-killed", surviveHost}, {"plugin-killed", survivePlugin}}
	wanted := false
	for _, c := range cases {
		wanted = wanted || r.wants("survive/"+c.name)
	}
	if !wanted {
		return nil
	}
	c, err := g.newComputer("survive", g.bin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if _, err := c.up(ctx); err != nil {
		return err
	}
	s := &scene{computer: c, ctx: ctx, backend: "demo"}
	if s.paired, err = c.pair(ctx); err != nil {
		return err
	}
	if s.phone, err = s.paired.connect(ctx, s.backend); err != nil {
		return err
	}
	defer func() { s.phone.close() }()
	for _, sc := range cases {
		s.play(r, "survive", "survive/"+sc.name, sc.play)
	}
	return nil
}

// surviving begins a reply of three seconds and gives its run and what it will have said, known from the same reply
// without a crash.
func surviving(s *scene) (key, run, whole string) {
	plain := s.create()
	s.prompts++
	first := s.send(plain, fmt.Sprintf("/survive\n%s\n/say %s %d", stream, s.title, s.prompts))
	s.end(first, "end_turn")
	whole = s.reread(plain)
	key = s.create()
	run = s.send(key, fmt.Sprintf("/survive\n%s\n/say %s %d", stream, s.title, s.prompts)+"\n")
	s.wait("text", func(u update) bool { return u.Type == clawket.UpdateMessageChunk && u.RunID == run })
	time.Sleep(2 * someMoment())
	return key, run, strings.TrimRight(whole, "\n")
}

// reread is the text of the last reply as the history has it.
func (s *scene) reread(key string) string {
	all, _ := s.history(key)
	if n := len(all); n > 0 && all[n-1].Role == "assistant" {
		return all[n-1].Text
	}
	s.fail("no reply in the history: %+v", all)
	return ""
}

func surviveHost(s *scene) {
	key, _, whole := surviving(s)
	s.check(s.killed())
	s.phone.close()
	_, err := s.up(s.ctx)
	s.check(err)
	s.phone, err = s.paired.connect(s.ctx, s.backend)
	s.check(err)
	s.start = 0
	s.eventually("the reply is whole", func() bool {
		var h clawket.History
		err := s.phone.call(s.ctx, clawket.MethodChatHistory, map[string]any{"sessionKey": key}, &h)
		return err == nil && !h.HasActiveRun
	})
	if got := strings.TrimRight(s.reread(key), "\n"); got != whole {
		s.fail("the text differs: %d bytes, want %d", len(got), len(whole))
	}
}

func survivePlugin(s *scene) {
	key, run, whole := surviving(s)
	st, err := s.status(s.ctx, s.backend)
	s.check(err)
	p, err := os.FindProcess(st.PID)
	s.check(err)
	s.check(p.Kill())
	u := s.end(run, "end_turn")
	got := text(s.phone.since(s.start), run)
	if len(u.Message) > 0 {
		got = content(s, u)
	}
	if got = strings.TrimRight(got, "\n"); got != whole {
		s.fail("the phone shows %d bytes, want %d", len(got), len(whole))
	}
	if got := strings.TrimRight(s.reread(key), "\n"); got != whole {
		s.fail("the history has %d bytes, want %d", len(got), len(whole))
	}
}
