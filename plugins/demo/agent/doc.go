// Package agent is a scripted runtime: a prompt is a little program, and its reply is what the program says. It exists to
// show every part of the contract to a person without any agent installed, to be the reference of the conformance kit,
// and to crash, hang and refuse on request in the fault suite.
//
// A prompt is read line by line. A line that begins with a slash is a command, any other line is echoed word by word. The
// commands are listed in script.go and in plugins/demo/README.md.
//
// What a real runtime would keep, the demo keeps in its data directory: one journal of conversations, prompts, replies
// and ends, plus attached files. So it survives its own death honestly: a prompt that is not in the journal was never
// seen, one with an end has ended, and one without is interrupted, unless it began with /survive: then it goes on by the
// clock as if a native process had outlived the plugin.
//
// Concurrency: Agent is safe for concurrent use. Each run has one goroutine, which alone emits the run's events.
package agent
