package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	controlv1 "github.com/openphone-host/openphone/proto/openphone/control/v1"
)

func (a *app) runtime() *cobra.Command {
	c := &cobra.Command{
		Use:     "runtime",
		Short:   "List and steer the agents this host serves",
		Example: "  openphone runtime list\n  openphone runtime restart codex\n  openphone runtime enable codex",
		Args:    noArgs,
		RunE:    help,
	}
	c.AddCommand(
		a.onHost("list", "List every agent that was found", "  openphone runtime list\n  openphone runtime list --json", a.runtimeList),
		a.onRuntime("restart", "End an agent's plugin and start it again; also after it was paused for stopping too often",
			func(c *cobra.Command, h *hostClient, id string) (*controlv1.RuntimeStatus, error) {
				r, err := h.RestartRuntime(c.Context(), &controlv1.RestartRuntimeRequest{Id: id})
				return r.GetRuntime(), err
			}),
		a.onRuntime("enable", "Trust the plugin as it lies there now, by its checksum, and start it",
			func(c *cobra.Command, h *hostClient, id string) (*controlv1.RuntimeStatus, error) {
				r, err := h.EnableRuntime(c.Context(), &controlv1.EnableRuntimeRequest{Id: id})
				return r.GetRuntime(), err
			}),
		a.onRuntime("upgrade", "Switch to the plugin as it lies there now; goes back to the old one when it does not work",
			func(c *cobra.Command, h *hostClient, id string) (*controlv1.RuntimeStatus, error) {
				r, err := h.UpgradeRuntime(c.Context(), &controlv1.UpgradeRuntimeRequest{Id: id})
				return r.GetRuntime(), err
			}),
		a.runtimeDisable(),
	)
	return c
}

func (a *app) runtimeDisable() *cobra.Command {
	var force bool
	c := a.onRuntime("disable", "End an agent's plugin and keep it ended; its conversations and phones are kept",
		func(c *cobra.Command, h *hostClient, id string) (*controlv1.RuntimeStatus, error) {
			r, err := h.DisableRuntime(c.Context(), &controlv1.DisableRuntimeRequest{Id: id, Force: force})
			return r.GetRuntime(), err
		})
	c.Flags().BoolVar(&force, "force", false, "although replies are running")
	return c
}

// onRuntime is a command about one runtime that answers with its status.
func (a *app) onRuntime(verb, short string, do func(*cobra.Command, *hostClient, string) (*controlv1.RuntimeStatus, error)) *cobra.Command {
	return &cobra.Command{
		Use: verb + " RUNTIME", Short: short, Args: oneArg("runtime"),
		Example: fmt.Sprintf("  openphone runtime %s codex\n  openphone runtime %s demo --json", verb, verb),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.dial(c.Context())
			if err != nil {
				return err
			}
			defer h.close()
			r, err := do(c, h, args[0])
			if err != nil {
				return err
			}
			if a.json {
				a.print(plain(r))
				return nil
			}
			fmt.Fprintln(a.Out, sentence(r))
			return nil
		},
	}
}

func (a *app) runtimeList(c *cobra.Command, h *hostClient) error {
	r, err := h.ListRuntimes(c.Context(), &controlv1.ListRuntimesRequest{})
	if err != nil {
		return err
	}
	if a.json {
		a.print(plain(r))
		return nil
	}
	list := [][]string{{"RUNTIME", "STATE", "PLUGIN", "AGENT", "MODEL", "SINCE", ""}}
	for _, x := range r.Runtimes {
		list = append(list, []string{x.Id, state(x), x.PluginVersion, x.NativeVersion, x.ModelId, when(x.Since), x.Message})
	}
	rows(a.Out, list)
	return nil
}

// state is one word for how a runtime is: the plugin's, unless the agent behind it is what matters.
func state(r *controlv1.RuntimeStatus) string {
	if r.State == "ready" && r.Condition != "" && r.Condition != "ready" {
		return r.Condition
	}
	return r.State
}

func sentence(r *controlv1.RuntimeStatus) string {
	s := fmt.Sprintf("%s is %s", r.Id, state(r))
	if r.NativeVersion != "" && state(r) == "ready" {
		s += fmt.Sprintf(" (%s)", r.NativeVersion)
	}
	if r.Message != "" && state(r) != "ready" {
		s += ": " + r.Message
	}
	return s
}
