package serve

import (
	"context"
	"os"

	"golang.org/x/sys/windows"
)

// waitParent returns true when the process pid, our parent, has ended. It does not look at ctx: waiting on a handle holds
// one thread until the process ends, as it does when ctx is over. A pid that is not our parent is ignored.
func waitParent(_ context.Context, pid int) bool {
	if os.Getppid() != pid {
		return false
	}
	h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return false
	}
	defer windows.CloseHandle(h)
	ev, err := windows.WaitForSingleObject(h, windows.INFINITE)
	return err == nil && ev == windows.WAIT_OBJECT_0
}
