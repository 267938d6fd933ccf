package cli

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Versions of the plugin contract this build speaks.
const (
	contractMajor = 1
	contractMinor = 0
)

type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Dirty    bool   `json:"dirty,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Contract struct {
		Majors []int  `json:"majors"`
		Min    string `json:"min"`
		Max    string `json:"max"`
	} `json:"contract"`
}

// build reads what the compiler stamped into the executable; nothing is written by hand.
func build() versionInfo {
	v := versionInfo{Version: "devel", Go: goruntime.Version(), Platform: goruntime.GOOS + "/" + goruntime.GOARCH}
	v.Contract.Majors = []int{contractMajor}
	v.Contract.Min = fmt.Sprintf("%d.0", contractMajor)
	v.Contract.Max = fmt.Sprintf("%d.%d", contractMajor, contractMinor)
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if m := info.Main.Version; m != "" && m != "(devel)" {
		v.Version = m
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Dirty = s.Value == "true"
		}
	}
	return v
}

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program and of the plugin contract it speaks",
		Example: "  openphone version\n  openphone version --json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			v := build()
			if a.json {
				a.print(v)
				return nil
			}
			fmt.Fprintf(a.Out, "openphone %s", v.Version)
			if len(v.Commit) >= 12 {
				fmt.Fprintf(a.Out, " (%s)", v.Commit[:12])
			}
			fmt.Fprintf(a.Out, ", plugin contract %s, %s, %s\n", v.Contract.Max, v.Go, v.Platform)
			return nil
		},
	}
}

func (a *app) completion() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Print the completion script of a shell: bash, zsh, fish or powershell",
		Example:   "  openphone completion bash > /etc/bash_completion.d/openphone\n  source <(openphone completion zsh)",
		ValidArgs: shells,
		Args:      oneArg("shell"),
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.Out, true)
			case "zsh":
				return root.GenZshCompletion(a.Out)
			case "fish":
				return root.GenFishCompletion(a.Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.Out)
			}
			return errUsage{fmt.Errorf("there is no completion for %q: choose one of %v", args[0], shells)}
		},
	}
}
