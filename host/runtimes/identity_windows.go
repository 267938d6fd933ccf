package runtimes

import (
	"io/fs"
	"time"
)

// identity is empty: nothing here changes for certain with the content, so checksums are always computed.
func identity(fs.FileInfo) string { return "" }

func changed(fs.FileInfo) time.Time { return time.Now() }

func private(fs.FileInfo) bool { return true }
