//go:build unix

package conformance

import (
	"os/exec"
	"syscall"
)

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// terminate asks a process to end; false where that cannot be said.
func terminate(pid int) bool { return syscall.Kill(pid, syscall.SIGTERM) == nil }
