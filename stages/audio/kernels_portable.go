//go:build !cgo || !amd64

package audio

// fastKernels returns the fastest kernels that this machine has.
func fastKernels() kernels { return portable{} }
