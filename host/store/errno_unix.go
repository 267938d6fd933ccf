//go:build !windows

package store

import "syscall"

// What file systems say when they cannot be written.
const (
	errReadOnlyFS   = syscall.EROFS
	errNotDirectory = syscall.ENOTDIR
	errNoSpace      = syscall.ENOSPC
)
