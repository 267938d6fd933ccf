package procnative

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// stat reads parent, state and start time of a process.
func stat(pid int) (ppid int, state byte, start uint64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, 0, err
	}
	// The name in parentheses may hold anything, also spaces and parentheses.
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return 0, 0, 0, ErrNotRunning
	}
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 20 {
		return 0, 0, 0, ErrNotRunning
	}
	ppid, _ = strconv.Atoi(f[1])
	start, err = strconv.ParseUint(f[19], 10, 64)
	return ppid, f[0][0], start, err
}

// startTime is in clock ticks since the computer started. A process that only waits to be collected has ended.
func startTime(pid int) (uint64, error) {
	_, state, start, err := stat(pid)
	if err == nil && (state == 'Z' || state == 'X') {
		err = ErrNotRunning
	}
	return start, err
}

// tree lists the descendants of root, itself included, and every process that carries the mark. root 0: the mark alone.
func tree(root int, mark string) []int {
	dir, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	want := []byte(treeEnv + "=" + mark)
	children := map[int][]int{}
	in := map[int]bool{}
	self := os.Getpid()
	for _, d := range dir {
		pid, err := strconv.Atoi(d.Name())
		if err != nil || pid == self {
			continue
		}
		ppid, state, _, err := stat(pid)
		if err != nil || state == 'Z' || state == 'X' {
			continue
		}
		children[ppid] = append(children[ppid], pid)
		if pid == root {
			in[pid] = true
		} else if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); err == nil && marked(env, want) {
			in[pid] = true
		}
	}
	var list []int
	for pid := range in {
		list = append(list, pid)
	}
	for i := 0; i < len(list); i++ {
		for _, c := range children[list[i]] {
			if !in[c] {
				in[c] = true
				list = append(list, c)
			}
		}
	}
	return list
}

func marked(env, want []byte) bool {
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(v, want) {
			return true
		}
	}
	return false
}
