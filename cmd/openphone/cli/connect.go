package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/openphone-host/openphone/host/control"
	controlv1 "github.com/openphone-host/openphone/proto/openphone/control/v1"
	"github.com/openphone-host/openphone/protocol/clawket"
)

// hostClient speaks to the running host. Its errors are *codes.Error.
type hostClient struct{ *control.Client }

func (h *hostClient) close() { _ = h.Close() }

// dial prepares the client; the first call tells whether a host is there.
func (a *app) dial(context.Context) (*hostClient, error) {
	dir, err := a.dir()
	if err != nil {
		return nil, err
	}
	c, err := control.Dial(dir)
	if err != nil {
		return nil, err
	}
	return &hostClient{c}, nil
}

// onHost is a command without arguments that talks to the running host.
func (a *app) onHost(name, short, example string, run func(*cobra.Command, *hostClient) error) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Example: example, Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := a.dial(c.Context())
			if err != nil {
				return err
			}
			defer h.close()
			return run(c, h)
		},
	}
}

// terminal is a pairing for one chat: made when it begins, revoked when it ends.
type terminal struct {
	url, token, backend string
	offer               func(ctx context.Context, project string)
	leave               func()
}

// terminalLabel is how phone list shows a chat that is open, or was killed.
const terminalLabel = "terminal"

// terminalPhone pairs this terminal. runtimeID empty: the first runtime that is ready.
func (a *app) terminalPhone(ctx context.Context, runtimeID string) (terminal, error) {
	h, err := a.dial(ctx)
	if err != nil {
		return terminal{}, err
	}
	status, err := h.GetStatus(ctx, &controlv1.GetStatusRequest{})
	if err != nil {
		h.close()
		return terminal{}, err
	}
	if runtimeID, err = choose(status.GetStatus(), runtimeID); err != nil {
		h.close()
		return terminal{}, err
	}
	pairing, err := h.PairDirect(ctx, &controlv1.PairDirectRequest{Label: terminalLabel})
	if err != nil {
		h.close()
		return terminal{}, err
	}
	// A conversation in this terminal is about this directory, or the one that was named; a name that is no directory is
	// looked for among the projects the agent knows.
	offer := func(ctx context.Context, project string) {
		if path, err := filepath.Abs(project); err == nil {
			_, _ = h.OfferProject(ctx, &controlv1.OfferProjectRequest{Path: path})
		}
	}
	t := terminal{backend: runtimeID, offer: offer, leave: func() {
		_, _ = h.RevokePhone(context.WithoutCancel(ctx), &controlv1.RevokePhoneRequest{Id: pairing.PhoneId})
		h.close()
	}}
	at, port, err := net.SplitHostPort(status.GetStatus().GetListen())
	if err != nil {
		t.leave()
		return terminal{}, err
	}
	if ip := net.ParseIP(at); ip == nil || ip.IsUnspecified() {
		at = "127.0.0.1"
	}
	t.url = "ws://" + net.JoinHostPort(at, port) + clawket.Path(runtimeID)
	for _, b := range pairing.Backends {
		if b.Backend == runtimeID {
			t.token = b.Token
		}
	}
	return t, nil
}

// choose finds the runtime to talk to: the named one, else the first that is ready, the demo last.
func choose(s *controlv1.HostStatus, id string) (string, error) {
	best := ""
	for _, r := range s.GetRuntimes() {
		if r.Id == id {
			if state(r) != "ready" && state(r) != "degraded" {
				return "", fmt.Errorf("%s: run openphone doctor", sentence(r))
			}
			return id, nil
		}
		if state(r) == "ready" && (best == "" || best == "demo") {
			best = r.Id
		}
	}
	switch {
	case id != "":
		return "", fmt.Errorf("there is no runtime %q: run openphone runtime list", id)
	case best == "":
		return "", errors.New("no agent is ready: run openphone doctor")
	}
	return best, nil
}
