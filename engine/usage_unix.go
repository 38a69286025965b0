//go:build unix

package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns the CPU time that this process has used, or a negative number if that isn't known.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return -1
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
