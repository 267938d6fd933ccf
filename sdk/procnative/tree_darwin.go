package procnative

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// zombie is the kernel's SZOMB.
const zombie = 5

// dieWithParent has no counterpart here: the host's kill of the process group, and the end of standard input, remain.
func dieWithParent(*syscall.SysProcAttr) {}

// startTime is in microseconds.
func startTime(pid int) (uint64, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0, err
	}
	if k.Proc.P_stat == zombie || int(k.Proc.P_pid) != pid {
		return 0, ErrNotRunning
	}
	t := k.Proc.P_starttime
	return uint64(t.Sec)*1e6 + uint64(t.Usec), nil
}

// tree lists the descendants of root, itself included. The environment of others cannot be read cheaply here, so a
// process that left its parent is only found through the process group.
func tree(root int, _ string) []int {
	if root == 0 {
		return nil
	}
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return []int{root}
	}
	children := map[int][]int{}
	for i := range all {
		pid := int(all[i].Proc.P_pid)
		if pid == os.Getpid() || all[i].Proc.P_stat == zombie {
			continue
		}
		children[int(all[i].Eproc.Ppid)] = append(children[int(all[i].Eproc.Ppid)], pid)
	}
	list := []int{root}
	for i := 0; i < len(list); i++ {
		list = append(list, children[list[i]]...)
	}
	return list
}
