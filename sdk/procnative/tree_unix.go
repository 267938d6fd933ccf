//go:build unix

package procnative

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// killRounds bounds how often the tree is looked at before it is killed; a tree that still grows is killed as it is.
const killRounds = 8

// prepare sets what the platform needs before the start.
func prepare(cmd *exec.Cmd, detach bool) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if detach {
		cmd.SysProcAttr.Setsid = true
		return nil
	}
	dieWithParent(cmd.SysProcAttr)
	return nil
}

func terminate(cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGTERM) }

// exitOf reads the end of a process.
func exitOf(cmd *exec.Cmd, err error) Exit {
	st := cmd.ProcessState
	if st == nil {
		return Exit{Code: -1}
	}
	e := Exit{Code: st.ExitCode()}
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Signal = unix.SignalName(ws.Signal())
	}
	return e
}

// group has no state on Unix: the tree is found when it is needed.
type group struct{}

func (group) adopt(*exec.Cmd) error { return nil }

// kill stops the tree from growing, then kills it.
func (group) kill(root Identity, mark string) {
	if !Alive(root) {
		root.PID = 0 // collected already: its number may be somebody else's
	}
	stopped := map[int]bool{}
	for range killRounds {
		grown := false
		for _, pid := range tree(root.PID, mark) {
			if !stopped[pid] {
				stopped[pid], grown = true, true
				_ = unix.Kill(pid, unix.SIGSTOP)
			}
		}
		if !grown {
			break
		}
	}
	for pid := range stopped {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// sweep kills what carries the mark after the root is gone. The root's number may belong to somebody else by now, so only
// the mark counts.
func (group) sweep(_ Identity, mark string) {
	for range killRounds {
		left := tree(0, mark)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}
