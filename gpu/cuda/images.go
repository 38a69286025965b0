//go:build cuda

package cuda

import "github.com/pipectl/pipectl/gpu/cuda/kernels"

// images returns the PTX of the kernels.
func images() []string { return kernels.Modules() }
