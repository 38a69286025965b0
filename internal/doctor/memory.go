package doctor

import (
	"strconv"
	"strings"

	"github.com/pipectl/pipectl/internal/machine"
	"github.com/pipectl/pipectl/stages"
)

const gib = 1 << 30

// memlock tells how much memory a process may lock. NVIDIA's driver doesn't count what it locks itself, but others and RDMA
// do.
func memlock(m *Machine) Finding {
	return m.limit("Max locked memory", func(limit float64) Finding {
		text := stages.Bytes(limit).String() + " may be locked"
		if m.DeviceErr != nil || limit >= gib {
			return of(OK, limit, "bytes", "%s", text)
		}
		return of(Note, limit, "bytes", "%s, no more than a few batches. Where the driver counts pinned memory, pinning fails beyond it.", text).
			fix("`ulimit -l unlimited`, \"memlock unlimited\" in /etc/security/limits.conf, or docker run --ulimit memlock=-1.")
	})
}

// shm tells the size of /dev/shm, through which processes such as Python's workers hand batches over.
func shm(m *Machine) Finding {
	switch s := m.Shm; {
	case s == nil:
		return Finding{State: Note, Text: "unknown: there is none, or its size can't be read"}
	case s.Free < gib:
		return of(Note, float64(s.Free), "bytes", "%s of %s are free. Worker processes that hand batches over through it may run out.", stages.Bytes(s.Free), stages.Bytes(s.Total)).
			fix("docker run --shm-size=8g, or as root `mount -o remount,size=8G /dev/shm`; remove what is left in it.")
	default:
		return of(OK, float64(s.Free), "bytes", "%s of %s are free", stages.Bytes(s.Free), stages.Bytes(s.Total))
	}
}

// memory tells how much memory is available.
func memory(m *Machine) Finding {
	text, err := m.read("proc/meminfo")
	if err != nil {
		return unread(err)
	}
	total, ok1 := kilobytes(text, "MemTotal")
	available, ok2 := kilobytes(text, "MemAvailable")
	switch {
	case !ok1 || !ok2:
		return odd("proc/meminfo", "how much is available")
	case available < gib || available < total/10:
		return of(Note, float64(available), "bytes", "%s of %s are available: probes' caches get small.", stages.Bytes(available), stages.Bytes(total)).
			fix("End other programs, or lower `cache_batches`, `limit` and `prefetch`; `pipectl plan` shows what an experiment needs.")
	}
	return of(OK, float64(available), "bytes", "%s of %s are available", stages.Bytes(available), stages.Bytes(total))
}

// memoryLimit tells what the control groups leave of their memory.
func memoryLimit(m *Machine) Finding {
	left, limit, ok := machine.GroupMemory(m.Root)
	switch {
	case !ok:
		return Finding{State: OK, Text: "no control group limits this process"}
	case left < gib:
		return of(Note, float64(left), "bytes", "the control groups leave %s of %s. The kernel ends a process that takes more.", stages.Bytes(left), stages.Bytes(limit)).
			fix("Raise the container's limit (docker run --memory, limits.memory in Kubernetes).")
	}
	return of(OK, float64(left), "bytes", "the control groups leave %s of %s", stages.Bytes(left), stages.Bytes(limit))
}

// swapped is how much memory in swap is worth a note: some that nobody uses any more is there on many machines.
const swapped = 256 << 20

// swap tells how much swap is in use.
func swap(m *Machine) Finding {
	text, err := m.read("proc/meminfo")
	if err != nil {
		return unread(err)
	}
	total, ok1 := kilobytes(text, "SwapTotal")
	free, ok2 := kilobytes(text, "SwapFree")
	used := total - free
	switch {
	case !ok1 || !ok2 || free > total:
		return odd("proc/meminfo", "how much is in use")
	case total == 0:
		return of(OK, 0, "bytes", "none")
	case used >= swapped:
		return of(Note, float64(used), "bytes", "%s of %s are in use: what a program needs of it comes from the disk.", stages.Bytes(used), stages.Bytes(total)).
			fix("End programs that take much memory; then, as root, `swapoff -a && swapon -a` empties it.")
	}
	return of(OK, float64(used), "bytes", "%s of %s are in use", stages.Bytes(used), stages.Bytes(total))
}

// pageSize tells the size of a page of memory.
func pageSize(m *Machine) Finding {
	return of(OK, float64(m.PageSize), "bytes", "%s", stages.Bytes(m.PageSize))
}

// hugePages tells whether the kernel makes huge pages of large pieces of memory.
//
// Source: the kernel's Documentation/admin-guide/mm/transhuge.rst.
func hugePages(m *Machine) Finding {
	const file = "sys/kernel/mm/transparent_hugepage/enabled"
	text, err := m.read(file)
	if err != nil {
		return unread(err)
	}
	_, rest, _ := strings.Cut(text, "[")
	switch mode, _, _ := strings.Cut(rest, "]"); mode {
	case "always":
		return Finding{State: OK, Text: mode}
	case "madvise":
		return Finding{State: OK, Text: mode + ": for programs that ask for them"}
	case "never":
		return Finding{State: Note, Text: mode + ": large buffers cost more misses of the TLB."}.
			fix("As root: `echo madvise > /" + file + "`, or always.")
	}
	return odd(file, "the mode")
}

// kilobytes returns the bytes of a field of /proc/meminfo.
func kilobytes(text, name string) (uint64, bool) {
	value, _ := field(text, name)
	number, unit, _ := strings.Cut(value, " ")
	n, err := strconv.ParseUint(number, 10, 53)
	return n << 10, err == nil && unit == "kB"
}

// limit returns what judge makes of one of the process's soft limits, if it has it.
func (m *Machine) limit(name string, judge func(limit float64) Finding) Finding {
	const file = "proc/self/limits"
	text, err := m.read(file)
	if err != nil {
		return unread(err)
	}
	for line := range strings.Lines(text) {
		rest, _ := strings.CutPrefix(line, name+" ")
		soft, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if soft == "unlimited" {
			return Finding{State: OK, Text: soft}
		}
		if n, err := strconv.ParseUint(soft, 10, 63); err == nil && rest != line {
			return judge(float64(n))
		}
	}
	return odd(file, "the limit")
}
