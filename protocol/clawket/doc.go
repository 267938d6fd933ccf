// Package clawket is the wire format a phone and the host speak over one WebSocket: frames, names, limits, close codes and
// the payloads of the conversations dialect. Both sides use it, the host and the terminal client.
//
// It does no I/O, holds no state and starts no goroutines; it knows nothing of sessions, plugins or tokens at rest. All
// functions are safe for concurrent use. Sizes are bytes of UTF-8 unless a comment says UTF-16 units (what a phone
// counts) or code points.
package clawket
