// Command e2e drives the whole product as a person would have it: the built host with its plugins, a real Codex, a fake
// model, and a phone that speaks the WebSocket. It prints one line per scenario, the rows of the kill-point matrix, the
// upgrade cases, and what was left behind; any failure makes it exit 1.
//
// It changes nothing outside of .cache of the checkout (or of the user, for a checkout below /tmp) and, when all scenarios
// ran, docs/transcripts and README. It needs `make build codex` before it.
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
	"strings"
	"sync"
	"time"
)

const usage = `Usage: go run ./e2e [-root DIR] [-run NAME] [-json] [-keep]

Runs the product end to end and prints one line per scenario.

  -root DIR  checkout (default ..)
  -run NAME  only scenarios, rows and cases whose name contains NAME
  -json      one JSON object per line
  -keep      keep the data directories for a look

Examples:
  make e2e
  cd buildtools && go run ./e2e -run codex/steer
  cd buildtools && go run ./e2e -run kill/demo -keep
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
}

// report prints results, a line each, and counts them.
type report struct {
	mu     sync.Mutex
	out    io.Writer
	json   bool
	filter string
	passed map[string]int
	failed map[string]int
}

// wants reports that a case of that name shall run.
func (r *report) wants(name string) bool { return strings.Contains(name, r.filter) }

// line tells how one case ended; detail says more about one that passed, err why one failed.
func (r *report) line(group, name string, took time.Duration, detail string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	verdict, more := "ok", detail
	if err != nil {
		verdict, more = "FAIL", err.Error()
		r.failed[group]++
	} else {
		r.passed[group]++
	}
	if r.json {
		_ = json.NewEncoder(r.out).Encode(map[string]any{"group": group, "name": name, "ok": err == nil, "ms": took.Milliseconds(), "detail": more})
		return
	}
	fmt.Fprintf(r.out, "%-4s %-44s %6d ms  %s\n", verdict, name, took.Milliseconds(), more)
}

// say prints a line of its own.
func (r *report) say(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.json {
		_ = json.NewEncoder(r.out).Encode(map[string]any{"summary": text})
		return
	}
	fmt.Fprintln(r.out, text)
}

// total prints the sum of a group.
func (r *report) total(group string) {
	if n := r.passed[group] + r.failed[group]; n > 0 {
		r.say(fmt.Sprintf("e2e %s %d/%d", group, r.passed[group], n))
	}
}

func (r *report) failures() (n int) {
	for _, f := range r.failed {
		n += f
	}
	return n
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("e2e", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() { fmt.Fprint(out, usage) }
	root := flags.String("root", "..", "")
	only := flags.String("run", "", "")
	asJSON := flags.Bool("json", false, "")
	keep := flags.Bool("keep", false, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r := &report{out: out, json: *asJSON, filter: *only, passed: map[string]int{}, failed: map[string]int{}}
	g, err := newGround(ctx, *root)
	if err != nil {
		return err
	}
	if !*keep {
		defer os.RemoveAll(g.dir)
	}
	steps := []func(context.Context, *ground, *report) error{codexScenarios, pluginKills, hostKills, survivals, upgrades, recordTranscripts}
	for _, step := range steps {
		if err := step(ctx, g, r); err != nil {
			return err
		}
	}
	for _, group := range []string{"codex", "kill", "survive", "upgrade", "transcripts"} {
		r.total(group)
	}
	switch n, err := g.orphans(); {
	case err != nil:
		r.say("orphans not counted: " + err.Error())
	case len(n) > 0:
		r.failed["orphans"] += len(n)
		r.say(fmt.Sprintf("orphans %d: %s", len(n), strings.Join(n, ", ")))
	default:
		r.say("orphans 0")
	}
	if found := g.leaks(); len(found) > 0 {
		r.failed["secrets"] += len(found)
		r.say(fmt.Sprintf("secrets %d: %s", len(found), strings.Join(found, ", ")))
	} else {
		r.say("secrets 0")
	}
	if n := r.failures(); n > 0 {
		return fmt.Errorf("%d failed", n)
	}
	return nil
}
