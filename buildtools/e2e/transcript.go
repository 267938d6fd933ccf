package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/openphone-host/openphone/buildtools/transcripts"
	"github.com/openphone-host/openphone/sdk/modeltest"
)

// conversations are the ones README shows.
var conversations = []struct{ file, runtime, input string }{
	{"demo.txt", "demo", "Hello there.\n/think Let me see.\n/tool ls -l\n/approve rm old.log\ny\n"},
	{"codex.txt", "codex", "Tidy up, please.\ny\n"},
}

var tidyUp = modeltest.Script{Match: "Tidy up", Steps: []modeltest.Step{
	modeltest.Reasoning("I should look first."),
	modeltest.Text("I will look at the folder."), modeltest.Break(),
	modeltest.Call("exec_command", `{"cmd":"ls"}`),
	modeltest.Text("There is one old log."), modeltest.Break(),
	modeltest.CallWith("exec_command", map[string]any{
		"cmd": "rm old.log", "sandbox_permissions": "require_escalated", "justification": "The log is not needed any more.",
	}),
	modeltest.Text("Done: old.log is gone."),
}}

// recordTranscripts records what `openphone chat` shows, for docs/transcripts and README.
func recordTranscripts(ctx context.Context, g *ground, r *report) (err error) {
	if !r.wants("transcript/") {
		return nil
	}
	c, err := g.newComputer("transcripts", g.bin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	c.model.Add(tidyUp)
	if err := os.WriteFile(filepath.Join(c.project, "old.log"), nil, 0o600); err != nil {
		return err
	}
	if _, err := c.up(ctx); err != nil {
		return err
	}
	for _, t := range conversations {
		name := "transcript/" + t.runtime
		if !r.wants(name) {
			continue
		}
		began := time.Now()
		recording, err := c.chat(ctx, t.runtime, t.input)
		if err == nil {
			err = g.keep(t.file, recording)
		}
		r.line("transcripts", name, time.Since(began), "", err)
	}
	return nil
}

// chat runs openphone chat with an input and gives what a person would have seen, with the directories of this run
// under the names they have on a person's computer.
func (c *computer) chat(ctx context.Context, runtime, input string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, exe("openphone")), "chat", "--runtime", runtime)
	if runtime == "demo" {
		cmd.Args = append(cmd.Args, "--project", "alpha")
	}
	cmd.Env, cmd.Dir, cmd.Stdin = c.env(), c.project, strings.NewReader(input)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("chat: %w: %s%s", err, problem.String(), out.String())
	}
	names := strings.NewReplacer(c.home, "~/.local/share/openphone", filepath.Join(c.dir, "home"), "~")
	return fmt.Sprintf("$ openphone %s\n%s", strings.Join(cmd.Args[1:], " "), names.Replace(out.String())), nil
}

// keep writes a recording to its file and into its place in README.
func (g *ground) keep(file, recording string) error {
	dir := filepath.Join(g.root, filepath.FromSlash(transcripts.Folder))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(recording), 0o644); err != nil {
		return err
	}
	path := filepath.Join(g.root, "README.md")
	readme, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	block := regexp.MustCompile(`(?s)(<!-- transcript ` + regexp.QuoteMeta(file) + ` -->\n).*?(<!-- /transcript -->)`)
	if !block.Match(readme) {
		return fmt.Errorf("README.md has no place for %s", file)
	}
	now := block.ReplaceAllFunc(readme, func(b []byte) []byte {
		m := block.FindSubmatch(b)
		return append(append(append([]byte(nil), m[1]...), transcripts.Block(recording)+"\n"...), m[2]...)
	})
	if bytes.Equal(now, readme) {
		return nil
	}
	return os.WriteFile(path, now, 0o644)
}
