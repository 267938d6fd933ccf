//go:build unix

package serve

import (
	"os"

	"golang.org/x/sys/unix"
)

// takeStdout moves standard output to a descriptor of its own, which no child inherits, and leads the old one to standard
// error.
func takeStdout() (*os.File, error) {
	fd, err := unix.FcntlInt(os.Stdout.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	if err := unix.Dup2(int(realStderr.Fd()), 1); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "handshake"), nil
}
