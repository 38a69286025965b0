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
			return err
		}
		return load(found)
	}
	// A name without a folder the dynamic linker would look for elsewhere.
	file, err := filepath.Abs(file)
	if err == nil {
		err = checkFile(file)
	}
	if err != nil {
		return fmt.Errorf("the driver library that %s names can't be used: %w", Variable, err)
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
			return errors.New("no CUDA driver is installed (" + C.GoString(why) + ")")
		}
		return errors.New("the CUDA driver library can't be loaded: " + C.GoString(why))
	case 2:
		return fmt.Errorf("%s isn't a CUDA driver that pipectl can use: it has no function %s", library, C.GoString(why))
	}
	switch err := Result(C.library_init(init)); err {
	case 0:
		return nil
	case noDevice:
		return errors.New("the CUDA driver finds no GPU")
	case stubLibrary:
		return fmt.Errorf("%s is the CUDA toolkit's stub to link with, not a driver", library)
	default:
		return fmt.Errorf("the CUDA driver can't be initialised: %w", err)
	}
}
