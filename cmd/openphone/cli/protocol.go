package cli

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/openphone-host/openphone/protocol/openphone"
)

func (a *app) protocol() *cobra.Command {
	c := &cobra.Command{
		Use:     "protocol",
		Short:   "Work on the manifests of the OpenPhone protocol",
		Example: "  openphone protocol validate protocol/openphone-*.json",
		Args:    noArgs,
		RunE:    help,
	}
	c.AddCommand(a.protocolValidate())
	return c
}

func (a *app) protocolValidate() *cobra.Command {
	var against []string
	c := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Say everything that is wrong with manifests",
		Long: "Reads manifests of commands, events and capabilities and the schema file, and says everything that is wrong with them:\n" +
			"the file, the place in it as a JSON pointer, and a sentence. What a file needs of another is taken from the files\n" +
			"given, or from those built into this program. With --against it also names what would break readers of an older\n" +
			"release and needs a higher version.",
		Example: "  openphone protocol validate protocol/openphone-*.json\n" +
			"  openphone protocol validate --json openphone-commands.json\n" +
			"  openphone protocol validate --against released/openphone-commands.json openphone-commands.json",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return nil
			}
			return errUsage{fmt.Errorf("%s needs at least one file: run %s --help", c.CommandPath(), c.CommandPath())}
		},
		RunE: func(_ *cobra.Command, args []string) error {
			files, bad := readManifests(args)
			released, unread := readManifests(against)
			bad = append(bad, unread...)
			bad = append(bad, openphone.Validate(files...)...)
			bad = append(bad, openphone.Compare(released, files)...)
			return a.showViolations(len(args), bad)
		},
	}
	c.Flags().StringArrayVar(&against, "against", nil, "manifest of an older release to compare with (may be repeated)")
	return c
}

func (a *app) showViolations(files int, bad openphone.Violations) error {
	switch {
	case a.json:
		a.print(map[string]any{"valid": len(bad) == 0, "violations": append(openphone.Violations{}, bad...)})
	case len(bad) > 0:
		for _, v := range bad {
			fmt.Fprintln(a.Out, v)
		}
	case files == 1:
		fmt.Fprintln(a.Out, "1 file is valid.")
	default:
		fmt.Fprintf(a.Out, "%d files are valid.\n", files)
	}
	if len(bad) > 0 {
		return errShown
	}
	return nil
}

// readManifests reads what can be read; the rest is a violation like any other, so that one run says everything.
func readManifests(paths []string) (files []openphone.File, bad openphone.Violations) {
	for _, p := range paths {
		data, err := openphone.ReadFile(p)
		if err != nil {
			var where *fs.PathError
			if errors.As(err, &where) {
				err = where.Err // the path stands in front already
			}
			bad = append(bad, openphone.Violation{File: p, Message: "this cannot be read: " + err.Error()})
			continue
		}
		files = append(files, openphone.File{Name: p, Data: data})
	}
	return files, bad
}
