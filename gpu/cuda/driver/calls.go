//go:build cuda

package driver

/*
#include "cuda.h"
*/
import "C"

import "unsafe"

// The calls below are those that gorgonia.org/cu lacks. Like its own they need a current context.

// result makes an error of r.
func result(r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return Result(r)
}

// HostAlloc returns n bytes, at least one, of page-locked memory, which holds anything. It isn't Go's memory, so the driver
// may hold on to it between calls. FreeHost gives it back.
func HostAlloc(n int) ([]byte, error) {
	var p unsafe.Pointer
	if err := result(C.cuMemHostAlloc(&p, C.size_t(n), C.CU_MEMHOSTALLOC_PORTABLE)); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), n), nil
}

// FreeHost gives back what HostAlloc returned.
func FreeHost(mem []byte) error {
	return result(C.cuMemFreeHost(unsafe.Pointer(unsafe.SliceData(mem))))
}

// MemInfo returns the device's free and total memory in bytes.
func MemInfo() (free, total uint64, err error) {
	var f, t C.size_t
	err = result(C.cuMemGetInfo(&f, &t))
	return uint64(f), uint64(t), err
}

// Version returns the CUDA version that the driver serves, 1000 × major + 10 × minor.
func Version() (int, error) {
	var v C.int
	err := result(C.cuDriverGetVersion(&v))
	return int(v), err
}
