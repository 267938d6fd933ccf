package consent

import (
	"time"

	"golang.org/x/sys/unix"
)

func sinceBoot() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // counts sleep here, unlike elsewhere
	return time.Duration(t.Nano())
}
