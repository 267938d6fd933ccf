// Package cli is the openphone program: one file per command. Commands other than up talk to the running host through
// its control socket and know nothing of its inside; up builds the host from host/host.go and runs it.
//
// Every command takes --json and prints one JSON document, or one per line where it goes on. Failures are one sentence
// that says what to run next; the exit status is 0, 1 for a failure, 2 for a wrong command line. Main may be called
// several times in one process, but not at once.
package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openphone-host/openphone/protocol/codes"
)

// Streams are the program's surroundings.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Process is the surroundings of this process.
func Process() Streams { return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr} }

// errUsage marks a wrong command line.
type errUsage struct{ error }

// errShown ends the program with status 1 when everything there is to say has been said.
var errShown = errors.New("shown")

// app is what the commands share.
type app struct {
	Streams
	json bool
	home string
}

// Main runs the program and returns its exit status.
func Main(args []string, s Streams) int {
	a := &app{Streams: s}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	switch err := root.Execute(); {
	case err == nil:
		return 0
	case errors.Is(err, errShown):
		return 1
	case errors.As(err, new(errUsage)):
		fmt.Fprintf(s.Err, "openphone: %v\n", err)
		return 2
	default:
		a.fail(err)
		return 1
	}
}

// fail says what went wrong in one sentence.
func (a *app) fail(err error) {
	code, text := codes.Of(err), err.Error()
	if e := codes.As(err); e != nil {
		text = e.Message()
	}
	if a.json {
		a.print(map[string]any{"error": map[string]string{"code": code, "message": text}})
		return
	}
	fmt.Fprintf(a.Err, "openphone: %s\n", text)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "openphone",
		Short: "Talk from your phone to the coding agents on this computer",
		Long: "openphone runs the host that connects your phone to the coding agents on this computer.\n" +
			"Start it with openphone up, then pair a phone or talk to it right here with openphone chat.",
		Example:       "  openphone up\n  openphone chat --runtime codex\n  openphone pair --direct",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArgs,
		RunE:          help,
	}
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON")
	root.PersistentFlags().StringVar(&a.home, "home", "", "data directory (default $OPENPHONE_HOME, or the usual place of this system)")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return errUsage{fmt.Errorf("%w: run %s --help", err, c.CommandPath())}
	})
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(a.up(), a.chat(), a.status(), a.doctor(), a.pair(), a.phone(), a.runtime(), a.session(), a.logs(), a.config(), a.protocol(), a.version(), a.completion())
	return root
}

// noArgs refuses words after a command that takes none.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	c.SuggestionsMinimumDistance = 2
	hint := ""
	if s := c.SuggestionsFor(args[0]); len(s) > 0 {
		hint = ", did you mean " + s[0] + "?"
	}
	return errUsage{fmt.Errorf("%s does not know %q%s: run %s --help", c.CommandPath(), args[0], hint, c.CommandPath())}
}

// help is what a command does that only holds others.
func help(c *cobra.Command, _ []string) error { return c.Help() }

// oneArg wants exactly one word, called name in the refusal.
func oneArg(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 1 && strings.TrimSpace(args[0]) != "" {
			return nil
		}
		return errUsage{fmt.Errorf("%s needs one %s: run %s --help", c.CommandPath(), name, c.CommandPath())}
	}
}

// print writes one JSON document on a line.
func (a *app) print(v any) {
	e := json.NewEncoder(a.Out)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
}
