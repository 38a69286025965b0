//go:build cuda

package nvml

import (
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/google/go-cmp/cmp"
)

func ptr(v float64) *float64 { return &v }

func TestRead(t *testing.T) {
	device := &mock.Device{
		GetNameFunc:               func() (string, nvml.Return) { return "NVIDIA T4", nvml.SUCCESS },
		GetUtilizationRatesFunc:   func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{Gpu: 37}, nvml.SUCCESS },
		GetMemoryInfoFunc:         func() (nvml.Memory, nvml.Return) { return nvml.Memory{Total: 16, Used: 5}, nvml.SUCCESS },
		GetClockInfoFunc:          func(c nvml.ClockType) (uint32, nvml.Return) { return 1000 + uint32(c), nvml.SUCCESS },
		GetPowerUsageFunc:         func() (uint32, nvml.Return) { return 31500, nvml.SUCCESS },
		GetEnforcedPowerLimitFunc: func() (uint32, nvml.Return) { return 70000, nvml.SUCCESS },
		GetTemperatureFunc:        func(s nvml.TemperatureSensors) (uint32, nvml.Return) { return 41 + uint32(s), nvml.SUCCESS },
	}
	silent := &mock.Device{
		GetNameFunc:               func() (string, nvml.Return) { return "", nvml.ERROR_UNKNOWN },
		GetUtilizationRatesFunc:   func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{}, nvml.ERROR_NOT_SUPPORTED },
		GetMemoryInfoFunc:         func() (nvml.Memory, nvml.Return) { return nvml.Memory{}, nvml.ERROR_NOT_SUPPORTED },
		GetClockInfoFunc:          func(nvml.ClockType) (uint32, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED },
		GetPowerUsageFunc:         func() (uint32, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED },
		GetEnforcedPowerLimitFunc: func() (uint32, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED },
		GetTemperatureFunc:        func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED },
	}
	for _, tc := range []struct {
		name    string
		address string
		load    nvml.Return
		device  *mock.Device
		found   nvml.Return
		want    Facts
		ok      bool
	}{
		{"first", "", nvml.SUCCESS, device, nvml.SUCCESS, Facts{Name: "NVIDIA T4", Driver: "550.54.15", Utilization: ptr(0.37), MemoryUsed: 5, Memory: 16,
			Clock: 1001, MemoryClock: 1002, Power: ptr(31.5), PowerLimit: ptr(70), Temperature: ptr(41)}, true},
		{"by address, silent", "0000:65:00.0", nvml.SUCCESS, silent, nvml.SUCCESS, Facts{Driver: "550.54.15"}, true},
		{"no library", "", nvml.ERROR_LIBRARY_NOT_FOUND, nil, nvml.SUCCESS, Facts{}, false},
		{"no such GPU", "0000:65:00.0", nvml.SUCCESS, nil, nvml.ERROR_NOT_FOUND, Facts{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			lib := &mock.Interface{
				InitFunc:                   func() nvml.Return { return tc.load },
				ShutdownFunc:               func() nvml.Return { return nvml.SUCCESS },
				SystemGetDriverVersionFunc: func() (string, nvml.Return) { return "550.54.15", nvml.SUCCESS },
				DeviceGetHandleByIndexFunc: func(i int) (nvml.Device, nvml.Return) { return tc.device, tc.found },
				DeviceGetHandleByPciBusIdFunc: func(address string) (nvml.Device, nvml.Return) {
					if address != tc.address {
						t.Errorf("asked for %s", address)
					}
					return tc.device, tc.found
				},
			}
			got, ok := read(lib, tc.address)
			if diff := cmp.Diff(tc.want, got); diff != "" || ok != tc.ok {
				t.Errorf("%v, %s", ok, diff)
			}
			if want := map[bool]int{true: 1}[tc.load == nvml.SUCCESS]; len(lib.ShutdownCalls()) != want {
				t.Errorf("%d shutdowns, want %d", len(lib.ShutdownCalls()), want)
			}
		})
	}
}

// Where the library isn't there, or is, Read doesn't fail.
func TestReadHere(t *testing.T) {
	if facts, ok := Read(""); !ok && facts != (Facts{}) {
		t.Errorf("facts without a GPU: %+v", facts)
	}
}
