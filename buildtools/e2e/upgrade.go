package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/sdk/modeltest"
)

// stream is a reply of the demo that takes three seconds.
const stream = "/stream n=300 rate=100 size=12"

// upgrades replaces the demo's plugin while it replies, offers it versions that do not work, and opens its breaker.
func upgrades(ctx context.Context, g *ground, r *report) (err error) {
	cases := []scenario{
		{"stream-unharmed", upgradeWhileStreaming},
		{"rollback-exits", func(s *scene) { rollback(s, "#!/bin/sh\nexit 3\n") }},
		{"rollback-hangs", func(s *scene) { rollback(s, "#!/bin/sh\nexec sleep 3600\n") }},
		{"rollback-no-handshake", func(s *scene) { rollback(s, "#!/bin/sh\necho good morning\nexec sleep 3600\n") }},
		{"breaker", breaker},
	}
	wanted := false
	for _, c := range cases {
		wanted = wanted || r.wants("upgrade/"+c.name)
	}
	if !wanted {
		return nil
	}
	// A set of executables of its own, since they are replaced.
	bin := filepath.Join(g.dir, "upgrade-bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"openphone", "openphone-runtime-codex", "openphone-runtime-demo", "plugins.json"} {
		if err := copyFile(filepath.Join(g.bin, exe(name)), filepath.Join(bin, exe(name)), 0o755); err != nil {
			return err
		}
	}
	c, err := g.newComputer("upgrade", bin)
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
	defer s.phone.close()
	for _, sc := range cases {
		s.play(r, "upgrade", "upgrade/"+sc.name, sc.play)
	}
	return nil
}

// shown sends a prompt, does something while the reply runs, and gives the text the phone shows in the end.
func shown(s *scene, prompt string, meanwhile func(run string)) string {
	key := s.create()
	s.prompts++
	run := s.send(key, fmt.Sprintf("%s\n%s %d", prompt, s.title, s.prompts))
	meanwhile(run)
	u := s.end(run, "end_turn")
	whole := text(s.phone.since(s.start), run)
	if len(u.Message) > 0 {
		whole = content(s, u)
	}
	return strings.TrimSuffix(whole, fmt.Sprintf("%s %d", s.title, s.prompts))
}

// upgradeWhileStreaming puts another version in place, which is the same program with some bytes more.
func upgradeWhileStreaming(s *scene) {
	plain := shown(s, stream, func(string) {})
	before, err := s.status(s.ctx, "demo")
	s.check(err)
	upgraded := shown(s, stream, func(run string) {
		s.wait("text", func(u update) bool { return u.Type == clawket.UpdateMessageChunk && u.RunID == run })
		path := filepath.Join(s.bin, exe("openphone-runtime-demo"))
		b, err := os.ReadFile(path)
		s.check(err)
		s.replace(append(b, "another version"...))
		s.check(s.cli(s.ctx, nil, "runtime", "upgrade", "demo"))
	})
	if plain != upgraded {
		s.fail("the text differs: %d bytes, %d with the upgrade", len(plain), len(upgraded))
	}
	after, err := s.status(s.ctx, "demo")
	s.check(err)
	if after.Checksum == before.Checksum || after.State != "ready" {
		s.fail("the old version still runs, or none: %+v", after)
	}
}

// replace puts a file in the plugin's place.
func (s *scene) replace(content []byte) {
	path := filepath.Join(s.bin, exe("openphone-runtime-demo"))
	s.check(os.WriteFile(path+".new", content, 0o755))
	s.check(os.Rename(path+".new", path))
}

// rollback offers a version that does not work: the command says so, and the old version goes on.
func rollback(s *scene, script string) {
	before, err := s.status(s.ctx, "demo")
	s.check(err)
	good, err := os.ReadFile(filepath.Join(s.bin, exe("openphone-runtime-demo")))
	s.check(err)
	s.replace([]byte(script))
	defer s.replace(good)
	if err := s.cli(s.ctx, nil, "runtime", "upgrade", "demo"); err == nil {
		s.fail("the upgrade is said to have worked")
	}
	after, err := s.status(s.ctx, "demo")
	s.check(err)
	if after.Checksum != before.Checksum || after.State != "ready" {
		s.fail("after the roll-back %+v, before it %+v", after, before)
	}
	if got := shown(s, "/say still here", func(string) {}); !strings.Contains(got, "still here") {
		s.fail("the old version says %q", got)
	}
}

// breaker kills the demo's plugin five times within a minute while Codex replies.
func breaker(s *scene) {
	other, err := s.paired.connect(s.ctx, "codex")
	s.check(err)
	defer other.close()
	codex := &scene{computer: s.computer, ctx: s.ctx, backend: "codex", phone: other, paired: s.paired, title: s.title}
	var steps []modeltest.Step
	var want strings.Builder
	for i := range 40 {
		piece := fmt.Sprintf("%d \n", i)
		want.WriteString(piece)
		steps = append(steps, modeltest.Text(piece), modeltest.Delay(50*time.Millisecond))
	}
	run := codex.send(codex.create(), codex.say(append(steps, modeltest.Gate(s.title))...))
	for range 5 {
		var st runtimeStatus
		s.eventually("the demo runs", func() bool {
			var err error
			st, err = s.status(s.ctx, "demo")
			return err == nil && st.State == "ready" && st.PID > 0
		})
		p, err := os.FindProcess(st.PID)
		s.check(err)
		s.check(p.Kill())
		s.eventually("its end is seen", func() bool {
			now, err := s.status(s.ctx, "demo")
			return err == nil && now.PID != st.PID
		})
	}
	s.eventually("the breaker is open", func() bool { st, err := s.status(s.ctx, "demo"); return err == nil && st.State == "paused" })
	s.model.Release(s.title)
	codex.reply(run, want.String())
	s.refused(clawket.MethodChatSend, map[string]any{"sessionKey": "x", "text": "x", "idempotencyKey": "paused"}, "")
	s.check(s.cli(s.ctx, nil, "runtime", "restart", "demo"))
	if got := shown(s, "/say closed again", func(string) {}); !strings.Contains(got, "closed again") {
		s.fail("after the restart the demo says %q", got)
	}
}
