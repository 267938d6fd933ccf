package consent

import (
	"time"

	"golang.org/x/sys/unix"
)

func sinceBoot() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // cannot fail with a clock every supported kernel has
	return time.Duration(t.Nano())
}
