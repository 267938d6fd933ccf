package runtimes

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// sweepPasses bounds how often the sweep looks again: a dying program may have forked in between.
const sweepPasses = 3

// group is the set of processes a plugin started. The leader gets a session of its own, so that children which made a
// process group for themselves are still found; only a program that left the session on purpose escapes.
type group struct{}

func (*group) prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}

func (*group) adopt(*exec.Cmd) {}
func (*group) release()        {}

// sweep kills what is left of the dead leader's group and session. The leader must not have been reaped, so that its
// number is still its own. Programs keep names are left alone when they left the group.
func (*group) sweep(leader int, keep func(string) bool) (killed, kept int) {
	seen := map[int]bool{}
	for range sweepPasses {
		members := sessionMembers(leader)
		kept = 0
		found := false
		for _, m := range members {
			switch {
			case m.pid == leader || m.zombie:
			case m.group != leader && keep != nil && keep(m.name):
				kept++
			default:
				found = true
				if syscall.Kill(m.pid, syscall.SIGKILL) == nil {
					seen[m.pid] = true
				}
			}
		}
		if !found {
			break
		}
	}
	// Whatever forked into the group since the last look.
	_ = syscall.Kill(-leader, syscall.SIGKILL)
	return len(seen), kept
}

type member struct {
	pid, group int
	name       string
	zombie     bool
}

// sessionMembers lists the processes of a session or group.
func sessionMembers(leader int) []member {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var list []member
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		b, err := os.ReadFile("/proc/" + n + "/stat")
		if err != nil {
			continue
		}
		// pid (name) state ppid pgrp session …; the name may hold blanks and brackets.
		open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
		if open < 0 || end < open {
			continue
		}
		f := strings.Fields(string(b[end+1:]))
		if len(f) < 4 {
			continue
		}
		pgrp, _ := strconv.Atoi(f[2])
		session, _ := strconv.Atoi(f[3])
		if session != leader && pgrp != leader {
			continue
		}
		m := member{pid: pid, group: pgrp, name: string(b[open+1 : end]), zombie: f[0] == "Z" || f[0] == "X"}
		if exe, err := os.Readlink("/proc/" + n + "/exe"); err == nil {
			m.name = strings.TrimSuffix(filepath.Base(exe), " (deleted)")
		}
		list = append(list, m)
	}
	return list
}

// waitExit blocks until the process has ended and leaves it uncollected.
func waitExit(p *os.Process) {
	for {
		err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
