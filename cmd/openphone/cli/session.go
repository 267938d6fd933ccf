package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	controlv1 "github.com/openphone-host/openphone/proto/openphone/control/v1"
	"github.com/openphone-host/openphone/protocol/codes"
)

func (a *app) session() *cobra.Command {
	c := &cobra.Command{
		Use: "session", Short: "Look at conversations", Args: noArgs, RunE: help,
		Example: "  openphone session list --runtime codex\n  openphone session show 5f0c",
	}
	c.AddCommand(a.sessionList(), a.sessionShow())
	return c
}

func (a *app) sessionList() *cobra.Command {
	var q controlv1.ListSessionsRequest
	c := a.onHost("list", "List conversations, as phones see them", "  openphone session list\n  openphone session list --runtime codex --archived --json",
		func(c *cobra.Command, h *hostClient) error {
			r, err := h.ListSessions(c.Context(), &q)
			if err != nil {
				return err
			}
			if a.json {
				a.print(plain(r))
				return nil
			}
			list := [][]string{{"RUNTIME", "KEY", "CHANGED", "STATE", "PROJECT", "TITLE"}}
			for _, x := range r.Sessions {
				list = append(list, []string{x.Runtime, x.Key, when(x.UpdatedAt), conversationState(x), x.Project, x.Title})
			}
			rows(a.Out, list)
			return nil
		})
	c.Flags().StringVar(&q.Runtime, "runtime", "", "only this agent's")
	c.Flags().BoolVar(&q.Archived, "archived", false, "archived ones instead")
	return c
}

func conversationState(x *controlv1.Conversation) string {
	switch {
	case x.Attention != "":
		return "asks"
	case x.Active:
		return "running"
	}
	return "idle"
}

func (a *app) sessionShow() *cobra.Command {
	var runtimeID string
	c := &cobra.Command{
		Use: "show KEY", Short: "Show one conversation: its receipts and what waits for an answer", Args: oneArg("conversation"),
		Long:    "show prints what the host knows of a conversation: never more of its text than title and preview.\nKEY may be the beginning of a key, if only one conversation has it.",
		Example: "  openphone session show 5f0c\n  openphone session show 5f0c --runtime codex --json",
	}
	c.Flags().StringVar(&runtimeID, "runtime", "", "the agent it belongs to")
	c.RunE = func(c *cobra.Command, args []string) error {
		h, err := a.dial(c.Context())
		if err != nil {
			return err
		}
		defer h.close()
		q := &controlv1.ShowSessionRequest{Runtime: runtimeID, Key: args[0]}
		if err := complete(c, h, q); err != nil {
			return err
		}
		r, err := h.ShowSession(c.Context(), q)
		if err != nil {
			return err
		}
		if a.json {
			a.print(plain(r))
			return nil
		}
		s := r.GetSession()
		fmt.Fprintf(a.Out, "%s\n%s, %s, changed %s\n", first(s.Title, "(no title)"), s.Runtime, conversationState(s), when(s.UpdatedAt))
		if s.ProjectPath != "" {
			fmt.Fprintf(a.Out, "project %s\n", s.ProjectPath)
		}
		if s.Preview != "" {
			fmt.Fprintf(a.Out, "last: %s\n", s.Preview)
		}
		for _, p := range r.Pending {
			fmt.Fprintf(a.Out, "? %s: answer it with openphone chat --runtime %s --session %s --follow\n", p.Kind, s.Runtime, s.Key)
		}
		if len(r.Receipts) > 0 {
			list := [][]string{{"ACCEPTED", "ENDED", "OUTCOME", "END", "RUN", ""}}
			for _, x := range r.Receipts {
				list = append(list, []string{when(x.AcceptedAt), when(x.EndedAt), x.Outcome, x.End, x.RunId, x.Code})
			}
			rows(a.Out, list)
		}
		return nil
	}
	return c
}

// complete finds the one conversation whose key begins as given.
func complete(c *cobra.Command, h *hostClient, q *controlv1.ShowSessionRequest) error {
	r, err := h.ListSessions(c.Context(), &controlv1.ListSessionsRequest{Runtime: q.Runtime})
	if err != nil {
		return err
	}
	var found []*controlv1.Conversation
	for _, x := range r.Sessions {
		if x.Key == q.Key {
			q.Runtime = x.Runtime
			return nil
		}
		if strings.HasPrefix(x.Key, q.Key) {
			found = append(found, x)
		}
	}
	switch len(found) {
	case 0:
		return codes.New(codes.SessionUnknown)
	case 1:
		q.Runtime, q.Key = found[0].Runtime, found[0].Key
		return nil
	}
	return errUsage{fmt.Errorf("%d conversations begin with %s: give more of the key, see openphone session list", len(found), q.Key)}
}
