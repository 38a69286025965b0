package machine

import (
	"fmt"
	"io/fs"
	"slices"
)

// Clocks tells how fast the CPU's clock is, and how often it was slowed down for its heat.
type Clocks struct {
	Frequency float64 // Hz, the mean of the cores; negative if unknown
	Throttles int64   // times that cores, or what they lie on, got too hot, since the machine started; negative if unknown
}

// mostClocks is how many cores are asked for their frequency at most: older kernels take 10 ms to answer for a core.
const mostClocks = 8

// ReadClocks reads the clocks of some cores, by their numbers; of as many as have numbers if cores is nil. Virtual machines mostly have
// none.
//
// Sources: the kernel's Documentation/admin-guide/pm/cpufreq.rst (scaling_cur_freq) and arch/x86/kernel/cpu/mce/therm_throt.c
// (thermal_throttle).
func ReadClocks(root fs.FS, cores []int) Clocks {
	const cpus = "sys/devices/system/cpu"
	if cores == nil {
		for n := 0; ; n++ {
			if _, err := fs.Stat(root, fmt.Sprintf("%s/cpu%d", cpus, n)); err != nil {
				break
			}
			cores = append(cores, n)
		}
	}
	c := Clocks{Frequency: -1, Throttles: -1}
	sum, read := 0.0, 0
	every := max((len(cores)+mostClocks-1)/mostClocks, 1)
	for i := 0; i < len(cores); i += every {
		if kHz, err := readNumber(root, fmt.Sprintf("%s/cpu%d/cpufreq/scaling_cur_freq", cpus, cores[i])); err == nil && kHz > 0 {
			sum, read = sum+1e3*float64(kHz), read+1
		}
	}
	if read > 0 {
		c.Frequency = sum / float64(read)
	}
	var packages []int64 // each core tells its package's count too
	for _, n := range cores {
		dir := fmt.Sprintf("%s/cpu%d/thermal_throttle/", cpus, n)
		core, err := readNumber(root, dir+"core_throttle_count")
		if err != nil {
			continue
		}
		c.Throttles = max(c.Throttles, 0) + core
		whole, err1 := readNumber(root, dir+"package_throttle_count")
		id, err2 := readNumber(root, fmt.Sprintf("%s/cpu%d/topology/physical_package_id", cpus, n))
		if err1 == nil && err2 == nil && !slices.Contains(packages, id) {
			packages, c.Throttles = append(packages, id), c.Throttles+whole
		}
	}
	return c
}
