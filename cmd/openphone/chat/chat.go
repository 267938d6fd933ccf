package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/openphone-host/openphone/protocol/clawket"
)

// ErrRunFailed says that a reply failed; what there is to say about it has been shown.
var ErrRunFailed = errors.New("a reply failed")

// errLeft is how a person leaves.
var errLeft = errors.New("left")

// Options say what to talk to and how. The zero value of the rest starts a new conversation.
type Options struct {
	URL, Backend, Token string

	Session string   // key, or an unambiguous beginning of it; empty: a new one
	Project string   // id, path or name; empty: the working directory where the runtime knows it
	Model   string   // id
	Images  []string // files to send with the first prompt, at most 6
	Follow  bool     // join the reply that is running
	JSON    bool     // write every update as a JSON line instead of text

	Out         io.Writer
	Colour      bool
	Interactive bool             // a person types: the input echoes by itself
	Lines       <-chan string    // the input by lines; closed at its end
	Interrupts  <-chan os.Signal // Ctrl-C
}

// terminal is one conversation in a terminal.
type terminal struct {
	Options
	phone    *socket
	screen   *screen
	session  string
	run      string // the reply that is running; empty: none
	stopping bool
	failed   bool
	ended    bool   // the input is at its end
	draft    string // lines of a prompt that goes on
	asks     []*ask
	tools    map[string]string // call id → title
	images   []clawket.Attachment
}

// Run talks until the input ends or the person leaves. It returns after everything it started has ended.
func Run(ctx context.Context, o Options) error {
	c := &terminal{Options: o, screen: newScreen(o.Out, o.Colour), tools: map[string]string{}}
	if o.JSON {
		c.screen = newScreen(io.Discard, false)
	}
	var err error
	if c.images, err = readImages(o.Images); err != nil {
		return err
	}
	if c.phone, err = dial(ctx, o.URL, o.Backend); err != nil {
		return err
	}
	serving, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { _ = c.phone.Serve(serving) })
	err = c.talk(ctx)
	c.screen.end()
	c.phone.Close()
	cancel()
	wg.Wait()
	switch {
	case errors.Is(err, errLeft):
		return nil
	case err == nil && c.failed && !c.Interactive:
		return ErrRunFailed
	}
	return err
}

func (c *terminal) talk(ctx context.Context) error {
	if err := c.phone.Connect(ctx, c.Token); err != nil {
		return err
	}
	if err := c.open(ctx); err != nil {
		return err
	}
	if c.JSON {
		ready, _ := clawket.Marshal(map[string]string{"type": "ready", "backend": c.Backend, "sessionKey": c.session})
		fmt.Fprintf(c.Out, "%s\n", ready)
	}
	c.invite()
	for c.run != "" || !c.ended {
		var lines <-chan string // a line is taken only when somebody waits for one
		if !c.ended && (len(c.asks) > 0 || c.run == "") {
			lines = c.Lines
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.phone.done:
			return fmt.Errorf("the connection to the host was lost: %w", c.phone.err())
		case <-c.phone.ready:
			for _, u := range c.phone.drain() {
				if err := c.handle(ctx, u); err != nil {
					return err
				}
			}
		case line, ok := <-lines:
			if err := c.input(ctx, strings.TrimRight(line, "\r"), ok); err != nil {
				return err
			}
		case <-c.Interrupts:
			if c.run == "" || c.stopping {
				return errLeft
			}
			c.stop(ctx)
		}
	}
	return nil
}

// invite asks for the next prompt; nobody needs it when the input is not typed.
func (c *terminal) invite() {
	if c.Interactive && c.run == "" && len(c.asks) == 0 && !c.ended {
		c.screen.end()
		c.screen.write(bold, "> ")
	}
}

