package python

import (
	"fmt"
	"math/bits"
	"os"
	"sync"
	"unsafe"

	"github.com/shirou/gopsutil/v4/mem"

	"github.com/pipectl/pipectl/stages"
)

// page is what regions are aligned to, so that processes can map them one by one.
const page = 4096

// arena is memory that this process shares with those of Python: a file in memory, of which nothing has a name. It takes no memory
// before it is written to.
type arena struct {
	file *os.File
	mem  []byte

	mu   sync.Mutex
	next int
	free map[int][]int // offsets of regions, by their size
}

// leastArena is the least size of an arena that isn't given up.
const leastArena = 256 << 20

// newArena makes an arena twice the size of the machine's memory, so that it is full only after that, or smaller where the process may
// not have as much address space.
func newArena() (*arena, error) {
	size := uint64(64 << 30)
	if m, err := mem.VirtualMemory(); err == nil {
		size = 2 * m.Total
	}
	for {
		size = (size + page - 1) / page * page
		file, memory, err := mapMemory("pipectl", int(size))
		if err == nil {
			return &arena{file: file, mem: memory, free: make(map[int][]int)}, nil
		}
		if size /= 2; size < leastArena {
			return nil, fmt.Errorf("sharing memory with Python: %w: the limit on this process's address space (ulimit -v) must be raised", err)
		}
	}
}

// regionSize returns the size of the region that n bytes are put in: one of four steps between powers of two, so that regions of
// about the same size can take each other's place.
func regionSize(n int) int {
	n = max(n, page)
	step := max(1<<max(bits.Len(uint(n-1))-3, 0), page)
	return (n + step - 1) / step * step
}

// alloc returns n bytes of a region to be filled: their content is whatever was there before. Its capacity is the region's.
func (a *arena) alloc(n int) ([]byte, error) {
	size := regionSize(n)
	a.mu.Lock()
	defer a.mu.Unlock()
	if list := a.free[size]; len(list) > 0 {
		off := list[len(list)-1]
		a.free[size] = list[:len(list)-1]
		return a.mem[off : off+n : off+size], nil
	}
	if size > len(a.mem)-a.next {
		return nil, fmt.Errorf("the %s of memory that are shared with Python are used up", stages.Bytes(len(a.mem)))
	}
	off := a.next
	a.next += size
	return a.mem[off : off+n : off+size], nil
}

// release gives back a region that alloc returned. It does nothing to other memory.
func (a *arena) release(b []byte) {
	off, ok := a.offset(b)
	if !ok {
		return
	}
	a.mu.Lock()
	a.free[cap(b)] = append(a.free[cap(b)], off)
	a.mu.Unlock()
}

// offset returns where in the arena b lies; false where it lies elsewhere, or is of no capacity.
func (a *arena) offset(b []byte) (int, bool) {
	if cap(b) == 0 {
		return 0, false
	}
	off := uintptr(unsafe.Pointer(unsafe.SliceData(b))) - uintptr(unsafe.Pointer(unsafe.SliceData(a.mem)))
	return int(off), off < uintptr(len(a.mem))
}

// close frees the memory. Nobody may touch it after that.
func (a *arena) close() {
	unmapMemory(a.mem)
	a.file.Close() // of memory, nothing to flush
}
