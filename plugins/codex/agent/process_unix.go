//go:build unix

package agent

import (
	"os"
	"os/exec"
	"syscall"
)

func prepareCommand(*exec.Cmd) {}

func terminate(p *os.Process) { _ = p.Signal(syscall.SIGTERM) }
