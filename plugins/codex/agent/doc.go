// Package agent makes the Codex App Server a runtime of the plugin contract: it owns one app server child, turns its
// turns, items and questions into events, and proves before each prompt that this child may write the thread.
//
// It must not know the host, a phone or a wire format. Codex' own records stay Codex'; all that is kept is one small
// state entry per conversation: its thread, the choices a person confirmed, and the last prompts handed over.
//
// Concurrency: an Agent is safe for concurrent use. Events come from the app server's reader, in the order of the wire.
// The mutex guards memory only and is never held across a call to the app server or the host.
package agent
