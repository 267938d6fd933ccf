package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	controlv1 "github.com/openphone-host/openphone/proto/openphone/control/v1"
)

func (a *app) config() *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Look at the settings in force, and read them again", Args: noArgs, RunE: help,
		Example: "  openphone config show --effective --origin\n  openphone config reload",
	}
	var effective, origin bool
	show := a.onHost("show", "Show every setting and where it comes from; secrets are not shown",
		"  openphone config show\n  openphone config show --effective --origin\n  openphone config show --json",
		func(c *cobra.Command, h *hostClient) error {
			r, err := h.ShowConfig(c.Context(), &controlv1.ShowConfigRequest{})
			if err != nil {
				return err
			}
			var kept []*controlv1.Setting
			for _, s := range r.Settings {
				if effective || s.Origin != "default" {
					kept = append(kept, s)
				}
			}
			r.Settings = kept
			if a.json {
				a.print(plain(r))
				return nil
			}
			fmt.Fprintf(a.Out, "# %s\n", r.Path)
			for _, s := range r.Settings {
				line := fmt.Sprintf("%s = %s", s.Key, s.Value)
				if origin {
					line += "  # " + s.Origin
					if !s.Live {
						line += ", takes effect after a restart"
					}
				}
				fmt.Fprintln(a.Out, line)
			}
			return nil
		})
	show.Flags().BoolVar(&effective, "effective", false, "also those nobody set")
	show.Flags().BoolVar(&origin, "origin", false, "say where each value comes from")
	c.AddCommand(show, a.onHost("reload", "Read the configuration file again and apply what can be applied now", "  openphone config reload",
		func(c *cobra.Command, h *hostClient) error {
			r, err := h.ReloadConfig(c.Context(), &controlv1.ReloadConfigRequest{})
			if err != nil {
				return err
			}
			if a.json {
				a.print(plain(r))
				return nil
			}
			if len(r.Applied)+len(r.Restart) == 0 {
				fmt.Fprintln(a.Out, "nothing has changed")
			}
			for _, k := range r.Applied {
				fmt.Fprintf(a.Out, "%s applied\n", k)
			}
			for _, k := range r.Restart {
				fmt.Fprintf(a.Out, "%s takes effect after a restart: stop openphone up and start it again\n", k)
			}
			return nil
		}))
	return c
}
