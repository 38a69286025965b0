//go:build !unix

package engine

import "time"

// cpuTime returns the CPU time that this process has used, or a negative number if that isn't known.
func cpuTime() time.Duration { return -1 }
