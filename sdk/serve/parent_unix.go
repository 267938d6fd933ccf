//go:build unix && !linux

package serve

import (
	"context"
	"os"
)

// waitParent returns true when the process pid, our parent, has ended, and false when ctx ends before. A pid that is not
// our parent was somebody else's promise and is ignored.
func waitParent(ctx context.Context, pid int) bool {
	return os.Getppid() == pid && pollParent(ctx, pid)
}
