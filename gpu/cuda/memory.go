//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"unsafe"

	"github.com/pipectl/pipectl/gpu/cuda/driver"
	"github.com/pipectl/pipectl/stages"
)

// hostMemory is the host memory that Alloc has given out. None of it is Go's, so the driver may copy from it after a call
// has returned.
type hostMemory struct {
	mu     sync.Mutex
	blocks map[*byte]hostBlock // by their first byte
}

type hostBlock struct {
	mem    []byte
	pinned bool
}

// Alloc returns n zeroed bytes, page-locked where pinned is true and else mapped from the system, aligned to a page in any
// case. Memory that isn't given back is freed by Close.
func (d *Device) Alloc(n int, pinned bool) ([]byte, func(), error) {
	if n < 0 {
		return nil, nil, fmt.Errorf("can't allocate %d bytes", n)
	}
	if n == 0 {
		return []byte{}, func() {}, nil
	}
	b := hostBlock{pinned: pinned}
	err := d.do(func() (err error) {
		if b.mem, err = b.take(n); err == nil {
			d.host.add(b)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	clear(b.mem)
	return b.mem, func() { d.giveBack(b) }, nil
}

// take returns n bytes of the block's kind.
func (b hostBlock) take(n int) ([]byte, error) {
	if !b.pinned {
		mem, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			return nil, fmt.Errorf("mapping %s of host memory: %w", stages.Bytes(n), err)
		}
		return mem, nil
	}
	mem, err := driver.HostAlloc(n)
	if errors.Is(err, driver.OutOfMemory) {
		return nil, fmt.Errorf("taking %s of page-locked host memory: %w; make the batches smaller, or set pinned = false in the transfer block", stages.Bytes(n), err)
	}
	return mem, failed(err, "taking page-locked host memory")
}

// give gives the block's memory back.
func (b hostBlock) give() error {
	if b.pinned {
		return failed(driver.FreeHost(b.mem), "freeing page-locked host memory")
	}
	return syscall.Munmap(b.mem)
}

// giveBack frees a block of Alloc, once. Close returns its error.
func (d *Device) giveBack(b hostBlock) {
	if !d.host.remove(b) {
		return
	}
	if err := d.do(b.give); err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.late = errors.Join(d.late, err)
	}
}

func (h *hostMemory) add(b hostBlock) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.blocks == nil {
		h.blocks = map[*byte]hostBlock{}
	}
	h.blocks[unsafe.SliceData(b.mem)] = b
}

// remove reports whether the block was still there.
func (h *hostMemory) remove(b hostBlock) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.blocks[unsafe.SliceData(b.mem)]
	delete(h.blocks, unsafe.SliceData(b.mem))
	return ok
}

// holds reports whether mem starts where a block does, so that it isn't Go's.
func (h *hostMemory) holds(mem []byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, ok := h.blocks[unsafe.SliceData(mem)]
	return ok && len(mem) <= len(b.mem)
}

// free frees all blocks. Called on the main thread.
func (h *hostMemory) free() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for _, b := range h.blocks {
		errs = append(errs, b.give())
	}
	clear(h.blocks)
	return errors.Join(errs...)
}

// FreeMemory returns how many bytes of the GPU's memory are free.
func (d *Device) FreeMemory() (free uint64, err error) {
	err = d.do(func() (err error) {
		free, _, err = driver.MemInfo()
		return failed(err, "asking for the GPU's free memory")
	})
	return free, err
}
