package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/cpu"
	"github.com/pipectl/pipectl/gpu/nvml"
	"github.com/pipectl/pipectl/internal/doctor"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
)

// gpuFacts returns what NVML says of a T4 that draws so many watts.
func gpuFacts(utilization float64, clock uint, power, temperature float64) *nvml.Facts {
	return &nvml.Facts{Name: "NVIDIA T4", Driver: "550.54.15", Utilization: &utilization, MemoryUsed: 1 << 29, Memory: 15 << 30, Clock: clock,
		MemoryClock: 5000, Power: &power, PowerLimit: pointer(70.0), Temperature: &temperature}
}

// machineFiles returns what the kernel of a machine with 8 CPUs says; changes are names and texts in turn.
func machineFiles(changes ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for list := append([]string{
		"proc/self/limits", "Max open files            1048576              1048576              files     \nMax locked memory         unlimited            unlimited            bytes     \n",
		"proc/self/status", "Cpus_allowed_list:\t0-7\n",
		"proc/cpuinfo", "model name\t: Example CPU 9000\nflags\t\t: sse4_2 avx f16c fma avx2\n",
		"proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable: 25165824 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n",
		"sys/devices/system/cpu/online", "0-7\n",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "4200000\n",
		"sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "4200000\n",
		"sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n",
		"sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n",
		"sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm\n",
		"sys/bus/pci/devices/0000:65:00.0/vendor", "0x10de\n",
		"sys/bus/pci/devices/0000:65:00.0/class", "0x030200\n",
	}, changes...); len(list) > 0; list = list[2:] {
		m[list[0]] = &fstest.MapFile{Data: []byte(list[1])}
	}
	return m
}

func TestWriteDoctor(t *testing.T) {
	host := stored("6a3f9k2m0x", 0, 0, 0).Host
	device := gpu.Info{Kind: "cuda", Name: "NVIDIA T4", Memory: 15 << 30, PCI: "0000:65:00.0", Why: "device = \"auto\" takes CUDA where it can be used."}
	for name, m := range map[string]*doctor.Machine{
		"well": {
			Root: machineFiles(), CPUs: 8, PageSize: 4096, ClockRead: 24 * time.Nanosecond, JPEGDecoder: "libjpeg-turbo", BLAS: "gonum", Device: device,
			GPU: gpuFacts(0, 300, 9.5, 34), Shm: &doctor.Space{Free: 16 << 30, Total: 16 << 30},
			Results: doctor.Results{Path: ".pipectl/results.db", Space: &doctor.Space{Free: 200 << 30, Total: 400 << 30}},
		},
		"ailing": {
			Root: machineFiles(
				"proc/self/limits", "Max open files            256                  4096                 files     \nMax locked memory         8388608              8388608              bytes     \n",
				"proc/self/status", "Cpus_allowed_list:\t0-3\n",
				"proc/self/cgroup", "0::/\n", "sys/fs/cgroup/cpu.max", "250000 100000\n", "sys/fs/cgroup/memory.max", "4294967296\n", "sys/fs/cgroup/memory.current", "3758096384\n",
				"proc/cpuinfo", "flags\t\t: sse4_2\n",
				"proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable: 1048576 kB\nSwapTotal: 8388608 kB\nSwapFree: 1048576 kB\n",
				"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n",
				"sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "800000\n",
				"sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq", "2100000\n",
				"sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n",
				"sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n",
			),
			CPUs: 4, PageSize: 4096, ClockRead: 1200 * time.Nanosecond, JPEGDecoder: "Go image/jpeg", BLAS: "gonum",
			DeviceErr: &gpu.Unusable{
				Err: errors.New("the CUDA driver is too old for the kernels: it serves CUDA 8.0; update it (CUDA_ERROR_UNSUPPORTED_PTX_VERSION (the provided PTX was compiled with an unsupported toolchain.))"),
				Fix: "Update NVIDIA's driver: its `nvidia-smi` shows the CUDA version that it serves.",
			},
			GPU: gpuFacts(0.97, 1455, 69.6, 81), Shm: &doctor.Space{Free: 64 << 20, Total: 64 << 20},
			Results: doctor.Results{Path: "/srv/a/folder/with/a/name/that/does/not/fit/on/a/line/of/eighty/columns/.pipectl/results.db", Err: fs.ErrPermission},
		},
		"bare": {
			Root: fstest.MapFS{}, CPUs: 2, PageSize: 16384, ClockRead: 30 * time.Nanosecond, JPEGDecoder: "libjpeg-turbo", BLAS: "OpenBLAS",
			DeviceErr: &gpu.Unusable{Err: errors.New("this build has no CUDA support"), Fix: "Build pipectl with `make build`, which adds it on Linux."},
			Results:   doctor.Results{Path: "results.db"},
		},
		"broken": {
			Root: machineFiles(), CPUs: 8, PageSize: 4096, JPEGDecoder: "libjpeg-turbo", BLAS: "gonum", Device: device, CloseErr: errors.New("the device is lost"),
			Results: doctor.Results{Path: "results.db"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			findings := doctor.Examine(m)
			goldenViews(t, "doctor_"+name, func(out *bytes.Buffer, term ui.Terminal) { writeDoctor(out, term, findings, &host) })
			goldenJSON(t, "doctor_"+name, newDoctorView(findings, host))
		})
	}
}

