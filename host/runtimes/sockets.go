package runtimes

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
)

// longestSocketDir leaves room for go-plugin's own directory and file names: a socket's path has about 100 bytes.
const longestSocketDir = 55

// socketName picks the first name that is short enough.
func socketName(dataDir string) string {
	sum := sha256.Sum256([]byte(dataDir))
	name := "openphone-" + itoa(max(os.Getuid(), 0)) + "-" + hex.EncodeToString(sum[:4])
	for _, dir := range []string{filepath.Join(dataDir, "run"), filepath.Join(os.TempDir(), name), "/tmp/" + name} {
		if len(dir) <= longestSocketDir {
			return dir
		}
	}
	return filepath.Join(os.TempDir(), name) // sockets have no paths here, or none of ours would help
}

// socketDir makes the private directory of all plugin sockets. It has the same name at every start of a host, so that
// what a killed host left there goes away. The data directory's lock keeps a second host out.
func socketDir(dataDir string) (string, error) {
	dir := socketName(dataDir)
	if info, err := os.Lstat(dir); err == nil {
		if !info.IsDir() || !private(info) {
			// Somebody else made it: take another name rather than its contents.
			return os.MkdirTemp("", "openphone-")
		}
		if err := os.RemoveAll(dir); err != nil {
			return "", err
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	return dir, nil
}
