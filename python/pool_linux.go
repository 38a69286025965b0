package python

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic returns the time by CLOCK_MONOTONIC, which Python's time.perf_counter counts, too.
func monotonic() time.Duration {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // the kernel has that clock
	return time.Duration(t.Nano())
}
