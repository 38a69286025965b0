//go:build cuda

// Package driver loads the CUDA driver when it is first needed, so that one binary serves machines with a driver and
// without. Linked into a program, it takes the place of libcuda.so.1 for gorgonia.org/cu.
//
// The build needs this package's own cuda.h: CGO_CFLAGS=-I…/gpu/cuda/driver/include CGO_LDFLAGS=-Wl,--as-needed, as the
// Makefile sets them. A machine's libcuda.so is then passed over, since nothing in it is missing.
package driver

/*
#cgo CFLAGS: -I${SRCDIR}/include
#cgo LDFLAGS: -L${SRCDIR}/lib -ldl
#include <stdlib.h>
#include "library.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"unsafe"

	"github.com/pipectl/pipectl/gpu"
)

// Variable is the environment variable that names the driver library to take in place of the machine's own.
const Variable = "PIPECTL_LIBCUDA"

// soname is how the dynamic linker knows the driver.
const soname = "libcuda.so.1"

// Open loads the driver and initialises it. The first call decides: the driver serves the whole process and stays loaded,
// so later calls return the same. The error says, as part of a sentence, why there is no CUDA here.
func Open() error { return open() }

// open is a variable because the functions it finds belong to the process, as the dynamic linker's do.
var open = sync.OnceValue(func() error {
	file := os.Getenv(Variable)
	if file == "" {
		found, err := find(searchPath(os.Getenv("LD_LIBRARY_PATH")))
		if err != nil {
			return &gpu.Unusable{Err: err, Fix: reinstall}
		}
		return load(found)
	}
	// A name without a folder the dynamic linker would look for elsewhere.
	file, err := filepath.Abs(file)
	if err == nil {
		err = checkFile(file)
	}
	if err != nil {
		return &gpu.Unusable{
			Err: fmt.Errorf("the driver library that %s names can't be used: %w", Variable, err),
			Fix: "Set " + Variable + " to a driver library, or unset it to use the machine's own.",
		}
	}
	return load(file)
})

// load fills the trampolines from the library, a file or a soname, and initialises the driver.
func load(library string) error {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	const size = 1024
	why := (*C.char)(C.calloc(size, 1))
	defer C.free(unsafe.Pointer(why))
	var init unsafe.Pointer
	switch C.library_load(name, &init, why, size) {
	case 1:
		if library == soname {
			return &gpu.Unusable{
				Err: errors.New("no CUDA driver is installed (" + C.GoString(why) + ")"),
				Fix: "With an NVIDIA GPU, install NVIDIA's driver, which has libcuda.so.1; start a container with the GPU (docker run --gpus all).",
			}
		}
		return &gpu.Unusable{Err: errors.New("the CUDA driver library can't be loaded: " + C.GoString(why)), Fix: reinstall}
	case 2:
		return &gpu.Unusable{
			Err: fmt.Errorf("%s isn't a CUDA driver that pipectl can use: it has no function %s", library, C.GoString(why)), Fix: reinstall,
		}
	}
	switch err := Result(C.library_init(init)); err {
	case 0:
		return nil
	case noDevice:
		return NoGPU()
	case stubLibrary:
		return &gpu.Unusable{Err: fmt.Errorf("%s is the CUDA toolkit's stub to link with, not a driver", library), Fix: reinstall}
	default:
		return &gpu.Unusable{
			Err: fmt.Errorf("the CUDA driver can't be initialised: %w", err),
			Fix: "Restart the machine if its driver was updated since it started; `nvidia-smi` and `dmesg` may say more.",
		}
	}
}

// reinstall is what to do about a driver library that can't be used.
const reinstall = "Install NVIDIA's driver anew, or take the folder of this library out of LD_LIBRARY_PATH."

// NoGPU returns the error of a driver that has no GPU to show.
func NoGPU() error {
	return &gpu.Unusable{
		Err: errors.New("the CUDA driver finds no GPU"),
		Fix: "`nvidia-smi -L` lists the GPUs that the driver knows. CUDA_VISIBLE_DEVICES may hide them; a container must be started with them " +
			"(docker run --gpus all).",
	}
}
