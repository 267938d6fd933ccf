package modeltest

import (
	"encoding/json"
	"strings"
	"time"
)

// Script is what the model says to one prompt. A script goes on after tool outputs: each run of calls ends one reply,
// and the request that brings their outputs gets the steps after them.
type Script struct {
	// Match is text the prompt must contain; empty matches every prompt. The first matching script wins.
	Match string
	// Once makes the script answer a single prompt; later ones look further down the list.
	Once bool
	// Steps in order. Without a step that ends the reply it ends well.
	Steps []Step
}

// Step is one thing the model does; make it with the functions below.
type Step struct {
	kind      kind
	deltas    []string
	namespace string
	name      string
	input     string
	status    int
	wait      time.Duration
}

type kind int

const (
	kindText kind = iota + 1
	kindReasoning
	kindBreak
	kindCall
	kindCustom
	kindError
	kindFailed
	kindCut
	kindDelay
	kindHang
	kindGate
	kindRaw
)

func (k kind) isCall() bool { return k == kindCall || k == kindCustom }

// Text sends deltas of an assistant message, byte for byte. Text steps continue one message until another kind of
// output or Break; Delay and Gate may stand between them.
func Text(deltas ...string) Step { return Step{kind: kindText, deltas: deltas} }

// Reasoning sends deltas of a thought (a reasoning summary), like Text.
func Reasoning(deltas ...string) Step { return Step{kind: kindReasoning, deltas: deltas} }

// Break ends the open message or thought, so that the next one is another item.
func Break() Step { return Step{kind: kindBreak} }

// Call calls a function. name may be "namespace/name". args is JSON text.
func Call(name, args string) Step {
	s := Step{kind: kindCall, name: name, input: args}
	if ns, rest, ok := strings.Cut(name, "/"); ok {
		s.namespace, s.name = ns, rest
	}
	return s
}

// CallWith calls a function with the JSON of args.
func CallWith(name string, args any) Step {
	b, err := json.Marshal(args)
	if err != nil {
		panic("modeltest: arguments of " + name + ": " + err.Error())
	}
	return Call(name, string(b))
}

// Custom calls a custom (free text) tool of the Responses API; the other two get {"input": …}.
func Custom(name, input string) Step {
	s := Call(name, input)
	s.kind = kindCustom
	return s
}

// Error answers with an HTTP status and a body. It must come before any output of its reply.
func Error(status int, body string) Step { return Step{kind: kindError, status: status, input: body} }

// Failed ends the reply with the API's own failure event.
func Failed(code, message string) Step { return Step{kind: kindFailed, name: code, input: message} }

// Cut breaks the connection without an end.
func Cut() Step { return Step{kind: kindCut} }

// Delay waits, or ends when the client closes.
func Delay(d time.Duration) Step { return Step{kind: kindDelay, wait: d} }

// Hang waits until the client closes.
func Hang() Step { return Step{kind: kindHang} }

// Gate waits until Release(name), or until the client closes.
func Gate(name string) Step { return Step{kind: kindGate, name: name} }

// Raw writes bytes into the stream as they are, for answers that no model should give.
func Raw(bytes string) Step { return Step{kind: kindRaw, input: bytes} }

// Echo is the reply without a script: the prompt, after "echo: ".
func Echo(prompt string) []Step { return []Step{Text("echo: ", prompt)} }

// round gives the steps of one reply: number n of the script, counted from 0. A reply after the last one says "ok".
func round(steps []Step, n int) []Step {
	for start := 0; start < len(steps); n-- {
		end := start
		for end < len(steps) && !steps[end].kind.isCall() {
			end++
		}
		for end < len(steps) && steps[end].kind.isCall() {
			end++
		}
		if n == 0 {
			return steps[start:end]
		}
		start = end
	}
	return []Step{Text("ok")}
}
