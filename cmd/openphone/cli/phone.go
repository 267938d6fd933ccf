package cli

import (
	"fmt"
	"time"

	"github.com/mdp/qrterminal/v3"
	"github.com/spf13/cobra"

	controlv1 "github.com/openphone-host/openphone/proto/openphone/control/v1"
)

func (a *app) pair() *cobra.Command {
	var q controlv1.PairDirectRequest
	var direct bool
	c := a.onHost("pair", "Pair a phone with this computer", "  openphone pair --direct\n  openphone pair --direct --label 'Ada’s phone' --json",
		func(c *cobra.Command, h *hostClient) error {
			if !direct {
				return errUsage{fmt.Errorf("say how the phone connects: run openphone pair --direct for a phone on the same network")}
			}
			r, err := h.PairDirect(c.Context(), &q)
			if err != nil {
				return err
			}
			if a.json {
				a.print(plain(r))
				return nil
			}
			for _, b := range r.Backends {
				fmt.Fprintf(a.Out, "%s\n  url    %s\n  token  %s\n", b.Backend, b.Url, b.Token)
				if b.Qr != "" {
					qrterminal.GenerateHalfBlock(b.Qr, qrterminal.L, a.Out)
				}
			}
			if r.Notice != "" {
				fmt.Fprintf(a.Out, "! %s\n", r.Notice)
			}
			fmt.Fprintf(a.Out, "Use it within 10 minutes, or it is void. Take it back with: openphone phone revoke %s\n", r.PhoneId)
			return nil
		})
	c.Long = "pair makes a token for one phone and shows it once. With --direct the phone connects to this computer itself, over\n" +
		"the network both are in; it reads the QR code, or takes address and token by hand."
	c.Flags().BoolVar(&direct, "direct", false, "for a phone that reaches this computer directly")
	c.Flags().StringVar(&q.Label, "label", "", "name for the phone")
	return c
}

func (a *app) phone() *cobra.Command {
	c := &cobra.Command{
		Use: "phone", Short: "List and revoke paired phones", Args: noArgs, RunE: help,
		Example: "  openphone phone list\n  openphone phone revoke 'Ada’s phone'",
	}
	revoke := &cobra.Command{
		Use: "revoke PHONE", Short: "End a pairing; its connections are closed within a second", Args: oneArg("phone"),
		Example: "  openphone phone revoke 3f2a\n  openphone phone revoke 'Ada’s phone' --json",
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.dial(c.Context())
			if err != nil {
				return err
			}
			defer h.close()
			r, err := h.RevokePhone(c.Context(), &controlv1.RevokePhoneRequest{Id: args[0]})
			if err != nil {
				return err
			}
			if a.json {
				a.print(plain(r))
				return nil
			}
			fmt.Fprintf(a.Out, "%s (%s) is revoked\n", first(r.GetPhone().GetLabel(), "the phone"), r.GetPhone().GetId())
			return nil
		},
	}
	c.AddCommand(
		a.onHost("list", "List paired phones", "  openphone phone list\n  openphone phone list --json", func(c *cobra.Command, h *hostClient) error {
			r, err := h.ListPhones(c.Context(), &controlv1.ListPhonesRequest{})
			if err != nil {
				return err
			}
			if a.json {
				a.print(plain(r))
				return nil
			}
			list := [][]string{{"PHONE", "LABEL", "PAIRED", "LAST USED", "STATE"}}
			for _, x := range r.Phones {
				list = append(list, []string{x.Id, x.Label, when(x.CreatedAt), when(x.LastUsed), phoneState(x)})
			}
			rows(a.Out, list)
			return nil
		}),
		revoke,
	)
	return c
}

// unusedLife is how long a pairing waits for its phone.
const unusedLife = 10 * time.Minute

func phoneState(x *controlv1.Phone) string {
	switch {
	case x.RevokedAt != nil:
		return "revoked"
	case x.Sockets > 0:
		return "connected"
	case x.FirstUsed == nil && time.Since(x.CreatedAt.AsTime()) > unusedLife:
		return "void, never used"
	case x.FirstUsed == nil:
		return "waits for its phone"
	}
	return "away"
}
