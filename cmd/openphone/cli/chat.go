package cli

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/openphone-host/openphone/cmd/openphone/chat"
)

// maxLine is the longest line chat reads: what a phone may send as one prompt, and more.
const maxLine = 1 << 20

func (a *app) chat() *cobra.Command {
	var o chat.Options
	c := &cobra.Command{
		Use:   "chat",
		Short: "Talk to an agent from this terminal, as a phone would",
		Long: "chat connects to the running host through the same socket as a phone. It streams replies, shows thoughts and\n" +
			"tools, asks before the agent acts, and takes its prompts from the keyboard or from a pipe, one per line; a line\n" +
			"that ends with a backslash goes on in the next. Ctrl-C stops the reply, once more leaves. A pipe that ends\n" +
			"answers nothing: what is still asked is denied.",
		Example: "  openphone chat\n  openphone chat --runtime codex --project ~/src/site\n" +
			"  openphone chat --runtime codex --follow\n  echo 'What does this project do?' | openphone chat --runtime codex",
		Args: noArgs,
	}
	f := c.Flags()
	f.StringVar(&o.Backend, "runtime", "", "which agent to talk to (default: the first that is ready)")
	f.StringVar(&o.Session, "session", "", "continue this conversation (see openphone session list)")
	f.StringVar(&o.Project, "project", "", "start the conversation in this project: its path or name (default: this directory)")
	f.StringVar(&o.Model, "model", "", "choose this model for the conversation")
	f.StringArrayVar(&o.Images, "image", nil, "send this image with the first prompt; may be given several times")
	f.BoolVar(&o.Follow, "follow", false, "join the reply that is running")
	c.RunE = func(c *cobra.Command, _ []string) error {
		t, err := a.terminalPhone(c.Context(), o.Backend)
		if err != nil {
			return err
		}
		defer t.leave()
		if o.Session == "" && !o.Follow {
			t.offer(c.Context(), o.Project)
		}
		o.URL, o.Token, o.Backend = t.url, t.token, t.backend
		o.JSON, o.Out = a.json, a.Out
		o.Interactive = isTerminal(a.In) && isTerminal(a.Out)
		o.Colour = isTerminal(a.Out) && os.Getenv("NO_COLOR") == ""
		o.Lines = lines(a.In)
		interrupts := make(chan os.Signal, 2)
		signal.Notify(interrupts, os.Interrupt)
		defer signal.Stop(interrupts)
		o.Interrupts = interrupts
		err = chat.Run(c.Context(), o)
		if errors.Is(err, chat.ErrRunFailed) {
			return errShown
		}
		return err
	}
	return c
}

func isTerminal(x any) bool {
	f, ok := x.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// lines reads the input line by line. A read of a terminal cannot be called off, so the reader ends with the input or
// with the process, and nobody waits for it.
func lines(r io.Reader) <-chan string {
	out := make(chan string)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(out)
		s := bufio.NewScanner(r)
		s.Buffer(nil, maxLine)
		for s.Scan() {
			out <- s.Text()
		}
	})
	return out
}
