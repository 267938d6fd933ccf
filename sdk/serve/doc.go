// Package serve turns a runtime.Runtime into a plugin process: go-plugin's handshake, the gRPC services, event numbers,
// coded errors, capabilities, admission while draining, at-most-once runs, the stdout guard, the watch over the host's
// life and the log on stderr. A plugin's main is
//
//	func main() { serve.Main(agent.New(serve.Logger())) }
//
// The host imports it too, for the handshake and the client's side of the plugin. It must not know any runtime, any
// phone, or how the host keeps anything.
//
// Concurrency: handlers run side by side and call the Runtime from many goroutines; what the contract promises about
// calls that never overlap is kept by the host.
package serve
