package artifact

import (
	"os"

	"golang.org/x/sys/unix"
)

func identify(f *os.File) (id identity, links uint64, err error) {
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return id, 0, err
	}
	return identity{s.Dev, s.Ino, s.Size, s.Mtim.Nano(), s.Ctim.Nano()}, uint64(s.Nlink), nil
}
