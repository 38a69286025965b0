//go:build !cuda

package nvml

// Read returns false: the build has no CUDA.
func Read(string) (Facts, bool) { return Facts{}, false }
