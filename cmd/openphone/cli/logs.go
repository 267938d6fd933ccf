package cli

import (
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	controlv1 "github.com/openphone-host/openphone/proto/openphone/control/v1"
)

func (a *app) logs() *cobra.Command {
	var q controlv1.ReadLogsRequest
	var tail uint32
	c := a.onHost("logs", "Print what the host has logged; it never holds prompts, replies or secrets",
		"  openphone logs\n  openphone logs --follow --runtime codex\n  openphone logs --component phone --level debug --tail 100",
		func(c *cobra.Command, h *hostClient) error {
			if c.Flags().Changed("tail") {
				q.Tail = &tail
			}
			stream, err := h.ReadLogs(c.Context(), &q)
			if err != nil {
				return err
			}
			for {
				r, err := stream.Recv()
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
				if r.Lost > 0 && !a.json {
					fmt.Fprintf(a.Out, "(%d records lost: this terminal was too slow)\n", r.Lost)
				}
				for _, x := range r.Records {
					a.record(x)
				}
			}
		})
	f := c.Flags()
	f.BoolVarP(&q.Follow, "follow", "f", false, "go on with what comes")
	f.StringArrayVar(&q.Components, "component", nil, "only this part of the host; may be given several times")
	f.StringVar(&q.Runtime, "runtime", "", "only what is about this agent")
	f.StringVar(&q.Level, "level", "info", "lowest level: debug, info, warn, error")
	f.Uint32Var(&tail, "tail", 0, "at most so many records of the past")
	return c
}

func (a *app) record(x *controlv1.LogRecord) {
	if a.json {
		a.print(plain(x))
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %-5s %s: %s", x.At.AsTime().Local().Format("15:04:05.000"), strings.ToUpper(x.Level), x.Component, x.Message)
	names := make([]string, 0, len(x.Attributes))
	for n := range x.Attributes {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		v := x.Attributes[n]
		if strings.ContainsAny(v, " \t\n\"") {
			v = fmt.Sprintf("%q", v)
		}
		fmt.Fprintf(&b, " %s=%s", n, v)
	}
	fmt.Fprintln(a.Out, b.String())
}
