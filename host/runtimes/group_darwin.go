package runtimes

import (
	"os"
	"os/exec"
	"syscall"
	"unsafe"
)

// group is the process group of a plugin.
type group struct{}

func (*group) prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}

func (*group) adopt(*exec.Cmd) {}
func (*group) release()        {}

// sweep kills what is left of the dead leader's group. The leader must not have been reaped.
func (*group) sweep(leader int, _ func(string) bool) (killed, kept int) {
	_ = syscall.Kill(-leader, syscall.SIGKILL)
	return 0, 0
}

// waitExit blocks until the process has ended and leaves it uncollected.
func waitExit(p *os.Process) {
	const pPID, wExited, wNoWait = 1, 0x4, 0x20
	var info [16]uint64
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pPID, uintptr(p.Pid), uintptr(unsafe.Pointer(&info)), wExited|wNoWait, 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}
