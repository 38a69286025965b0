// Package nvml reads facts about a GPU from NVIDIA's management library, where a machine has it and the build has CUDA.
package nvml

// Facts are what is known of a GPU at one moment. What can't be found out is absent: "", nil or 0.
type Facts struct {
	Name        string   `json:"name,omitempty"`
	Driver      string   `json:"driver,omitempty"`       // the driver's version: "550.54.15"
	Utilization *float64 `json:"utilization,omitempty"`  // the share of the last sampling period, up to a second, in which a kernel ran
	MemoryUsed  uint64   `json:"memory_used,omitempty"`  // bytes, by all processes
	Memory      uint64   `json:"memory,omitempty"`       // bytes in all
	Clock       uint     `json:"clock,omitempty"`        // of the multiprocessors, in MHz
	MemoryClock uint     `json:"memory_clock,omitempty"` // in MHz
	Power       *float64 `json:"power,omitempty"`        // W
	PowerLimit  *float64 `json:"power_limit,omitempty"`  // W
	Temperature *float64 `json:"temperature,omitempty"`  // °C
}
