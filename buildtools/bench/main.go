// Command bench measures the product against its bounds, the way a person meets it: the built host, plugin processes,
// phones on the WebSocket. Beside each figure stands its bare floor, taken in the same round with the same work done by
// nothing but the libraries. It prints JSON, or a table, and never fails because of a number: a bound that is missed says
// "within": false. docs/performance.md tells how each figure is taken. It runs on Linux, because it reads /proc.
//
// It writes below .cache of the checkout and, with -write, docs/performance.md; all processes it starts end with it.
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
	"slices"
	"strings"
	"time"
)

const usage = `Usage: go run ./bench [-root DIR] [-run NAMES] [-runs N] [-quick] [-table] [-write]

Measures the product and prints JSON with the median of all rounds.

  -root DIR   checkout (default ..)
  -run NAMES  only these benchmarks, such as B1,B10
  -runs N     rounds; each takes every figure and its floor once (default 5)
  -quick      a round of seconds: proves that the benchmarks work, not what the product does
  -table      a table instead of JSON
  -write      also put the table into docs/performance.md; needs all benchmarks

Examples:
  make bench
  make bench ARGS="-run B3 -runs 1 -table"
  make bench ARGS=-write
`

// effort is how much is measured in one round.
type effort struct {
	deltas int // at 500 a second; five times as many at 5,000
	kills  int
	hosts  int
	starts int
	sends  int
	idle   time.Duration
}

var (
	full  = effort{deltas: 2000, kills: 20, hosts: 3, starts: 9, sends: 300, idle: time.Minute}
	quick = effort{deltas: 200, kills: 2, hosts: 1, starts: 2, sends: 20, idle: 2 * time.Second}
)

// noter takes a measurement and its floor for the figure of that name.
type noter func(name string, measured, floor float64)

// benchmark fills the figures whose names begin with its own.
type benchmark struct {
	name string
	run  func(context.Context, *ground, effort, noter) error
}

var benchmarks = []benchmark{
	{"B1", deltas}, {"B2", beside}, {"B3", pluginKilled}, {"B4", hostKilled}, {"B5", starts}, {"B8", idle}, {"B10", receipts},
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "-bare" {
		if err := runBare(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench: floor:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.Usage = func() { fmt.Fprint(progress, usage) }
	root := flags.String("root", "..", "")
	only := flags.String("run", "", "")
	rounds := flags.Int("runs", 5, "")
	hasty := flags.Bool("quick", false, "")
	asTable := flags.Bool("table", false, "")
	write := flags.Bool("write", false, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	size := full
	if *hasty {
		size, *rounds = quick, 1
	}
	if *write && (len(chosen) < len(benchmarks) || *hasty) {
		return errors.New("docs/performance.md takes all benchmarks at full length only")
	}
	if *rounds < 1 {
		return errors.New("at least one round")
	}
	g, err := newGround(ctx, *root)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(g.dir)) }()
	taken := map[string][]pair{}
	note := func(name string, measured, floor float64) {
		taken[name] = append(taken[name], pair{measured, floor})
		fmt.Fprintf(progress, "  %-14s %12.3f  floor %12.3f\n", name, measured, floor)
	}
	for i := range *rounds {
		for _, b := range chosen {
			fmt.Fprintf(progress, "round %d of %d: %s\n", i+1, *rounds, b.name)
			if err := b.run(ctx, g, size, note); err != nil {
				return fmt.Errorf("%s: %w", b.name, err)
			}
		}
	}
	r := report{Machine: g.machine(ctx), Date: time.Now().UTC().Format(time.DateOnly), Rounds: *rounds, Quick: *hasty}
	for _, f := range figures {
		if p := taken[f.name]; p != nil {
			r.Figures = append(r.Figures, f.judge(p))
		}
	}
	if *write {
		if err := r.write(g.root); err != nil {
			return err
		}
	}
	if *asTable {
		_, err = io.WriteString(out, r.table())
	} else {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		err = enc.Encode(r)
	}
	fmt.Fprintln(progress, r.verdict())
	return err
}

// choose finds the benchmarks of a list of names; all of an empty one.
func choose(names string) ([]benchmark, error) {
	if names == "" {
		return benchmarks, nil
	}
	var list []benchmark
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(benchmarks, func(b benchmark) bool { return strings.EqualFold(b.name, strings.TrimSpace(name)) })
		if i < 0 {
			return nil, fmt.Errorf("no benchmark %s", name)
		}
		list = append(list, benchmarks[i])
	}
	return list, nil
}
