//go:build unix

package agent

import (
	"io/fs"
	"syscall"
)

// singleLink reports that a file has exactly one name.
func singleLink(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 1
}
