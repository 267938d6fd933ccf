package conformance

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
	"time"
)

const usage = `openphone-conform tests a plugin executable against the plugin contract.

Usage:
  openphone-conform [flags] PLUGIN [plugin arguments]

Examples:
  openphone-conform --prompts plugins/demo/conform.json bin/openphone-runtime-demo
  openphone-conform --group send,cancel --json ./my-plugin
  openphone-conform --env OPENAI_API_KEY --project ~/work ./my-plugin

Exit status: 0 all passed, 1 something failed, 2 nothing could be tested.

Flags:
`

// Main is the command line; it gives the exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	var o Options
	f := flag.NewFlagSet("openphone-conform", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() { fmt.Fprint(stderr, usage); f.PrintDefaults() }
	asJSON := f.Bool("json", false, "print one JSON object per case, then the summary")
	list := f.Bool("list", false, "list the groups and cases and test nothing")
	prompts := f.String("prompts", "", "`file` with the prompts that make the runtime do things: "+promptNames())
	config := f.String("config", "", "`file` with the plugin's configuration as JSON")
	groups := f.String("group", "", "test only these `groups`, separated by commas")
	f.StringVar(&o.Project, "project", "", "`directory` conversations work in (default: a new one)")
	f.StringVar(&o.ReadOnly, "read-only", "", "`path` of the native store, which must not change when it is read")
	f.DurationVar(&o.Pause, "pause", 30*time.Second, "how long the reader of events pauses in the backpressure group")
	f.DurationVar(&o.CaseTimeout, "timeout", 0, "bound of one case (default 90s and the pause)")
	f.Func("env", "pass an environment variable on: `NAME` or NAME=value; may be repeated", func(s string) error {
		if !strings.Contains(s, "=") {
			s += "=" + os.Getenv(s)
		}
		o.Env = append(o.Env, s)
		return nil
	})
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if *list {
		for _, c := range cases() {
			fmt.Fprintf(stdout, "%s/%s\n", c.group, c.name)
		}
		return 0
	}
	if f.NArg() == 0 {
		f.Usage()
		return 2
	}
	o.Path, o.Args = f.Arg(0), f.Args()[1:]
	if *groups != "" {
		o.Groups = strings.Split(*groups, ",")
	}
	if err := readFiles(&o, *prompts, *config); err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	return run(ctx, o, *asJSON, stdout, stderr)
}

func promptNames() string { return "text, long, flood, tool, approval, question, steer" }

func readFiles(o *Options, prompts, config string) error {
	if prompts != "" {
		b, err := os.ReadFile(prompts)
		if err != nil {
			return err
		}
		d := json.NewDecoder(strings.NewReader(string(b)))
		d.DisallowUnknownFields()
		if err := d.Decode(&o.Prompts); err != nil {
			return fmt.Errorf("%s: %w", prompts, err)
		}
	}
	if config != "" {
		b, err := os.ReadFile(config)
		if err != nil {
			return err
		}
		o.Config = b
	}
	return nil
}

func run(ctx context.Context, o Options, asJSON bool, stdout, stderr io.Writer) int {
	began := time.Now()
	enc := json.NewEncoder(stdout)
	sum, err := Run(ctx, o, func(r Result) {
		if asJSON {
			_ = enc.Encode(r)
			return
		}
		fmt.Fprintf(stdout, "--- %s: %s (%.2fs)\n", strings.ToUpper(string(r.Status)), r.Name(), r.Elapsed.Seconds())
		if r.Detail != "" {
			fmt.Fprintf(stdout, "        %s\n", r.Detail)
		}
	})
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	verdict := "ok"
	if !sum.OK() {
		verdict = "FAIL"
	}
	if asJSON {
		_ = enc.Encode(map[string]any{"summary": sum, "ok": sum.OK()})
	} else {
		fmt.Fprintf(stdout, "%s\t%s %s\t%d passed, %d failed, %d skipped\t%.1fs\n", verdict, sum.Runtime, sum.Version, sum.Passed, sum.Failed, sum.Skipped, time.Since(began).Seconds())
	}
	if !sum.OK() {
		return 1
	}
	return 0
}
