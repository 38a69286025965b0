//go:build !cgo || !amd64

package stages

// fastKernels returns the fastest kernels that this machine has.
func fastKernels() kernels { return portable{} }
