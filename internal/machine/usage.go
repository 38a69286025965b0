package machine

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

// Usage counts what may disturb a measurement, from a moment in the past on: two readings are compared. A count that can't be
// read is negative.
type Usage struct {
	Busy time.Duration // CPU time that anyone used of the given cores, and that the hypervisor took from them
	// Throttled is for how long threads of this process's control group had to wait because its CPU quota was used up.
	Throttled time.Duration
	Swapped   int64 // bytes written to and read from swap, by anyone
}

// tick is the unit of /proc/stat: the kernel gives times there in USER_HZ, which is 100 on all architectures that Go knows.
const tick = time.Second / 100

// ReadUsage reads the counts. cores are the numbers of those that count; nil: all.
//
// Sources: the kernel's Documentation/filesystems/proc.rst (/proc/stat), Documentation/admin-guide/cgroup-v2.rst (cpu.stat) and
// Documentation/scheduler/sched-bwc.rst (its version 1).
func ReadUsage(root fs.FS, cores []int) Usage {
	u := Usage{Busy: busy(root, cores), Throttled: throttled(root), Swapped: -1}
	if text, err := fs.ReadFile(root, "proc/vmstat"); err == nil {
		u.Swapped = (stat(text, "pswpin") + stat(text, "pswpout")) * int64(os.Getpagesize())
	}
	return u
}

// busy returns the CPU time that was used of some cores.
func busy(root fs.FS, cores []int) time.Duration {
	text, err := fs.ReadFile(root, "proc/stat")
	if err != nil {
		return -1
	}
	wanted := map[string]bool{}
	for _, c := range cores {
		wanted["cpu"+strconv.Itoa(c)] = true
	}
	if cores == nil {
		wanted["cpu"] = true
	}
	total, found := time.Duration(0), false
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 5 || !wanted[fields[0]] {
			continue
		}
		for i, field := range fields[1:min(len(fields), 9)] { // the two for guests are counted in the first two already
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return -1
			}
			if i != idleField && i != waitField {
				total += time.Duration(n) * tick
			}
		}
		found = true
	}
	if !found {
		return -1
	}
	return total
}

// The places of the times in a line of /proc/stat in which a core did nothing.
const (
	idleField = 3
	waitField = 4 // for I/O
)

// throttled returns for how long the innermost control group that has a quota was held up by it.
func throttled(root fs.FS) time.Duration {
	for group := range groups(root, "cpu") {
		text, err := fs.ReadFile(root, path.Join(group.dir, "cpu.stat"))
		if err != nil {
			continue
		}
		key, unit := "throttled_usec", time.Microsecond
		if group.v1 {
			key, unit = "throttled_time", time.Nanosecond
		}
		if strings.Contains(string(text), key) {
			return time.Duration(stat(text, key)) * unit
		}
	}
	return -1
}