// fakeGPU is the CPU in the guise of a GPU at a PCI address.
type fakeGPU struct {
	gpu.Device
	closing error
}

func (fakeGPU) Info() gpu.Info {
	return gpu.Info{Kind: "cuda", Name: "NVIDIA T4", Memory: 15 << 30, PCI: "0000:65:00.0", Why: "Test."}
}

func (d fakeGPU) Close() error { return errors.Join(d.Device.Close(), d.closing) }

// The doctor opens the device, reads its facts and closes it. It says what the machine lacks with the exit code 0, and has 1 for
// a check that failed.
func TestDoctor(t *testing.T) {
	for _, tc := range []struct {
		name    string
		closing error
		code    int
		cuda    string
	}{
		{"well", nil, 0, "ok"},
		{"broken", errors.New("the device is lost"), 1, "problem"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, out, errs := world()
			w.OpenDevice = func(string) (gpu.Device, error) { return fakeGPU{cpu.New("Test."), tc.closing}, nil }
			w.ReadGPU = func(pci string) (nvml.Facts, bool) { return nvml.Facts{Name: "T4 at " + pci}, true }
			code := Run(context.Background(), []string{"doctor", "--json", "--db", filepath.Join(t.TempDir(), "a", "results.db")}, w)
			var v doctorView
			if err := json.Unmarshal(out.Bytes(), &v); err != nil {
				t.Fatalf("%v: %s%s", err, out, errs)
			}
			if code != tc.code || v.Checks[0].Check != "cuda" || string(v.Checks[0].State) != tc.cuda || v.Checks[1].Text != "T4 at 0000:65:00.0" ||
				v.Host.Device != "cuda" || v.Host.GPU.Name != "T4 at 0000:65:00.0" {
				t.Errorf("exit code %d with %+v", code, v)
			}
		})
	}
}

// A run on a GPU keeps what is known of it before and after, and asks for it by its address.
func TestRunKeepsGPU(t *testing.T) {
	dir := t.TempDir()
	w, out, errs := world()
	w.OpenDevice = func(string) (gpu.Device, error) { return fakeGPU{Device: cpu.New("Test.")}, nil }
	var asked []string
	w.ReadGPU = func(pci string) (nvml.Facts, bool) {
		asked = append(asked, pci)
		return *gpuFacts(float64(len(asked))/10, 300, 9.5, 34), true
	}
	run := func(args ...string) {
		t.Helper()
		out.Reset()
		if code := Run(context.Background(), args, w); code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, errs)
		}
	}
	db := filepath.Join(dir, "results.db")
	file := filepath.Join(dir, "short.hcl")
	const text = `experiment "short" {
  load "synthetic" "items" { items = 2 }
  batch { size = 1 }
  train "emulated" "step" { time = "1ms" }
}
`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	run("run", file, "--epochs", "1", "--db", db, "--json")
	run("show", "--db", db, "--json")
	var v runView
	if err := json.Unmarshal(out.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	want := results.Host{Device: "cuda", DeviceName: "NVIDIA T4", DeviceMemory: 15 << 30, GPU: gpuFacts(0.1, 300, 9.5, 34), GPUEnd: gpuFacts(0.2, 300, 9.5, 34)}
	got := results.Host{Device: v.Host.Device, DeviceName: v.Host.DeviceName, DeviceMemory: v.Host.DeviceMemory, GPU: v.Host.GPU, GPUEnd: v.Host.GPUEnd}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := strings.Join(asked, " "); got != "0000:65:00.0 0000:65:00.0" {
		t.Errorf("asked for %s", got)
	}
}
