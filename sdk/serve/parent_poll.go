//go:build unix

package serve

import (
	"context"
	"os"
	"time"
)

// parentPoll is how often the parent's number is compared where nothing better exists.
const parentPoll = 500 * time.Millisecond

// pollParent returns true when the parent is no longer the process pid, and false when ctx ends before.
func pollParent(ctx context.Context, pid int) bool {
	t := time.NewTicker(parentPoll)
	defer t.Stop()
	for os.Getppid() == pid {
		select {
		case <-t.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
