//go:build !windows

package config

import "github.com/google/renameio/v2"

// write replaces a file whole.
func write(path string, b []byte) error { return renameio.WriteFile(path, b, 0o600) }
