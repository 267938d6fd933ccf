//go:build unix

package procnative

import (
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
)

// leaveParent gives the child a session of its own.
func leaveParent(c *exec.Cmd, escape bool) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: escape} }

func ignoreTerm() { signal.Ignore(syscall.SIGTERM) }

func TestTerminateIsPolite(t *testing.T) {
	t.Parallel()
	p := start(t, "sleeper", Spec{})
	p.Terminate()
	if e := wait(t, p); e.Signal != "SIGTERM" || e.Killed {
		t.Errorf("exit = %+v, want SIGTERM", e)
	}
}
