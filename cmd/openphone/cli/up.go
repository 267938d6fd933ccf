package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/openphone-host/openphone/host"
	"github.com/openphone-host/openphone/host/config"
	"github.com/openphone-host/openphone/host/control"
	"github.com/openphone-host/openphone/host/obs"
	controlv1 "github.com/openphone-host/openphone/proto/openphone/control/v1"
)

// fault is called at each of sessions.KillPoints; builds with the tag fault set it.
var fault func(point string)

func (a *app) up() *cobra.Command {
	var level string
	c := &cobra.Command{
		Use:   "up",
		Short: "Run the host in this terminal",
		Long: "up finds the agents on this computer, starts their plugins and serves phones until Ctrl-C. The first Ctrl-C lets\n" +
			"what is being dispatched finish, a second one stops at once; no process of ours is left. With --json it prints one\n" +
			"line when it is ready, and one for each change of an agent after that.",
		Example: "  openphone up\n  openphone up --json\n  OPENPHONE_HOME=/tmp/try openphone up",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			lowest, ok := obs.ParseLevel(level)
			if !ok {
				return errUsage{fmt.Errorf("there is no log level %q: choose debug, info, warn or error", level)}
			}
			dir, err := a.dir()
			if err != nil {
				return err
			}
			settings, err := config.Open(filepath.Join(dir, config.FileName), os.Getenv) // the host reads the rest of it
			if err != nil {
				return err
			}
			logs, err := openLogs(dir)
			if err != nil {
				return err
			}
			defer logs.Close()
			return a.serve(c.Context(), dir, obs.New(obs.Options{
				Output: logs, JSON: settings.Current().Log.Format == "json", Level: lowest,
			}))
		},
	}
	c.Flags().StringVar(&level, "log-level", "info", "lowest level of the log, unless the configuration names one: debug, info, warn, error")
	return c
}

func (a *app) serve(ctx context.Context, dir string, logs *obs.Logs) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	h, err := host.New(ctx, host.Options{
		Home: dir, PluginDirs: []string{filepath.Dir(self)}, Version: build().Version, Logs: logs, Fault: fault,
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cut, ready := make(chan struct{}), make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	over, end := context.WithCancel(context.WithoutCancel(ctx))
	var g errgroup.Group
	g.Go(func() error {
		defer end()
		return h.Run(ctx, cut, func() { close(ready) })
	})
	g.Go(func() error { // who waits at the terminal hears of every change
		select {
		case <-ready:
			a.tell(over, dir)
		case <-over.Done():
		}
		return nil
	})
	g.Go(func() error {
		for n := 0; ; n++ {
			select {
			case <-signals:
			case <-over.Done():
				return nil
			}
			switch n {
			case 0:
				a.say("stopping; Ctrl-C again stops at once", map[string]any{"stopping": true})
				stop()
			case 1:
				close(cut)
			}
		}
	})
	return g.Wait()
}

// say writes one line, for a person or as JSON.
func (a *app) say(text string, v any) {
	if a.json {
		a.print(v)
		return
	}
	fmt.Fprintln(a.Out, text)
}

// up's lines of JSON.
type (
	runtimeLine struct {
		ID      string `json:"id"`
		State   string `json:"state"`
		Reason  string `json:"reason,omitempty"`
		Message string `json:"message,omitempty"`
	}
	readyLine struct {
		Ready    bool          `json:"ready"`
		Listen   string        `json:"listen"`
		PID      int64         `json:"pid"`
		Runtimes []runtimeLine `json:"runtimes"`
		Notices  []string      `json:"notices,omitempty"`
	}
	changeLine struct {
		Runtime runtimeLine `json:"runtime"`
	}
)

func lineOf(r *controlv1.RuntimeStatus) runtimeLine {
	l := runtimeLine{ID: r.Id, State: state(r)}
	if l.State != "ready" {
		l.Reason, l.Message = r.Reason, r.Message
	}
	return l
}

// tell prints the ready line and then every change, until the host ends.
func (a *app) tell(ctx context.Context, dir string) {
	c, err := control.Dial(dir)
	if err != nil {
		a.fail(err)
		return
	}
	defer func() { _ = c.Close() }()
	stream, err := c.WatchStatus(ctx, &controlv1.WatchStatusRequest{})
	var known map[string]runtimeLine
	for err == nil {
		var r *controlv1.WatchStatusResponse
		if r, err = stream.Recv(); err != nil {
			break
		}
		s := r.GetStatus()
		if known == nil {
			known = map[string]runtimeLine{}
			a.ready(s, known)
			continue
		}
		for _, x := range s.Runtimes {
			if l := lineOf(x); l != known[x.Id] {
				known[x.Id] = l
				a.say(sentence(x), changeLine{l})
			}
		}
	}
	if known == nil && !errors.Is(ctx.Err(), context.Canceled) {
		a.fail(err)
	}
}

func (a *app) ready(s *controlv1.HostStatus, known map[string]runtimeLine) {
	l := readyLine{Ready: true, Listen: s.Listen, PID: s.Pid, Runtimes: []runtimeLine{}, Notices: s.Notices}
	text := "OpenPhone listens at " + s.Listen
	for _, x := range s.Runtimes {
		if !x.Enabled {
			continue
		}
		known[x.Id] = lineOf(x)
		l.Runtimes = append(l.Runtimes, lineOf(x))
		text += "\n  " + sentence(x)
	}
	for _, n := range s.Notices {
		text += "\n! " + n
	}
	a.say(text+"\nTalk to an agent from here with openphone chat, pair a phone with openphone pair --direct. Ctrl-C stops.", l)
}
