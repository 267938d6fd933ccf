//go:build !windows

package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// longestSocket is how long the path of a unix socket may be on every system, with some room.
const longestSocket = 90

// address is where the host with this data directory offers its socket: inside it, or in a private directory of the user
// when the path is too long for a socket.
func address(dir string) string {
	path := filepath.Join(dir, "control.sock")
	if len(path) <= longestSocket {
		return path
	}
	sum := sha256.Sum256([]byte(filepath.Clean(dir)))
	return filepath.Join("/tmp", "openphone-"+strconv.Itoa(os.Getuid())+"-"+hex.EncodeToString(sum[:6]), "control.sock")
}

// listen opens the socket. The caller holds the lock of the data directory, so a socket that is still there is stale.
func listen(dir string) (net.Listener, string, error) {
	path := address(dir)
	parent := filepath.Dir(path)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, "", err
	}
	if info, err := os.Lstat(parent); err != nil {
		return nil, "", err
	} else if parent != filepath.Clean(dir) && (!info.IsDir() || info.Mode().Perm()&0o077 != 0) {
		return nil, "", errors.New("the directory of the control socket is not private")
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, "", err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, "", err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, "", errors.Join(err, l.Close())
	}
	return l, "", nil
}

// dialer gives what reaches the host, and its token (none here: the permissions of the socket decide).
func dialer(dir string) (func(context.Context, string) (net.Conn, error), string, error) {
	path := address(dir)
	return func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}, "", nil
}
