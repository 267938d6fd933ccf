// Package pairing is what a QR code of a pairing holds and how its codes are spelled and hashed. It knows neither sockets
// nor where tokens are kept; it does no I/O and is safe for concurrent use.
package pairing

import (
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/jsonframe"
)

// Payload is one pairing offer, whatever its shape in the QR code.
type Payload struct {
	Backend     string
	DisplayName string
	// A direct offer.
	URL   string // ws://ADDR:PORT/v1/<backend>/ws
	Token string // 64 hex digits
	// An offer over a relay.
	Server     string // registry base
	GatewayID  string
	AccessCode string
}

// ErrMalformed says that a text is no pairing offer.
var ErrMalformed = errors.New("not a pairing payload")

// direct is the shape the shipped app reads for a socket on the same network.
type direct struct {
	Version     int    `json:"version"`
	BackendKind string `json:"backendKind"`
	Mode        string `json:"mode"`
	URL         string `json:"url"`
	Token       string `json:"token"`
	DisplayName string `json:"displayName,omitempty"`
}

// own is the shape for backends the shipped app does not know; only clients of ours read it.
type own struct {
	Version     int    `json:"version"`
	Kind        string `json:"kind"` // openphone_direct
	Backend     string `json:"backend"`
	URL         string `json:"url"`
	Token       string `json:"token"`
	DisplayName string `json:"displayName,omitempty"`
}

const ownKind = "openphone_direct"

// overRelay is the current shape for backends other than OpenClaw and Hermes.
type overRelay struct {
	V int    `json:"v"` // 2
	K string `json:"k"` // cp
	B string `json:"b,omitempty"`
	S string `json:"s"`
	G string `json:"g"`
	A string `json:"a"`
	N string `json:"n,omitempty"`
}

// Known reports whether the shipped app can be paired with a backend directly.
func Known(backend string) bool {
	return backend == "codex" || backend == "claude-code" || backend == "pi"
}

// BuildDirect writes the offer of a direct socket. An address that only this computer understands is refused: a phone
// that scans it could never connect.
func BuildDirect(p Payload) (string, error) {
	if err := checkURL(p.URL, p.Backend); err != nil {
		return "", err
	}
	if !tokenForm.MatchString(p.Token) {
		return "", ErrMalformed
	}
	if !Known(p.Backend) {
		return text(own{Version: 1, Kind: ownKind, Backend: p.Backend, URL: p.URL, Token: p.Token, DisplayName: p.DisplayName})
	}
	d := direct{Version: 1, BackendKind: p.Backend, Mode: "local", URL: p.URL, Token: p.Token}
	if p.Backend != "pi" { // the app takes a name from these two only
		d.DisplayName = p.DisplayName
	}
	return text(d)
}

// BuildRelay writes the offer of a pairing over a relay.
func BuildRelay(p Payload) (string, error) {
	if p.Server == "" || p.GatewayID == "" || p.AccessCode == "" {
		return "", ErrMalformed
	}
	return text(overRelay{V: 2, K: "cp", B: p.Backend, S: p.Server, G: p.GatewayID, A: p.AccessCode, N: p.DisplayName})
}

// Parse reads any of the shapes above.
func Parse(scanned string) (Payload, error) {
	var all struct {
		direct
		Kind    string `json:"kind"`
		Backend string `json:"backend"`
		overRelay
	}
	if json.Unmarshal([]byte(strings.TrimSpace(scanned)), &all) != nil {
		return Payload{}, ErrMalformed
	}
	switch {
	case all.V == 2 && all.K == "cp" && all.S != "" && all.G != "" && all.A != "":
		return Payload{Backend: all.B, DisplayName: all.N, Server: all.S, GatewayID: all.G, AccessCode: all.A}, nil
	case all.Version == 1 && all.Mode == "local" && Known(all.BackendKind):
		all.Backend = all.BackendKind
	case all.Version == 1 && all.Kind == ownKind && all.Backend != "":
	default:
		return Payload{}, ErrMalformed
	}
	if checkURL(all.URL, all.Backend) != nil || !tokenForm.MatchString(all.Token) {
		return Payload{}, ErrMalformed
	}
	return Payload{Backend: all.Backend, DisplayName: all.DisplayName, URL: all.URL, Token: all.Token}, nil
}

var tokenForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

func checkURL(text, backend string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "ws" && u.Scheme != "wss" || u.Host == "" || u.User != nil || u.Path != clawket.Path(backend) ||
		u.RawQuery != "" || u.Fragment != "" || u.ForceQuery {
		return ErrMalformed
	}
	if strings.EqualFold(u.Hostname(), "localhost") {
		return ErrMalformed
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && (a.Unmap().IsLoopback() || a.Unmap().IsUnspecified()) {
		return ErrMalformed
	}
	return nil
}

func text(v any) (string, error) {
	b, err := jsonframe.Marshal(v)
	return string(b), err
}