func (c *terminal) input(ctx context.Context, line string, ok bool) error {
	if !ok {
		c.ended = true
		for len(c.asks) > 0 {
			if err := c.dismiss(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	if c.Interactive {
		c.screen.start = true // the terminal echoed the line feed
	} else if len(c.asks) > 0 {
		c.screen.write(plain, line+"\n")
	} else if c.draft != "" {
		c.screen.line(bold, "  %s", line)
	} else if strings.TrimSpace(line) != "" {
		c.screen.line(bold, "> %s", line)
	}
	if len(c.asks) > 0 {
		return c.answer(ctx, line)
	}
	if more, goesOn := strings.CutSuffix(line, `\`); goesOn { // the prompt goes on in the next line
		c.draft += more + "\n"
		if c.Interactive {
			c.screen.write(dim, "  ")
		}
		return nil
	}
	line, c.draft = c.draft+line, ""
	if strings.TrimSpace(line) == "" {
		c.invite()
		return nil
	}
	return c.send(ctx, line)
}

func (c *terminal) send(ctx context.Context, text string) error {
	params := map[string]any{"sessionKey": c.session, "text": text, "idempotencyKey": newID()}
	if len(c.images) > 0 {
		params["attachments"] = c.images
	}
	c.screen.begin()
	var sent struct {
		RunID string `json:"runId"`
	}
	err := c.phone.Call(ctx, clawket.MethodChatSend, params, &sent)
	if f := (*failure)(nil); errors.As(err, &f) {
		c.screen.line(red, "! %s", f.Message)
		c.failed = true
		c.invite()
		return nil
	}
	if err != nil {
		return err
	}
	c.images, c.run, c.stopping = nil, sent.RunID, false
	return nil
}

func (c *terminal) stop(ctx context.Context) {
	c.stopping = true
	c.screen.line(dim, "(stopping; Ctrl-C again leaves)")
	if err := c.phone.Call(ctx, clawket.MethodChatAbort, map[string]string{"sessionKey": c.session, "runId": c.run}, nil); err != nil {
		c.screen.line(red, "! %v", err)
	}
}

// handle shows one update of this conversation.
func (c *terminal) handle(ctx context.Context, u update) error {
	if u.SessionKey != c.session {
		return nil
	}
	if c.JSON {
		fmt.Fprintf(c.Out, "%s\n", u.raw)
	}
	switch u.Type {
	case clawket.UpdateRunStarted:
		if c.run == "" {
			c.run, c.stopping = u.RunID, false
			c.screen.begin()
			c.screen.line(dim, "(a reply begun elsewhere)")
		}
	case clawket.UpdateMessageChunk:
		if u.RunID == c.run && u.Text != nil {
			c.screen.chunk(*u.Text, u.TextMode)
		}
	case clawket.UpdateThoughtChunk:
		if u.RunID == c.run && u.Text != nil {
			c.screen.thought(*u.Text)
		}
	case clawket.UpdateToolCall, clawket.UpdateToolCallUpdate:
		if u.Type == clawket.UpdateToolCall {
			c.tools[u.ToolCallID] = u.Title
		}
		c.screen.tool(u.Update, c.tools[u.ToolCallID])
	case clawket.UpdateApprovalRequested:
		if u.Approval != nil {
			return c.asked(ctx, &ask{approval: u.Approval})
		}
	case clawket.UpdateQuestionRequested:
		if u.Question != nil {
			return c.asked(ctx, &ask{question: u.Question, answers: map[string][]string{}})
		}
	case clawket.UpdateApprovalResolved:
		c.resolved(u.ApprovalID, u.Decision)
	case clawket.UpdateQuestionResolved:
		c.resolved(u.QuestionID, "")
	case clawket.UpdateCompaction:
		c.screen.line(dim, "(compaction: %s)", u.Phase)
	case clawket.UpdateSystemEvent:
		if u.Text != nil {
			c.screen.line(dim, "(%s)", *u.Text)
		}
	case clawket.UpdateError:
		var text string
		_ = json.Unmarshal(u.Message, &text)
		c.screen.line(red, "! %s", text)
	case clawket.UpdateRunFinished:
		if u.RunID != c.run {
			return nil
		}
		c.failed = !c.screen.finished(u.Update) || c.failed
		c.run = ""
		clear(c.tools)
		c.invite()
	}
	return nil
}

// asked queues an ask; the first one is shown.
func (c *terminal) asked(ctx context.Context, a *ask) error {
	for _, known := range c.asks {
		if known.id() == a.id() {
			return nil
		}
	}
	c.asks = append(c.asks, a)
	if len(c.asks) > 1 {
		return nil
	}
	if c.ended {
		c.show(a)
		c.screen.end()
		return c.dismiss(ctx)
	}
	c.show(a)
	return nil
}
