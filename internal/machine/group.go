package machine

import (
	"io/fs"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"
)

// CPUQuota returns how many CPUs' time the control groups of this process leave it, if they limit it.
//
// Sources: the kernel's Documentation/admin-guide/cgroup-v2.rst (cpu.max) and Documentation/scheduler/sched-bwc.rst
// (cpu.cfs_quota_us, cpu.cfs_period_us).
func CPUQuota(root fs.FS) (quota float64, ok bool) {
	for group := range groups(root, "cpu") {
		// The tightest of the group and those around it counts.
		if q, limited := groupQuota(root, group.dir); limited && (!ok || q < quota) {
			quota, ok = q, true
		}
	}
	return quota, ok
}

// groupQuota returns the limit of one control group.
func groupQuota(root fs.FS, dir string) (quota float64, ok bool) {
	var fields []string
	for _, name := range []string{"cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"} {
		text, _ := fs.ReadFile(root, path.Join(dir, name))
		fields = append(fields, strings.Fields(string(text))...)
	}
	if len(fields) != 2 {
		return 0, false
	}
	limit, err1 := strconv.ParseFloat(fields[0], 64) // "max" in version 2 and -1 in version 1 are no limit
	period, err2 := strconv.ParseFloat(fields[1], 64)
	if err1 != nil || err2 != nil || !(limit > 0 && period > 0) || limit/period > 1<<20 {
		return 0, false
	}
	return limit / period, true
}

// GroupMemory returns what the control groups of this process leave it, in bytes, if they limit its memory: of the group and
// those around it, the least difference between the limit and the use, from which the page cache's files that could be
// dropped are taken out. limit is that of the same group.
//
// Sources: the kernel's Documentation/admin-guide/cgroup-v2.rst (memory.max, memory.current, memory.stat) and
// Documentation/admin-guide/cgroup-v1/memory.rst.
func GroupMemory(root fs.FS) (left, limit int64, ok bool) {
	for group := range groups(root, "memory") {
		limitFile, useFile, inactive := "memory.max", "memory.current", "inactive_file"
		if group.v1 {
			limitFile, useFile, inactive = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
		}
		most, err1 := readNumber(root, path.Join(group.dir, limitFile))
		use, err2 := readNumber(root, path.Join(group.dir, useFile))
		if err1 != nil || err2 != nil || most > 1<<60 || most < 0 || use < 0 { // version 1 writes a number for no limit
			continue
		}
		if l := max(most-use+readStat(root, path.Join(group.dir, "memory.stat"), inactive), 0); !ok || l < left {
			left, limit, ok = l, most, true
		}
	}
	return left, limit, ok
}

// group is a control group.
type group struct {
	dir string // below the root
	v1  bool
}

// groups yields the control groups that this process is in, as far as they are a controller's, and the groups around them.
func groups(root fs.FS, controller string) iter.Seq[group] {
	return func(yield func(group) bool) {
		text, err := fs.ReadFile(root, "proc/self/cgroup")
		if err != nil {
			return
		}
		for line := range strings.Lines(string(text)) {
			// "0::/user.slice" in version 2, "4:cpu,cpuacct:/docker/1f" in version 1.
			part := strings.SplitN(strings.TrimSpace(line), ":", 3)
			if len(part) < 3 {
				continue
			}
			top, v1 := "sys/fs/cgroup", false
			switch {
			case part[0] == "0" && part[1] == "":
			case slices.Contains(strings.Split(part[1], ","), controller):
				top, v1 = path.Join(top, part[1]), true
			default:
				continue
			}
			for name := path.Clean("/" + part[2]); ; name = path.Dir(name) {
				if !yield(group{path.Join(top, name), v1}) {
					return
				}
				if name == "/" {
					break
				}
			}
		}
	}
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
	return stat(text, key)
}

// stat returns a number from a text of lines such as "inactive_file 4096", 0 where it isn't there.
func stat(text []byte, key string) int64 {
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), key+" "); ok {
			n, _ := strconv.ParseInt(value, 10, 64) // 0 where the kernel writes something else
			return n
		}
	}
	return 0
}
