package machine

import "golang.org/x/sys/unix"

// Cores returns the numbers of the cores that this process may run on; nil if that isn't known.
func Cores() []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	var cores []int
	for c := range len(set) * 64 {
		if set.IsSet(c) {
			cores = append(cores, c)
		}
	}
	return cores
}
