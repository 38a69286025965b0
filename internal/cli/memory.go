package cli

import (
	"errors"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v4/mem"
)

// availableMemory returns the bytes of memory that this process can take without driving others out: what the kernel
// says is available, or what the process's control groups leave of their limits if that is less. It is 0 if unknown.
func availableMemory(root fs.FS) int64 {
	available := int64(math.MaxInt64)
	if m, err := mem.VirtualMemory(); err == nil && m.Available > 0 {
		available = int64(m.Available)
	}
	if left, err := groupMemory(root); err == nil {
		available = min(available, left)
	}
	if available == math.MaxInt64 {
		return 0
	}
	return available
}

// groupMemory returns what the control groups of this process leave it: of the group and those around it, the least
// difference between the limit and the use, from which the page cache's files that could be dropped are taken out. The
// error is fs.ErrNotExist where there is no limit.
//
// Sources: the kernel's Documentation/admin-guide/cgroup-v2.rst (memory.max, memory.current, memory.stat) and
// Documentation/admin-guide/cgroup-v1/memory.rst.
func groupMemory(root fs.FS) (int64, error) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, err
	}
	least, err := int64(0), fs.ErrNotExist
	for line := range strings.Lines(string(groups)) {
		// "0::/user.slice" in version 2, "4:memory:/docker/1f" in version 1.
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) < 3 {
			continue
		}
		top, limitFile, useFile, inactive := "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"
		switch {
		case part[0] == "0" && part[1] == "":
		case part[1] == "memory":
			top, limitFile, useFile, inactive = "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
		default:
			continue
		}
		for group := path.Clean("/" + part[2]); ; group = path.Dir(group) {
			dir := path.Join(top, group)
			limit, limitErr := readNumber(root, path.Join(dir, limitFile))
			use, useErr := readNumber(root, path.Join(dir, useFile))
			if limitErr == nil && useErr == nil {
				left := max(limit-use+readStat(root, path.Join(dir, "memory.stat"), inactive), 0)
				if errors.Is(err, fs.ErrNotExist) || left < least {
					least, err = left, nil
				}
			}
			if group == "/" {
				break
			}
		}
	}
	return least, err
}

// readNumber reads a file that holds one number; "max", no limit, isn't one.
func readNumber(root fs.FS, name string) (int64, error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// readStat returns a number from a file of lines such as "inactive_file 4096", 0 where it isn't there.
func readStat(root fs.FS, name, key string) int64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), key+" "); ok {
			n, _ := strconv.ParseInt(value, 10, 64) // 0 where the kernel writes something else
			return n
		}
	}
	return 0
}
