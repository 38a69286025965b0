package stages

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuClock counts the CPU time of one thread from a start. It is for the thread that started it.
type cpuClock struct{ start time.Duration }

func startCPUClock() (cpuClock, error) {
	start, err := cpuClock{}.elapsed()
	return cpuClock{start}, err
}

func (c cpuClock) elapsed() (time.Duration, error) {
	var ts unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return time.Duration(ts.Nano()) - c.start, err
}
