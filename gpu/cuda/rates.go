//go:build cuda

package cuda

import "gorgonia.org/cu"

// Rates are a GPU's peaks, by its typical clocks; 0 where the driver doesn't tell or the model is newer than this table.
type Rates struct {
	Float32 float64 // multiplications and additions in float32, a second
	TF32    float64 // on tensor cores, without sparsity
	Memory  float64 // bytes a second
}

// Rates returns the GPU's peaks. How many multiply-adds a multiprocessor does in a clock is from NVIDIA's CUDA C++
// Programming Guide ("Arithmetic Instructions") and architecture white papers.
func (d *Device) Rates() (r Rates, err error) {
	attributes := map[cu.DeviceAttribute]float64{
		cu.ComputeCapabilityMajor: 0, cu.ComputeCapabilityMinor: 0, cu.MultiprocessorCount: 0, cu.ClockRate: 0,
		cu.MemoryClockRate: 0, cu.GlobalMemoryBusWidth: 0,
	}
	err = d.do(func() error {
		for a := range attributes {
			v, err := d.device.Attribute(a)
			if err != nil {
				return failed(err, "asking for the GPU's attributes")
			}
			attributes[a] = float64(v)
		}
		return nil
	})
	if err != nil {
		return Rates{}, err
	}
	perClock := map[int]struct{ float32, tf32 float64 }{
		70: {64, 0}, 72: {64, 0}, 75: {64, 0}, 80: {64, 512}, 86: {128, 128}, 87: {128, 128}, 89: {128, 128}, 90: {128, 1024},
	}[int(10*attributes[cu.ComputeCapabilityMajor]+attributes[cu.ComputeCapabilityMinor])]
	const kilo, twice = 1000, 2 // a multiply-add is two operations; memory moves data on both edges of its clock
	clock := kilo * attributes[cu.ClockRate] * attributes[cu.MultiprocessorCount]
	return Rates{
		Float32: twice * perClock.float32 * clock,
		TF32:    twice * perClock.tf32 * clock,
		Memory:  twice * kilo * attributes[cu.MemoryClockRate] * attributes[cu.GlobalMemoryBusWidth] / 8,
	}, nil
}
