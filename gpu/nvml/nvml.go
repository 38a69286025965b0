//go:build cuda

package nvml

import "github.com/NVIDIA/go-nvml/pkg/nvml"

// Read returns the facts of the GPU with that PCI address, "0000:65:00.0", or of the library's first where it is empty; ok
// is false where the library doesn't load or has no such GPU. It loads the library for the call alone.
func Read(address string) (facts Facts, ok bool) {
	return read(nvml.New(), address)
}

func read(lib nvml.Interface, address string) (facts Facts, ok bool) {
	if lib.Init() != nvml.SUCCESS {
		return Facts{}, false
	}
	defer lib.Shutdown() // an error of it changes nothing in the facts
	device, ret := lib.DeviceGetHandleByIndex(0)
	if address != "" {
		device, ret = lib.DeviceGetHandleByPciBusId(address)
	}
	if ret != nvml.SUCCESS {
		return Facts{}, false
	}
	// What a GPU doesn't tell is zero here, and absent.
	facts.Name, _ = device.GetName()
	facts.Driver, _ = lib.SystemGetDriverVersion()
	if u, ret := device.GetUtilizationRates(); ret == nvml.SUCCESS {
		share := float64(u.Gpu) / 100
		facts.Utilization = &share
	}
	if m, ret := device.GetMemoryInfo(); ret == nvml.SUCCESS {
		facts.Memory, facts.MemoryUsed = m.Total, m.Used
	}
	if mhz, ret := device.GetClockInfo(nvml.CLOCK_SM); ret == nvml.SUCCESS {
		facts.Clock = uint(mhz)
	}
	if mhz, ret := device.GetClockInfo(nvml.CLOCK_MEM); ret == nvml.SUCCESS {
		facts.MemoryClock = uint(mhz)
	}
	facts.Power = watts(device.GetPowerUsage())
	facts.PowerLimit = watts(device.GetEnforcedPowerLimit())
	// What replaces this is missing in older drivers' libraries, and calling it there would end the process.
	if celsius, ret := device.GetTemperature(nvml.TEMPERATURE_GPU); ret == nvml.SUCCESS {
		t := float64(celsius)
		facts.Temperature = &t
	}
	return facts, true
}

func watts(milliwatts uint32, ret nvml.Return) *float64 {
	if ret != nvml.SUCCESS {
		return nil
	}
	w := float64(milliwatts) / 1000
	return &w
}
