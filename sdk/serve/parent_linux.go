package serve

import (
	"context"
	"os"

	"golang.org/x/sys/unix"
)

// waitParent returns true when the process pid, our parent, has ended, and false when ctx ends before. A pid that is not
// our parent was somebody else's promise and is ignored.
func waitParent(ctx context.Context, pid int) bool {
	if os.Getppid() != pid {
		return false
	}
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return pollParent(ctx, pid)
	}
	if os.Getppid() != pid { // it ended in between
		_ = unix.Close(fd)
		return true
	}
	f := os.NewFile(uintptr(fd), "pidfd") // non-blocking, so the runtime waits for it without a thread
	defer f.Close()
	defer context.AfterFunc(ctx, func() { _ = f.Close() })()
	rc, err := f.SyscallConn()
	if err != nil {
		return pollParent(ctx, pid)
	}
	ended := false
	err = rc.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		ended = err == nil && n > 0
		return ended
	})
	if err != nil && ctx.Err() == nil {
		return pollParent(ctx, pid)
	}
	return ended
}
