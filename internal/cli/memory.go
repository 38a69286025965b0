package cli

import (
	"io/fs"
	"math"

	"github.com/shirou/gopsutil/v4/mem"

	"github.com/pipectl/pipectl/internal/machine"
)

// availableMemory returns the bytes of memory that this process can take without driving others out: what the kernel
// says is available, or what the process's control groups leave of their limits if that is less. It is 0 if unknown.
func availableMemory(root fs.FS) int64 {
	available := int64(math.MaxInt64)
	if m, err := mem.VirtualMemory(); err == nil && m.Available > 0 {
		available = int64(m.Available)
	}
	if left, _, ok := machine.GroupMemory(root); ok {
		available = min(available, left)
	}
	if available == math.MaxInt64 {
		return 0
	}
	return available
}
