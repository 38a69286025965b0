//go:build !linux

package stages

import "time"

// cpuClock stands in for the CPU time of one thread, which only Linux has by this call.
type cpuClock struct{ start time.Time }

func startCPUClock() (cpuClock, error) { return cpuClock{time.Now()}, nil }

func (c cpuClock) elapsed() (time.Duration, error) { return time.Since(c.start), nil }
