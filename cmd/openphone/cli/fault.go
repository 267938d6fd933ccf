//go:build fault

package cli

import (
	"os"
	"slices"

	"github.com/openphone-host/openphone/host/sessions"
)

// A build for the fault tests dies at the point that OPENPHONE_FAULT names (see sessions.KillPoints), the hard way:
// nothing is flushed, nobody is told.
func init() {
	at := os.Getenv("OPENPHONE_FAULT")
	if at != "" && !slices.ContainsFunc(sessions.KillPoints, func(p sessions.KillPoint) bool { return p.Name == at }) {
		panic("OPENPHONE_FAULT names no point: " + at) // or the test would prove nothing
	}
	fault = func(point string) {
		if point != at {
			return
		}
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			_ = p.Kill()
		}
		select {}
	}
}
