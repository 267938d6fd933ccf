// Command openphone-modeltest is the scripted fake model of sdk/modeltest as a program of its own: a Responses, Chat
// Completions and Messages server on the loopback interface for trying an agent program without an account.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"

	"github.com/openphone-host/openphone/sdk/modeltest"
)

const usage = `Usage: openphone-modeltest [--listen ADDR] [--script FILE] [--json]

A fake model on the loopback interface. It answers POST /v1/responses, /v1/chat/completions and /v1/messages from a
script; without one it echoes the prompt. POST /release?gate=NAME opens a gate of the script. Ctrl-C ends it.

  --listen ADDR  address to listen on (default 127.0.0.1:0, a free port)
  --script FILE  script file; - is standard input
  --json         one JSON object per line: first {"ready":true,"url":"…"}, then one per request

Examples:
  openphone-modeltest
  openphone-modeltest --listen 127.0.0.1:7700 --script demo.script --json

A script:
  when list the files
    text "Looking" " …"
    call exec_command {"cmd":"ls"}
    text "Two files."
  once fail
    error 429 {"error":{"message":"slow down"}}
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "openphone-modeltest:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	flags := flag.NewFlagSet("openphone-modeltest", flag.ContinueOnError)
	flags.SetOutput(stdout)
	flags.Usage = func() { _, _ = fmt.Fprint(stdout, usage) }
	listen := flags.String("listen", "127.0.0.1:0", "")
	file := flags.String("script", "", "")
	asJSON := flags.Bool("json", false, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; see --help", flags.Arg(0))
	}
	scripts, err := load(*file, stdin)
	if err != nil {
		return err
	}
	out := &printer{w: stdout, json: *asJSON}
	s, err := modeltest.Open(modeltest.Options{Listen: *listen, Scripts: scripts, Observe: out.request})
	if err != nil {
		return err
	}
	defer s.Close()
	out.ready(s.URL())
	<-ctx.Done()
	return nil
}

func load(file string, stdin io.Reader) ([]modeltest.Script, error) {
	switch file {
	case "":
		return nil, nil
	case "-":
		return modeltest.Parse(stdin)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	scripts, err := modeltest.Parse(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return scripts, nil
}

// printer writes one line at a time.
type printer struct {
	mu   sync.Mutex
	w    io.Writer
	json bool
}

func (p *printer) ready(url string) {
	p.line(map[string]any{"ready": true, "url": url}, "listening on "+url)
}

func (p *printer) request(r modeltest.Request) {
	p.line(map[string]any{"api": r.API, "model": r.Model, "prompt": r.Prompt, "round": r.Round, "new": r.New, "images": r.Images, "closed": r.Closed},
		fmt.Sprintf("%s %s round %d: %.80q", r.API, r.Model, r.Round, r.Prompt))
}

func (p *printer) line(v any, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.json {
		_ = json.NewEncoder(p.w).Encode(v)
		return
	}
	_, _ = fmt.Fprintln(p.w, text)
}
