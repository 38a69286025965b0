package doctor

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/pipectl/pipectl/internal/machine"
	"github.com/pipectl/pipectl/internal/ui"
)

const cpuFolder = "sys/devices/system/cpu"

// cpus compares the CPUs that this process may run on with those that are online.
func cpus(m *Machine) Finding {
	online, allowed, err := m.usable()
	switch {
	case err != nil:
		return of(Note, float64(m.CPUs), "CPUs", "%d, as Go counts them; how many are online is unknown (%v)", m.CPUs, err)
	case allowed < online:
		return of(Note, float64(allowed), "CPUs", "%d of %d online are in this process's affinity mask. The others can't take part.", allowed, online).
			fix("Start pipectl without `taskset`, or ask the container or the batch system for more CPUs.")
	}
	return of(OK, float64(allowed), "CPUs", "%d online, all in this process's affinity mask", online)
}

// usable returns how many CPUs are online, and how many of them the affinity mask has.
func (m *Machine) usable() (online, allowed int, err error) {
	text, err := m.read(cpuFolder + "/online")
	if err != nil {
		return 0, 0, err
	}
	on, err := parseCPUs(text)
	if err != nil {
		return 0, 0, err
	}
	if text, err = m.read("proc/self/status"); err != nil {
		return 0, 0, err
	}
	list, _ := field(text, "Cpus_allowed_list")
	mask, err := parseCPUs(list)
	if err != nil {
		return 0, 0, err
	}
	for _, n := range on {
		if slices.Contains(mask, n) {
			allowed++
		}
	}
	if allowed == 0 {
		return 0, 0, fmt.Errorf("none of the CPUs %s, which are allowed, is online", list)
	}
	return len(on), allowed, nil
}

// maxCPUs is more than a kernel knows of.
const maxCPUs = 1 << 14

// parseCPUs reads the kernel's lists of CPUs: "0-3,8".
func parseCPUs(text string) ([]int, error) {
	var list []int
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || from > to || to >= maxCPUs || len(list) > maxCPUs {
			return nil, fmt.Errorf("%q is no list of CPUs", text)
		}
		for n := from; n <= to; n++ {
			list = append(list, n)
		}
	}
	return list, nil
}

// cpuQuota tells how much of the CPUs' time the control groups leave.
func cpuQuota(m *Machine) Finding {
	quota, ok := machine.CPUQuota(m.Root)
	switch _, allowed, err := m.usable(); {
	case !ok:
		return Finding{State: OK, Text: "no control group limits this process"}
	case err == nil && quota >= float64(allowed):
		return of(OK, quota, "CPUs", "the control groups leave the time of %s CPUs", ui.Number(quota))
	default:
		return of(Note, quota, "CPUs", "the control groups leave the time of %s CPUs. Beyond it all threads stand still until the next period, mostly of 100 ms.", ui.Number(quota)).
			fix("Raise the container's limit (docker run --cpus, limits.cpu in Kubernetes).")
	}
}

// cpuGovernor tells who sets the CPUs' frequency.
func cpuGovernor(m *Machine) Finding {
	switch governor := machine.Governor(m.Root); governor {
	case "":
		return Finding{State: OK, Text: "none is told, as in most virtual machines"}
	case "performance":
		return Finding{State: OK, Text: governor}
	default:
		return Finding{State: Note, Text: governor + ": the frequency follows the load, so rates vary."}.
			fix("As root: `cpupower frequency-set -g performance`, until you have measured.")
	}
}

// cpuClock tells the CPUs' frequencies at this moment, and whether they are held below what the CPUs can do.
func cpuClock(m *Machine) Finding {
	var now []float64 // MHz
	files, _ := fs.Glob(m.Root, cpuFolder+"/cpu[0-9]*/cpufreq/scaling_cur_freq")
	for _, name := range files {
		if khz, ok := m.number(name); ok {
			now = append(now, khz/1e3)
		}
	}
	if len(now) == 0 {
		text, _ := m.read("proc/cpuinfo")
		for line := range strings.Lines(text) {
			if value, ok := field(line, "cpu MHz"); ok {
				if mhz, err := strconv.ParseFloat(value, 64); err == nil && mhz > 0 && mhz < 1e6 {
					now = append(now, mhz)
				}
			}
		}
	}
	if len(now) == 0 {
		return Finding{State: OK, Text: "unknown: the kernel doesn't tell it"}
	}
	low, high := slices.Min(now), slices.Max(now)
	text := fmt.Sprintf("%.0f MHz now", high)
	if high > 1.01*low {
		text = fmt.Sprintf("%.0f … %.0f MHz now", low, high)
	}
	most, ok1 := m.number(cpuFolder + "/cpu0/cpufreq/cpuinfo_max_freq")
	limit, ok2 := m.number(cpuFolder + "/cpu0/cpufreq/scaling_max_freq")
	switch {
	case ok1 && ok2 && limit < 0.99*most:
		return of(Note, high, "MHz", "%s, held to %.0f of %.0f MHz", text, limit/1e3, most/1e3).
			fix(fmt.Sprintf("As root: `cpupower frequency-set -u %.0fMHz`. A power-saving profile may have set it, or a battery.", most/1e3))
	case ok1:
		return of(OK, high, "MHz", "%s, %.0f MHz at most", text, most/1e3)
	}
	return of(OK, high, "MHz", "%s", text)
}

// number returns a positive number that a file holds.
func (m *Machine) number(name string) (float64, bool) {
	text, err := m.read(name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 32)
	return float64(n), err == nil && n > 0
}

// simd tells which of the vector instructions there are that bear on decoding and computing, by the names of /proc/cpuinfo.
func simd(m *Machine) Finding {
	text, err := m.read("proc/cpuinfo")
	if err != nil {
		return unread(err)
	}
	least, known := "avx2", []string{"sse4_2", "avx", "f16c", "fma", "avx2", "avx512f", "avx512bw", "amx_tile"}
	flags, x86 := field(text, "flags")
	if !x86 {
		least, known = "asimd", []string{"asimd", "asimdhp", "asimddp", "sve", "sve2"}
		var arm bool
		if flags, arm = field(text, "Features"); !arm {
			return odd("proc/cpuinfo", "the CPU's features")
		}
	}
	all := strings.Fields(flags)
	has := slices.DeleteFunc(known, func(name string) bool { return !slices.Contains(all, name) })
	if !slices.Contains(has, least) {
		text := fmt.Sprintf("%s without %s: libjpeg-turbo and OpenBLAS take slower code.", strings.Join(has, " "), least)
		return Finding{State: Note, Text: strings.TrimSpace(text)}.
			fix("If this is a virtual machine, let it have its host's CPU features.")
	}
	return Finding{State: OK, Text: strings.Join(has, " ")}
}
