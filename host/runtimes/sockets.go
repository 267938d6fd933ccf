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

// socketDir makes the private directory of all plugin sockets. It has the same name at every start of a host, so that
// what a killed host left there goes away. The data directory's lock keeps a second host out.
func socketDir(dataDir string) (string, error) {
	dir := filepath.Join(dataDir, "run")
	if len(dir) > longestSocketDir {
		sum := sha256.Sum256([]byte(dataDir))
		dir = filepath.Join(os.TempDir(), "openphone-"+itoa(max(os.Getuid(), 0))+"-"+hex.EncodeToString(sum[:4]))
	}
	if len(dir) > longestSocketDir {
		return os.MkdirTemp("/tmp", "openphone-")
	}
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
