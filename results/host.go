package results

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/mem"
)

// Host is what is known of the machine that a run ran on. What can't be found out is absent: "", nil or 0.
type Host struct {
	Hostname     string   `json:"hostname,omitempty"`
	OS           string   `json:"os,omitempty"` // "linux, debian 12.5"
	Kernel       string   `json:"kernel,omitempty"`
	Arch         string   `json:"arch,omitempty"`
	CPU          string   `json:"cpu,omitempty"`   // the model's name
	Cores        int      `json:"cores,omitempty"` // physical
	CPUs         int      `json:"cpus,omitempty"`  // logical
	GOMAXPROCS   int      `json:"gomaxprocs,omitempty"`
	CPUQuota     *float64 `json:"cpu_quota,omitempty"` // CPUs that the control group may use; nil: all, or unknown
	Governor     string   `json:"governor,omitempty"`  // of the CPU's frequency
	Memory       uint64   `json:"memory,omitempty"`    // bytes
	Go           string   `json:"go,omitempty"`
	Device       string   `json:"device,omitempty"` // "cpu" or "cuda"
	DeviceName   string   `json:"device_name,omitempty"`
	DeviceMemory uint64   `json:"device_memory,omitempty"` // bytes
}

// ReadHost finds out about this machine. The device is for the caller to add.
func ReadHost(ctx context.Context) Host {
	h := Host{
		Arch:       runtime.GOARCH,
		GOMAXPROCS: runtime.GOMAXPROCS(0),
		Governor:   governor(os.DirFS("/")),
		Go:         runtime.Version(),
	}
	// An error leaves its fact absent, which is what readers are told.
	h.Hostname, _ = os.Hostname()
	h.Kernel, _ = host.KernelVersionWithContext(ctx)
	h.OS = runtime.GOOS
	if platform, _, version, err := host.PlatformInformationWithContext(ctx); err == nil && platform != "" {
		h.OS += ", " + strings.TrimSpace(platform+" "+version)
	}
	if infos, err := cpu.InfoWithContext(ctx); err == nil && len(infos) > 0 {
		h.CPU = strings.TrimSpace(infos[0].ModelName)
	}
	h.Cores, _ = cpu.CountsWithContext(ctx, false)
	h.CPUs, _ = cpu.CountsWithContext(ctx, true)
	if m, err := mem.VirtualMemoryWithContext(ctx); err == nil {
		h.Memory = m.Total
	}
	if quota, ok := cpuQuota(os.DirFS("/")); ok {
		h.CPUQuota = &quota
	}
	return h
}

// fact is one fact about a host by its name in messages; "" if absent.
type fact struct {
	name, value string
	speed       bool // it bears on speed
}

func (h *Host) facts() []fact {
	number := func(n uint64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatUint(n, 10)
	}
	quota := ""
	if h.CPUQuota != nil {
		quota = fmt.Sprintf("%.2f CPUs", *h.CPUQuota)
	}
	return []fact{
		{"hostname", h.Hostname, false},
		{"operating system", h.OS, false},
		{"kernel", h.Kernel, false},
		{"architecture", h.Arch, true},
		{"CPU", h.CPU, true},
		{"cores", number(uint64(h.Cores)), true},
		{"logical CPUs", number(uint64(h.CPUs)), true},
		{"GOMAXPROCS", number(uint64(h.GOMAXPROCS)), true},
		{"CPU quota", quota, true},
		{"CPU governor", h.Governor, true},
		{"bytes of memory", number(h.Memory), true},
		{"Go", h.Go, false},
		{"device", strings.TrimSpace(h.Device + " " + h.DeviceName), true},
		{"bytes of device memory", number(h.DeviceMemory), true},
	}
}

// Key is the same for hosts that are alike in what bears on speed.
func (h *Host) Key() string {
	sum := sha256.New()
	for _, f := range h.facts() {
		if f.speed {
			fmt.Fprintf(sum, "%q %q\n", f.name, f.value)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// governor returns the frequency governors of the CPUs, each once.
func governor(root fs.FS) string {
	var found []string
	files, _ := fs.Glob(root, "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
	for _, name := range files {
		if text, err := fs.ReadFile(root, name); err == nil {
			found = append(found, strings.TrimSpace(string(text)))
		}
	}
	slices.Sort(found)
	return strings.Join(slices.Compact(found), ", ")
}

// cpuQuota returns how many CPUs' time the control groups of this process leave it, if they limit it.
//
// Sources: the kernel's Documentation/admin-guide/cgroup-v2.rst (cpu.max) and Documentation/scheduler/sched-bwc.rst
// (cpu.cfs_quota_us, cpu.cfs_period_us).
func cpuQuota(root fs.FS) (quota float64, ok bool) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(groups)) {
		// "0::/user.slice" in version 2, "4:cpu,cpuacct:/docker/1f" in version 1.
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) < 3 {
			continue
		}
		var top string
		switch {
		case part[0] == "0" && part[1] == "":
			top = "sys/fs/cgroup"
		case slices.Contains(strings.Split(part[1], ","), "cpu"):
			top = "sys/fs/cgroup/" + part[1]
		default:
			continue
		}
		// The tightest of the group and those around it counts.
		for group := path.Clean("/" + part[2]); ; group = path.Dir(group) {
			if q, limited := groupQuota(root, path.Join(top, group)); limited && (!ok || q < quota) {
				quota, ok = q, true
			}
			if group == "/" {
				break
			}
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
	if err1 != nil || err2 != nil || limit <= 0 || period <= 0 {
		return 0, false
	}
	return limit / period, true
}
