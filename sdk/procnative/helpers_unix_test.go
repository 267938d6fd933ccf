//go:build unix

package procnative

import (
	"os/exec"
	"os/signal"
	"syscall"
)

// leaveParent gives the child a session of its own.
func leaveParent(c *exec.Cmd, escape bool) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: escape} }

func ignoreTerm() { signal.Ignore(syscall.SIGTERM) }
