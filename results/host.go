package results

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/mem"

	"github.com/pipectl/pipectl/gpu/nvml"
	"github.com/pipectl/pipectl/internal/machine"
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
	NUMANodes    int      `json:"numa_nodes,omitempty"`
	Affinity     string   `json:"affinity,omitempty"`  // the numbers of the CPUs that the process may run on, where these aren't all
	CPUCache     int64    `json:"cpu_cache,omitempty"` // bytes of the last level
	Memory       uint64   `json:"memory,omitempty"`    // bytes
	Go           string   `json:"go,omitempty"`
	Device       string   `json:"device,omitempty"` // "cpu" or "cuda"
	DeviceName   string   `json:"device_name,omitempty"`
	DeviceMemory uint64   `json:"device_memory,omitempty"` // bytes

	GPU    *nvml.Facts `json:"gpu,omitempty"`     // when the run began, where the device is a GPU
	GPUEnd *nvml.Facts `json:"gpu_end,omitempty"` // when its last measurement had ended
}

// ReadHost finds out about this machine. The device is for the caller to add.
func ReadHost(ctx context.Context) Host {
	h := Host{
		Arch:       runtime.GOARCH,
		GOMAXPROCS: runtime.GOMAXPROCS(0),
		Governor:   machine.Governor(os.DirFS("/")),
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
	h.NUMANodes, h.CPUCache = machine.NUMANodes(os.DirFS("/")), machine.LastLevelCache(os.DirFS("/"))
	if cores := machine.Cores(); len(cores) < h.CPUs {
		h.Affinity = machine.CPUList(cores)
	}
	if quota, ok := machine.CPUQuota(os.DirFS("/")); ok {
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
	driver := ""
	if h.GPU != nil {
		driver = h.GPU.Driver
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
		{"NUMA nodes", number(uint64(h.NUMANodes)), false},
		{"CPU affinity", h.Affinity, false}, // how many there are is GOMAXPROCS's to say
		{"bytes of last-level cache", number(uint64(h.CPUCache)), false},
		{"bytes of memory", number(h.Memory), true},
		{"Go", h.Go, false},
		{"device", strings.TrimSpace(h.Device + " " + h.DeviceName), true},
		{"bytes of device memory", number(h.DeviceMemory), true},
		{"GPU driver", driver, false},
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
