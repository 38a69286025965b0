package machine

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// LastLevelCache returns the bytes of the CPU's last-level cache; 0 if unknown.
//
// Source: the kernel's Documentation/ABI/testing/sysfs-devices-system-cpu (cache/index*).
func LastLevelCache(root fs.FS) int64 {
	var level, size int64
	files, _ := fs.Glob(root, "sys/devices/system/cpu/cpu0/cache/index*/level")
	for _, name := range files {
		l, err := readNumber(root, name)
		if err != nil || l <= level {
			continue
		}
		text, err := fs.ReadFile(root, path.Join(path.Dir(name), "size"))
		if err != nil {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(string(text)), "K"), 10, 64)
		if err == nil && kib > 0 && kib < 1<<40 {
			level, size = l, kib<<10
		}
	}
	return size
}

// NUMANodes returns how many nodes with memory of their own the machine has; 0 if unknown.
//
// Source: the kernel's Documentation/ABI/stable/sysfs-devices-node.
func NUMANodes(root fs.FS) int {
	files, _ := fs.Glob(root, "sys/devices/system/node/node[0-9]*")
	return len(files)
}

// CPUList writes the numbers of cores, in ascending order, as the kernel does: "0-3,8".
func CPUList(cores []int) string {
	var parts []string
	for i := 0; i < len(cores); {
		j := i
		for j+1 < len(cores) && cores[j+1] == cores[j]+1 {
			j++
		}
		if part := strconv.Itoa(cores[i]); j > i {
			parts = append(parts, fmt.Sprintf("%s-%d", part, cores[j]))
		} else {
			parts = append(parts, part)
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}
