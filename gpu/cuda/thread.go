//go:build cuda

package cuda

import (
	"fmt"
	"runtime"

	"github.com/pipectl/pipectl/gpu/cuda/driver"
)

// thread is an OS thread on which the device's context is current. It executes calls one after the other.
type thread struct {
	calls chan func()
	ended chan struct{}
}

// newThread starts a thread, which has no context yet.
func newThread() *thread {
	t := &thread{make(chan func()), make(chan struct{})}
	go func() {
		defer close(t.ended)
		runtime.LockOSThread() // never unlocked: the OS thread ends with the goroutine, and no other inherits the context
		for call := range t.calls {
			call()
		}
	}()
	return t
}

// run executes f on the thread and returns its error. A panic of f comes back in the caller.
func (t *thread) run(f func() error) error {
	type outcome struct {
		err      error
		panicked any
	}
	done := make(chan outcome, 1)
	t.calls <- func() {
		var o outcome
		defer func() {
			o.panicked = recover()
			done <- o
		}()
		o.err = f()
	}
	o := <-done
	if o.panicked != nil {
		panic(o.panicked)
	}
	return o.err
}

// end ends the thread once it has executed what it was given.
func (t *thread) end() {
	close(t.calls)
	<-t.ended
}

// failed adds to an error of gorgonia.org/cu what was asked of the driver, and the driver's name and text for it; nil
// stays nil.
func failed(err error, doing string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, driver.Of(err))
}
