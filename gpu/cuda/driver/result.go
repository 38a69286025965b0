//go:build cuda

package driver

/*
#include "cuda.h"
*/
import "C"

import (
	"fmt"
	"reflect"
)

// Result is a CUresult that isn't CUDA_SUCCESS.
type Result int

// The results that callers decide on.
const (
	OutOfMemory    Result = C.CUDA_ERROR_OUT_OF_MEMORY
	NotFound       Result = C.CUDA_ERROR_NOT_FOUND
	OldDriver      Result = C.CUDA_ERROR_UNSUPPORTED_PTX_VERSION
	NoKernelForGPU Result = C.CUDA_ERROR_NO_BINARY_FOR_GPU
	noDevice       Result = C.CUDA_ERROR_NO_DEVICE
	stubLibrary    Result = C.CUDA_ERROR_STUB_LIBRARY
)

// Error gives the name and the text that the driver has for the result.
func (r Result) Error() string {
	var name, text *C.char
	if C.cuGetErrorName(C.CUresult(r), &name) != 0 || name == nil {
		return fmt.Sprintf("CUDA error %d", int(r))
	}
	if C.cuGetErrorString(C.CUresult(r), &text) != 0 || text == nil {
		return C.GoString(name)
	}
	return C.GoString(name) + " (" + C.GoString(text) + ")"
}

// Fatal reports whether the context, and with it all work and memory on the device, is lost: the driver answers every
// later call with the same result.
func (r Result) Fatal() bool {
	switch r {
	case C.CUDA_ERROR_ECC_UNCORRECTABLE, C.CUDA_ERROR_NVLINK_UNCORRECTABLE, C.CUDA_ERROR_ILLEGAL_ADDRESS, C.CUDA_ERROR_LAUNCH_TIMEOUT,
		C.CUDA_ERROR_CONTEXT_IS_DESTROYED, C.CUDA_ERROR_ASSERT, C.CUDA_ERROR_HARDWARE_STACK_ERROR, C.CUDA_ERROR_ILLEGAL_INSTRUCTION,
		C.CUDA_ERROR_MISALIGNED_ADDRESS, C.CUDA_ERROR_INVALID_ADDRESS_SPACE, C.CUDA_ERROR_INVALID_PC, C.CUDA_ERROR_LAUNCH_FAILED,
		C.CUDA_ERROR_DEINITIALIZED, C.CUDA_ERROR_DEVICE_UNAVAILABLE, C.CUDA_ERROR_UNKNOWN:
		return true
	}
	return false
}

// Of returns the Result in an error of gorgonia.org/cu, whose own type is unexported and knows no texts; other errors,
// and nil, as they are.
func Of(err error) error {
	if v := reflect.ValueOf(err); v.IsValid() && v.Kind() == reflect.Int {
		return Result(v.Int())
	}
	return err
}
