// Package phone is the listener phones connect to directly: upgrade rules, authentication, parallel requests, fan-out of
// events and the admission that an update closes. What the frames mean is the business of a Dialect, one per backend.
//
// It knows no runtime, no conversation and nothing durable. A Listener is safe for concurrent use; Run owns every
// goroutine it starts. A dialect is called from many goroutines at once.
package phone

import (
	"context"
	"encoding/json"

	"github.com/openphone-host/openphone/protocol/clawket"
)

// Phone is one pairing, as an Authenticator recognised it.
type Phone struct{ ID, Label string }

// Authenticator judges tokens; host/pairing implements it. Both methods must be safe for concurrent use.
type Authenticator interface {
	// Authenticate gives the id and the label of the phone a token belongs to. It compares in constant time.
	Authenticate(ctx context.Context, backend, token string) (id, label string, ok bool)
	// Valid reports that the pairing still stands; it is asked once more when a socket is already listed, so that a
	// revocation cannot slip between the two.
	Valid(ctx context.Context, phoneID string) bool
}

// Peer is one authenticated phone, as a dialect sees it: a direct socket, or a phone behind a relay.
type Peer interface {
	Phone() Phone
	// Direct: a socket of its own, which may get events it asked for. Everything behind a relay shares its events.
	Direct() bool
	// Event queues a frame and never blocks. See wire.Socket.Event for key.
	Event(frame []byte, key string)
}

// Dialect gives requests their meaning. The listener serves each request on its own goroutine, at most 16 per socket.
type Dialect interface {
	// Serve answers one request. A nil result gives an answer without payload.
	Serve(ctx context.Context, p Peer, method string, params json.RawMessage) (any, error)
	// Failure is what a phone may know about an error: no text of a runtime, a provider or a path.
	Failure(err error) clawket.Failure
	// Join makes p get events from now on; Leave ends that. Each is called once per peer.
	Join(p Peer)
	Leave(p Peer)
}
