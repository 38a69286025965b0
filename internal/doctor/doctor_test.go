package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/nvml"
)

// root returns a file system of names and texts in turn.
func root(pairs ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return m
}

func ptr(v float64) *float64 { return &v }

var errNoDriver = &gpu.Unusable{Err: errors.New("no CUDA driver is installed"), Fix: "Install it."}

const (
	limits  = "Limit                     Soft Limit           Hard Limit           Units     \n"
	cpu0    = "sys/devices/system/cpu/cpu0/cpufreq/"
	online  = "sys/devices/system/cpu/online"
	status  = "proc/self/status"
	meminfo = "proc/meminfo"
	thp     = "sys/kernel/mm/transparent_hugepage/enabled"
	clocks  = "sys/devices/system/clocksource/clocksource0/"
)

// Each check, where the machine has what it looks at, lacks it, or has what no kernel would write.
func TestChecks(t *testing.T) {
	device := gpu.Info{Kind: "cuda", Name: "NVIDIA T4", Memory: 15 << 30, PCI: "0000:65:00.0", Why: "It is there."}
	unknown := func(text string) Finding { return Finding{State: Note, Text: "unknown (" + text + ")"} }
	missing := func(name string) Finding { return unknown("open " + name + ": file does not exist") }
	for _, tc := range []struct {
		name    string
		check   func(*Machine) Finding
		machine Machine
		want    Finding
	}{
		{"CUDA", cuda, Machine{Device: device}, of(OK, 15<<30, "bytes", "NVIDIA T4 at 0000:65:00.0, 15.0 GiB of memory. It is there.")},
		{"no CUDA, no GPU", cuda, Machine{DeviceErr: fmt.Errorf("device = \"cuda\": %w", errNoDriver)}, Finding{State: Note, Text: "no CUDA driver is installed", Fix: "Install it."}},
		{"no CUDA, a GPU", cuda, Machine{DeviceErr: errNoDriver, Root: root(
			"sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n", "sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n",
			"sys/bus/pci/devices/0000:65:00.0/vendor", "0x10de\n", "sys/bus/pci/devices/0000:65:00.0/class", "0x030200\n",
			"sys/bus/pci/devices/0000:65:00.1/vendor", "0x10de\n", "sys/bus/pci/devices/0000:65:00.1/class", "0x040300\n",
			"sys/bus/pci/devices/0000:99:00.0/uevent", "")},
			Finding{State: Problem, Text: "no CUDA driver is installed. The machine has an NVIDIA GPU (PCI 0000:65:00.0).", Fix: "Install it."}},
		{"CUDA fails otherwise", cuda, Machine{DeviceErr: errors.New("CUDA_ERROR_UNKNOWN")}, Finding{State: Note, Text: "CUDA_ERROR_UNKNOWN"}},
		{"CUDA doesn't close", cuda, Machine{Device: device, CloseErr: syscall.EIO},
			Finding{State: Problem, Text: "the check itself failed: closing the device: input/output error", Err: syscall.EIO}},

		{"GPU", gpuNow, Machine{GPU: &nvml.Facts{Name: "NVIDIA T4", Driver: "550.54.15", Utilization: ptr(0), MemoryUsed: 1 << 29, Memory: 15 << 30, Clock: 300, MemoryClock: 405,
			Power: ptr(9.5), PowerLimit: ptr(70), Temperature: ptr(34)}},
			of(OK, 0, "share", "NVIDIA T4, busy 0 %% of the time, 512 MiB of 15.0 GiB used, 300 MHz, memory at 405 MHz, 9.50 of 70.0 W, 34 °C, driver 550.54.15")},
		{"GPU, busy", gpuNow, Machine{GPU: &nvml.Facts{Utilization: ptr(0.97), Power: ptr(69)}},
			of(Note, 0.97, "share", "busy 97 %% of the time, 69.0 W. Something else uses it, and will take part in every measurement.").
				fix("`nvidia-smi` lists the processes that do: end them before you measure.")},
		{"GPU that tells nothing", gpuNow, Machine{GPU: &nvml.Facts{Name: "NVIDIA T4"}}, Finding{State: OK, Text: "NVIDIA T4"}},
		{"GPU without NVML", gpuNow, Machine{}, Finding{State: Note,
			Text: "unknown: NVML (libnvidia-ml.so.1) doesn't load or doesn't know the GPU, so runs are stored without its utilisation, clocks and power.",
			Fix:  "Install the library, a part of NVIDIA's driver; a container needs NVIDIA_DRIVER_CAPABILITIES=compute,utility."}},
		{"no GPU", gpuNow, Machine{DeviceErr: errNoDriver}, Finding{State: OK, Text: "none is known of"}},

		{"memlock, unlimited", memlock, Machine{Root: root("proc/self/limits", limits+"Max locked memory         unlimited            unlimited            bytes     \n")}, Finding{State: OK, Text: "unlimited"}},
		{"memlock, limited", memlock, Machine{Root: root("proc/self/limits", limits+"Max locked memory         65536                unlimited            bytes     \n")},
			of(Note, 65536, "bytes", "64.0 KiB may be locked, no more than a few batches. Where the driver counts pinned memory, pinning fails beyond it.").
				fix("`ulimit -l unlimited`, \"memlock unlimited\" in /etc/security/limits.conf, or docker run --ulimit memlock=-1.")},
		{"memlock, limited, without CUDA", memlock, Machine{DeviceErr: errNoDriver, Root: root("proc/self/limits", "Max locked memory         0                    0                    bytes\n")},
			of(OK, 0, "bytes", "0 B may be locked")},
		{"memlock, no /proc", memlock, Machine{}, missing("proc/self/limits")},
		{"memlock, odd", memlock, Machine{Root: root("proc/self/limits", "Max locked memory\nMax locked memory         many\nMax locked memory         -5\n7\n")}, unknown("/proc/self/limits doesn't tell the limit")},
		{"open files", openFiles, Machine{Root: root("proc/self/limits", limits+"Max open files            4096                 4096                 files     \n")}, of(OK, 4096, "files", "4096 at a time")},
		{"open files, few", openFiles, Machine{Root: root("proc/self/limits", limits+"Max open files            256                  4096                 files     \n")},
			of(Note, 256, "files", "256 at a time: many workers may run out.").fix("`ulimit -n 4096`, \"nofile 4096\" in /etc/security/limits.conf, or docker run --ulimit nofile=4096.")},

		{"shm", shm, Machine{Shm: &Space{Free: 4 << 30, Total: 8 << 30}}, of(OK, 4<<30, "bytes", "4.00 GiB of 8.00 GiB are free")},
		{"shm, small", shm, Machine{Shm: &Space{Free: 64 << 20, Total: 64 << 20}},
			of(Note, 64<<20, "bytes", "64.0 MiB of 64.0 MiB are free. Worker processes that hand batches over through it may run out.").
				fix("docker run --shm-size=8g, or as root `mount -o remount,size=8G /dev/shm`; remove what is left in it.")},
		{"shm, none", shm, Machine{}, Finding{State: Note, Text: "unknown: there is none, or its size can't be read"}},

		{"CPUs", cpus, Machine{Root: root(online, "0-3,8\n", status, "Name:\tx\nCpus_allowed_list:\t0-127\n")}, of(OK, 5, "CPUs", "5 online, all in this process's affinity mask")},
		{"CPUs, masked", cpus, Machine{Root: root(online, "0-7\n", status, "Cpus_allowed_list:\t2,5-6\n")},
			of(Note, 3, "CPUs", "3 of 8 online are in this process's affinity mask. The others can't take part.").
				fix("Start pipectl without `taskset`, or ask the container or the batch system for more CPUs.")},
		{"CPUs, no /sys", cpus, Machine{CPUs: 6}, of(Note, 6, "CPUs", "6, as Go counts them; how many are online is unknown (open sys/devices/system/cpu/online: file does not exist)")},
		{"CPUs, odd", cpus, Machine{CPUs: 6, Root: root(online, "0-999999999999\n")}, of(Note, 6, "CPUs", `6, as Go counts them; how many are online is unknown ("0-999999999999" is no list of CPUs)`)},
		{"CPUs, none allowed", cpus, Machine{CPUs: 1, Root: root(online, "0", status, "Cpus_allowed_list: 1")},
			of(Note, 1, "CPUs", "1, as Go counts them; how many are online is unknown (none of the CPUs 1, which are allowed, is online)")},

		{"quota, none", cpuQuota, Machine{}, Finding{State: OK, Text: "no control group limits this process"}},
		{"quota", cpuQuota, Machine{Root: root("proc/self/cgroup", "0::/\n", "sys/fs/cgroup/cpu.max", "150000 100000\n", online, "0-3", status, "Cpus_allowed_list: 0-3")},
			of(Note, 1.5, "CPUs", "the control groups leave the time of 1.50 CPUs. Beyond it all threads stand still until the next period, mostly of 100 ms.").
				fix("Raise the container's limit (docker run --cpus, limits.cpu in Kubernetes).")},
		{"quota, for all", cpuQuota, Machine{Root: root("proc/self/cgroup", "0::/\n", "sys/fs/cgroup/cpu.max", "400000 100000\n", online, "0-3", status, "Cpus_allowed_list: 0-3")},
			of(OK, 4, "CPUs", "the control groups leave the time of 4.00 CPUs")},

		{"governor", cpuGovernor, Machine{Root: root(cpu0+"scaling_governor", "performance\n")}, Finding{State: OK, Text: "performance"}},
		{"governor, none", cpuGovernor, Machine{}, Finding{State: OK, Text: "none is told, as in most virtual machines"}},
		{"governor, powersave", cpuGovernor, Machine{Root: root(cpu0+"scaling_governor", "powersave\n")},
			Finding{State: Note, Text: "powersave: the frequency follows the load, so rates vary.", Fix: "As root: `cpupower frequency-set -g performance`, until you have measured."}},

		{"frequency", cpuClock, Machine{Root: root(cpu0+"scaling_cur_freq", "800000\n", strings.Replace(cpu0, "cpu0", "cpu1", 1)+"scaling_cur_freq", "3200000\n", cpu0+"cpuinfo_max_freq", "4200000\n",
			cpu0+"scaling_max_freq", "4200000\n")}, of(OK, 3200, "MHz", "800 … 3200 MHz now, 4200 MHz at most")},
		{"frequency, held", cpuClock, Machine{Root: root(cpu0+"scaling_cur_freq", "800000\n", cpu0+"cpuinfo_max_freq", "4200000\n", cpu0+"scaling_max_freq", "2100000\n")},
			of(Note, 800, "MHz", "800 MHz now, held to 2100 of 4200 MHz").fix("As root: `cpupower frequency-set -u 4200MHz`. A power-saving profile may have set it, or a battery.")},
		{"frequency, of a virtual machine", cpuClock, Machine{Root: root("proc/cpuinfo", "processor\t: 0\ncpu MHz\t\t: 2596.124\n\nprocessor\t: 1\ncpu MHz\t\t: 2596.124\n")}, of(OK, 2596.124, "MHz", "2596 MHz now")},
		{"frequency, odd", cpuClock, Machine{Root: root(cpu0+"scaling_cur_freq", "<unknown>\n", "proc/cpuinfo", "cpu MHz : NaN\ncpu MHz : -1\ncpu MHz\n")}, Finding{State: OK, Text: "unknown: the kernel doesn't tell it"}},

		{"SIMD, x86", simd, Machine{Root: root("proc/cpuinfo", "flags\t\t: fpu sse4_2 fma avx avx2\nflags\t\t: fpu\n")}, Finding{State: OK, Text: "sse4_2 avx fma avx2"}},
		{"SIMD, old x86", simd, Machine{Root: root("proc/cpuinfo", "flags\t\t: fpu sse4_2\n")},
			Finding{State: Note, Text: "sse4_2 without avx2: libjpeg-turbo and OpenBLAS take slower code.", Fix: "If this is a virtual machine, let it have its host's CPU features."}},
		{"SIMD, very old x86", simd, Machine{Root: root("proc/cpuinfo", "flags\t\t:\n")},
			Finding{State: Note, Text: "without avx2: libjpeg-turbo and OpenBLAS take slower code.", Fix: "If this is a virtual machine, let it have its host's CPU features."}},
		{"SIMD, ARM", simd, Machine{Root: root("proc/cpuinfo", "Features\t: fp asimd evtstrm asimddp sve\n")}, Finding{State: OK, Text: "asimd asimddp sve"}},
		{"SIMD, another", simd, Machine{Root: root("proc/cpuinfo", "isa : rv64imafdcv\n")}, unknown("/proc/cpuinfo doesn't tell the CPU's features")},
		{"SIMD, no /proc", simd, Machine{}, missing("proc/cpuinfo")},

		{"memory", memory, Machine{Root: root(meminfo, "MemTotal:       16777216 kB\nMemAvailable:   8388608 kB\n")}, of(OK, 8<<30, "bytes", "8.00 GiB of 16.0 GiB are available")},
		{"memory, little", memory, Machine{Root: root(meminfo, "MemTotal:       67108864 kB\nMemAvailable:   4194304 kB\n")},
			of(Note, 4<<30, "bytes", "4.00 GiB of 64.0 GiB are available: probes' caches get small.").
				fix("End other programs, or lower `cache_batches`, `limit` and `prefetch`; `pipectl plan` shows what an experiment needs.")},
		{"memory, odd", memory, Machine{Root: root(meminfo, "MemTotal: 99999999999999999999 kB\nMemAvailable: 1 MB\n")}, unknown("/proc/meminfo doesn't tell how much is available")},
		{"memory, no /proc", memory, Machine{}, missing("proc/meminfo")},
		{"memory limit, none", memoryLimit, Machine{}, Finding{State: OK, Text: "no control group limits this process"}},
		{"memory limit", memoryLimit, Machine{Root: root("proc/self/cgroup", "0::/\n", "sys/fs/cgroup/memory.max", "8589934592\n", "sys/fs/cgroup/memory.current", "1073741824\n")},
			of(OK, 7<<30, "bytes", "the control groups leave 7.00 GiB of 8.00 GiB")},
		{"memory limit, reached", memoryLimit, Machine{Root: root("proc/self/cgroup", "0::/\n", "sys/fs/cgroup/memory.max", "1073741824\n", "sys/fs/cgroup/memory.current", "1073741824\n")},
			of(Note, 0, "bytes", "the control groups leave 0 B of 1.00 GiB. The kernel ends a process that takes more.").
				fix("Raise the container's limit (docker run --memory, limits.memory in Kubernetes).")},
		{"swap, none", swap, Machine{Root: root(meminfo, "SwapTotal: 0 kB\nSwapFree: 0 kB\n")}, of(OK, 0, "bytes", "none")},
		{"swap, a little", swap, Machine{Root: root(meminfo, "SwapTotal: 2097152 kB\nSwapFree: 2096128 kB\n")}, of(OK, 1<<20, "bytes", "1.00 MiB of 2.00 GiB are in use")},
		{"swap, in use", swap, Machine{Root: root(meminfo, "SwapTotal: 2097152 kB\nSwapFree: 1048576 kB\n")},
			of(Note, 1<<30, "bytes", "1.00 GiB of 2.00 GiB are in use: what a program needs of it comes from the disk.").
				fix("End programs that take much memory; then, as root, `swapoff -a && swapon -a` empties it.")},
		{"swap, odd", swap, Machine{Root: root(meminfo, "SwapTotal: 1 kB\nSwapFree: 2 kB\n")}, unknown("/proc/meminfo doesn't tell how much is in use")},

		{"page size", pageSize, Machine{PageSize: 65536}, of(OK, 65536, "bytes", "64.0 KiB")},
		{"huge pages, always", hugePages, Machine{Root: root(thp, "[always] madvise never\n")}, Finding{State: OK, Text: "always"}},
		{"huge pages, madvise", hugePages, Machine{Root: root(thp, "always [madvise] never\n")}, Finding{State: OK, Text: "madvise: for programs that ask for them"}},
		{"huge pages, never", hugePages, Machine{Root: root(thp, "always madvise [never]\n")},
			Finding{State: Note, Text: "never: large buffers cost more misses of the TLB.", Fix: "As root: `echo madvise > /" + thp + "`, or always."}},
		{"huge pages, odd", hugePages, Machine{Root: root(thp, "]some[times\n")}, unknown("/" + thp + " doesn't tell the mode")},

		{"clock", clock, Machine{ClockRead: 41 * time.Nanosecond, Root: root(clocks+"current_clocksource", "tsc\n")}, of(OK, 41, "ns", "tsc, read in 41 ns")},
		{"clock, unknown", clock, Machine{ClockRead: 41 * time.Nanosecond}, of(OK, 41, "ns", "source unknown, read in 41 ns")},
		{"clock, slow", clock, Machine{ClockRead: 1200 * time.Nanosecond, Root: root(clocks+"current_clocksource", "hpet\n", clocks+"available_clocksource", "tsc hpet acpi_pm \n")},
			of(Note, 1200, "ns", "hpet, read in 1.20 µs. Workers read it at every hand-over, so fast stages get slower.").
				fix("The kernel offers tsc hpet acpi_pm: as root, write one to /sys/devices/system/clocksource/clocksource0/current_clocksource; tsc is the fastest.")},

		{"JPEG decoder", jpegDecoder, Machine{JPEGDecoder: "libjpeg-turbo"}, Finding{State: OK, Text: "libjpeg-turbo"}},
		{"JPEG decoder, Go's", jpegDecoder, Machine{JPEGDecoder: "Go image/jpeg"},
			Finding{State: Note, Text: "Go image/jpeg, two to three times as slow as libjpeg-turbo", Fix: "Install libjpeg-turbo's headers (`make deps`) and build anew with `make build`."}},
		{"BLAS", blas, Machine{BLAS: "gonum"}, Finding{State: OK, Text: "gonum"}},

		{"results", results, Machine{Results: Results{Path: "a/results.db", Space: &Space{Free: 9 << 30}}}, of(OK, 9<<30, "bytes", "a/results.db can be written; 9.00 GiB are free")},
		{"results, space unknown", results, Machine{Results: Results{Path: "a/results.db"}}, Finding{State: OK, Text: "a/results.db can be written"}},
		{"results, full", results, Machine{Results: Results{Path: "a/results.db", Space: &Space{Free: 1 << 20}}},
			of(Note, 1<<20, "bytes", "a/results.db can be written; 1.00 MiB are free.").fix("Free some disk space. Choose another place with --db or PIPECTL_DB.")},
		{"results, not writable", results, Machine{Results: Results{Path: "a/results.db", Err: syscall.EROFS}},
			Finding{State: Problem, Text: "a/results.db can't be written: read-only file system.", Fix: "Choose another place with --db or PIPECTL_DB."}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.machine.Root == nil {
				tc.machine.Root = root()
			}
			if d := cmp.Diff(tc.want, tc.check(&tc.machine), cmpopts.EquateErrors()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// failing is a file system whose files can't be read.
type failing struct{ err error }

func (f failing) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: f.err}
}

// That a file isn't there or may not be read is how some machines are. Where the disk fails the check has failed.
func TestUnreadable(t *testing.T) {
	for _, tc := range []struct {
		err    error
		broken string
	}{
		{fs.ErrNotExist, ""},
		{syscall.EACCES, ""},
		{syscall.EIO, "memlock simd memory swap huge_pages open_files"},
	} {
		var broken []string
		for _, f := range Examine(&Machine{Root: failing{tc.err}, DeviceErr: errNoDriver, JPEGDecoder: "libjpeg-turbo"}) {
			if f.Err != nil {
				broken = append(broken, f.Check)
			}
			if f.Check == "" || f.Title == "" || f.Text == "" && f.Check != "blas" || (f.Value == nil) != (f.Unit == "") {
				t.Errorf("%v: %+v", tc.err, f)
			}
			if (f.Err != nil) != (f.State == Problem) {
				t.Errorf("%v: state %s of %+v", tc.err, f.State, f)
			}
		}
		if got := strings.Join(broken, " "); got != tc.broken {
			t.Errorf("%v: %q are broken, want %q", tc.err, got, tc.broken)
		}
	}
}

// Whatever the kernel's files say, the checks end, with numbers that JSON has words for.
func FuzzExamine(f *testing.F) {
	for _, text := range []string{"", "0-3\n", "0::/\n", "max 100000\n", "100000 100000", "MemTotal: 1 kB\nMemAvailable: 1 kB\nSwapTotal: 2 kB\nSwapFree: 1 kB",
		"Max locked memory 1\nMax open files 9\n", "flags: avx2\ncpu MHz: 1e308\n", "Cpus_allowed_list: 1-2\n", "[never]", "0x10de"} {
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		files := root(online, a, status, b, meminfo, a, "proc/cpuinfo", b, "proc/self/limits", a, thp, b, "proc/self/cgroup", a, "sys/fs/cgroup/cpu.max", b,
			"sys/fs/cgroup/memory.max", b, "sys/fs/cgroup/memory.current", a, cpu0+"scaling_cur_freq", a, cpu0+"cpuinfo_max_freq", b, cpu0+"scaling_max_freq", a,
			clocks+"current_clocksource", a, "sys/bus/pci/devices/0000:65:00.0/vendor", a, "sys/bus/pci/devices/0000:65:00.0/class", b)
		for _, finding := range Examine(&Machine{Root: files, DeviceErr: errNoDriver}) {
			if finding.Err != nil {
				t.Errorf("%+v", finding)
			}
			if v := finding.Value; v != nil && !(*v >= 0 && *v <= 1<<63) {
				t.Errorf("%v in %+v", *v, finding)
			}
		}
	})
}
