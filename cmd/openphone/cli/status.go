package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	controlv1 "github.com/openphone-host/openphone/proto/openphone/control/v1"
)

func (a *app) status() *cobra.Command {
	return a.onHost("status", "Say how the host and its agents are", "  openphone status\n  openphone status --json",
		func(c *cobra.Command, h *hostClient) error {
			r, err := h.GetStatus(c.Context(), &controlv1.GetStatusRequest{})
			if err != nil {
				return err
			}
			s := r.GetStatus()
			if a.json {
				a.print(plain(s))
				return nil
			}
			reach := "this computer only"
			if s.Reachable {
				reach = "also from other devices"
			}
			fmt.Fprintf(a.Out, "OpenPhone %s, process %d, up since %s\n", s.Version, s.Pid, when(s.StartedAt))
			fmt.Fprintf(a.Out, "listens at %s (%s), data in %s\n", s.Listen, reach, s.DataDir)
			fmt.Fprintf(a.Out, "%d phone sockets, %d replies running, %d questions open\n", s.Sockets, s.Runs, s.Interactions)
			for _, x := range s.Runtimes {
				fmt.Fprintf(a.Out, "  %s\n", sentence(x))
			}
			for _, n := range s.Notices {
				fmt.Fprintf(a.Out, "! %s\n", n)
			}
			return nil
		})
}

func (a *app) doctor() *cobra.Command {
	return a.onHost("doctor", "Look for what commonly goes wrong, and say what to run", "  openphone doctor\n  openphone doctor --json",
		func(c *cobra.Command, h *hostClient) error {
			r, err := h.Diagnose(c.Context(), &controlv1.DiagnoseRequest{})
			if err != nil {
				return err
			}
			failed := false
			for _, x := range r.Checks {
				bad := x.Result != controlv1.CheckResult_CHECK_RESULT_OK && x.Result != controlv1.CheckResult_CHECK_RESULT_WARNING
				failed = failed || bad
				if a.json {
					continue
				}
				mark := "✓"
				if bad {
					mark = "✗"
				} else if x.Result == controlv1.CheckResult_CHECK_RESULT_WARNING {
					mark = "!"
				}
				fmt.Fprintf(a.Out, "%s %s: %s\n", mark, x.Name, x.Message)
				if x.Advice != "" {
					fmt.Fprintf(a.Out, "  → %s\n", x.Advice)
				}
			}
			if a.json {
				a.print(plain(r))
			}
			if failed {
				return errShown
			}
			return nil
		})
}
