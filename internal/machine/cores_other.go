//go:build !linux

package machine

// Cores returns the numbers of the cores that this process may run on; nil if that isn't known.
func Cores() []int { return nil }
