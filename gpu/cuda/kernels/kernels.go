// Package kernels holds the GPU's part of a training step: CUDA C++ in the .cu files, and the PTX made of it by the script
// build, which the driver compiles for the GPU that is there.
package kernels

import (
	_ "embed"
)

// The modules that every GPU takes from compute capability 7.0 on.
var (
	//go:embed conv.ptx
	conv string
	//go:embed linear.ptx
	linear string
	//go:embed loss.ptx
	loss string
	//go:embed update.ptx
	update string
	//go:embed layout.ptx
	layout string
	//go:embed augment.ptx
	augment string
)

// TF32 is the PTX of the convolutions on tensor cores. It needs compute capability 8.0.
//
//go:embed conv_tf32.ptx
var TF32 string

// Modules returns the PTX of all other kernels, which need compute capability 7.0.
func Modules() []string { return []string{conv, linear, loss, update, layout, augment} }
