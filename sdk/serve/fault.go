package serve

import (
	"os"
	"strings"
	"sync/atomic"
)

// EnvKillFile names a file that names a kill point. A process that comes to that point removes the file and kills itself,
// so one file is one crash. It is for the fault suite: without the variable the points cost a comparison.
const EnvKillFile = "OPENPHONE_KILL_FILE"

// The twelve points of one send at which a plugin can be made to die. The SDK passes ten of them for every plugin; a
// plugin passes PointDispatching and PointDispatched itself, around the moment its runtime takes the prompt. An event
// point comes before the event is handed to the host, but for PointRunEnded, which comes after it was sent.
const (
	PointPrepareReceived = "prepare.received"
	PointPrepareAnswer   = "prepare.answer"
	PointCommitReceived  = "commit.received"
	PointDispatching     = "commit.dispatching"
	PointDispatched      = "commit.dispatched"
	PointCommitAnswer    = "commit.answer"
	PointRunStarted      = "event.run_started"
	PointFirstText       = "event.first_text"
	PointMidText         = "event.mid_text"
	PointToolCall        = "event.tool_call"
	PointRunEnding       = "event.run_ending"
	PointRunEnded        = "event.run_ended"
)

// Points lists the kill points in the order a send meets them.
func Points() []string {
	return []string{
		PointPrepareReceived, PointPrepareAnswer, PointCommitReceived, PointDispatching, PointDispatched, PointCommitAnswer,
		PointRunStarted, PointFirstText, PointMidText, PointToolCall, PointRunEnding, PointRunEnded,
	}
}

var (
	killFile = os.Getenv(EnvKillFile)
	armed    atomic.Pointer[string]
)

// Arm makes this process die at the next passing of point, for plugins that crash on request.
func Arm(point string) { armed.Store(&point) }

// Fault passes a kill point.
func Fault(point string) {
	if p := armed.Load(); p != nil && *p == point {
		Die()
	}
	if killFile == "" {
		return
	}
	b, err := os.ReadFile(killFile)
	if err != nil || strings.TrimSpace(string(b)) != point || os.Remove(killFile) != nil {
		return
	}
	Die()
}

// Die ends the process as SIGKILL does: nothing is flushed, answered or closed.
func Die() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	<-make(chan struct{}) // never returns; the process is on its way out
}
