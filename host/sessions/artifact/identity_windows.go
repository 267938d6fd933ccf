package artifact

import (
	"os"

	"golang.org/x/sys/windows"
)

func identify(f *os.File) (id identity, links uint64, err error) {
	var i windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &i); err != nil {
		return id, 0, err
	}
	return identity{
		dev: uint64(i.VolumeSerialNumber), ino: uint64(i.FileIndexHigh)<<32 | uint64(i.FileIndexLow),
		size:  int64(i.FileSizeHigh)<<32 | int64(i.FileSizeLow),
		mtime: i.LastWriteTime.Nanoseconds(), ctime: i.CreationTime.Nanoseconds(),
	}, uint64(i.NumberOfLinks), nil
}
