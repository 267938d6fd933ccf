package store

import "golang.org/x/sys/windows"

// What file systems say when they cannot be written.
const (
	errReadOnlyFS   = windows.ERROR_WRITE_PROTECT
	errNotDirectory = windows.ERROR_DIRECTORY
	errNoSpace      = windows.ERROR_DISK_FULL
)
