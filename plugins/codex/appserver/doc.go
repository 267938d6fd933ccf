// Package appserver is a client of the Codex App Server: JSON-RPC without a version member, one object per line, over
// the standard input and output of a `codex app-server` child. It also knows where the executable is found.
//
// It must not know the plugin contract, the host or any phone: it speaks Codex and nothing else. Only the methods of
// methods.go can be called, so nothing a phone says can reach a native method that is not written down there.
//
// Concurrency: a Client is safe for concurrent use. Notifications and server requests are handed over by the one
// goroutine of Run, in the order of the wire; a handler that blocks holds up the answers behind it.
package appserver
