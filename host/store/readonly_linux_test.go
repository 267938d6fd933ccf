package store

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openphone-host/openphone/protocol/codes"
)

// A directory that cannot be written is told at the start, not at the first prompt. Root may write anywhere, so the
// thread gives up its rights on files for the attempt.
func TestReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.Chmod(filepath.Dir(dir), 0o755)) // to be entered by somebody else
	must(t, os.Chmod(dir, 0o555))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if os.Getuid() == 0 {
			if err := unix.Setfsuid(65534); err != nil {
				done <- err
				return
			}
		}
		s, err := Open(t.Context(), dir, nil)
		if err == nil {
			_ = s.Close()
		}
		done <- err
	}()
	wantCode(t, <-done, codes.StoreReadOnly)
}
