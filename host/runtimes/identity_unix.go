//go:build linux || darwin

package runtimes

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// identity changes whenever the content of a file may have changed: the change time cannot be set by programs.
func identity(info fs.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d:%d:%d:%d", s.Dev, s.Ino, s.Size, info.ModTime().UnixNano(), changed(info).UnixNano())
}

func changed(info fs.FileInfo) time.Time {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Now()
	}
	return changeTime(s)
}

// private: it belongs to this user and nobody else can enter.
func private(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid() && info.Mode().Perm()&0o077 == 0
}
