//go:build cuda

// Package control asks the emulated CUDA driver what a real one doesn't tell, and plans faults for it. It is for tests.
package control

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

static void call_state(void *f, int64_t *state) { ((void (*)(int64_t *))f)(state); }
static void call_reset(void *f) { ((void (*)(void))f)(); }
static void call_fail(void *f, int64_t n, int result) { ((void (*)(int64_t, int))f)(n, result); }
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// Emulator is the emulated driver that the process has loaded.
type Emulator struct{ state, fail, reset unsafe.Pointer }

// Held counts what a program holds of the driver.
type Held struct{ DeviceMemory, PinnedMemory, Streams, Events, Modules int64 }

// State is where the emulator stands.
type State struct {
	Held  Held  // now
	Left  Held  // when the context went last
	Calls int64 // since the start, or since Fail
}

// Open returns the emulator in a driver library that is loaded, or an error if the library is another.
func Open(file string) (*Emulator, error) {
	name := C.CString(file)
	defer C.free(unsafe.Pointer(name))
	library := C.dlopen(name, C.RTLD_NOW|C.RTLD_NOLOAD)
	if library == nil {
		return nil, fmt.Errorf("%s isn't loaded", file)
	}
	e := &Emulator{symbol(library, "emulator_state"), symbol(library, "emulator_fail"), symbol(library, "emulator_reset")}
	if e.state == nil || e.fail == nil || e.reset == nil {
		return nil, fmt.Errorf("%s isn't the emulated driver", file)
	}
	return e, nil
}

func symbol(library unsafe.Pointer, name string) unsafe.Pointer {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	return C.dlsym(library, s)
}

// State returns the emulator's state.
func (e *Emulator) State() State {
	var s State
	// A State is 11 numbers, as emulator_state writes them.
	C.call_state(e.state, (*C.int64_t)(unsafe.Pointer(&s)))
	return s
}

// Fail lets the n-th call from now fail with a CUresult, or none where n is 0. After a result that loses the context, all
// later calls fail too.
func (e *Emulator) Fail(n int64, result int) { C.call_fail(e.fail, C.int64_t(n), C.int(result)) }

// Reset makes the emulator as it was when it was loaded. What programs hold of it is gone.
func (e *Emulator) Reset() { C.call_reset(e.reset) }
