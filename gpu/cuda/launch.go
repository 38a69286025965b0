//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/cuda/driver"
)

// kernel is a function of the device's modules.
type kernel struct {
	name     string
	f        cu.Function
	slots    []uint64         // of its arguments, used by one launch after the other
	pointers []unsafe.Pointer // to them
}

// load loads the kernels of a PTX file. Called on the main thread.
func (d *Device) load(ptx string) error {
	m, err := cu.LoadData(ptx)
	switch err = driver.Of(err); {
	case err == nil:
		d.modules = append(d.modules, m)
		return nil
	case errors.Is(err, driver.OldDriver):
		served := "an older one"
		if v, err := driver.Version(); err == nil {
			served = fmt.Sprintf("CUDA %d.%d", v/1000, v%1000/10)
		}
		return &gpu.Unusable{
			Err: fmt.Errorf("the CUDA driver is too old for the kernels: it serves %s; update it (%w)", served, err),
			Fix: "Update NVIDIA's driver: its `nvidia-smi` shows the CUDA version that it serves.",
		}
	case errors.Is(err, driver.NoKernelForGPU):
		return fmt.Errorf("the kernels can't run on the GPU %s: %w", d.info.Name, err)
	}
	return failed(err, "loading the kernels")
}

// kernel returns the kernel of that name. Called on the main thread.
func (d *Device) kernel(name string) (*kernel, error) {
	if k, ok := d.kernels[name]; ok {
		return k, nil
	}
	for _, m := range d.modules {
		f, err := m.Function(name)
		if errors.Is(driver.Of(err), driver.NotFound) {
			continue
		}
		if err != nil {
			return nil, failed(err, "finding the kernel "+name)
		}
		k := &kernel{name: name, f: f}
		d.kernels[name] = k
		return k, nil
	}
	return nil, fmt.Errorf("finding the kernel %s: %w", name, driver.NotFound)
}

// launch starts a kernel on s with a grid of blocks, blocks of threads and shared bytes of dynamic shared memory. The
// arguments are cu.DevicePtr, int (which the kernel has as int) and float32. Called on the main thread.
func (k *kernel) launch(s cu.Stream, grid, block [3]int, shared int, arguments ...any) error {
	// Launch reads 8 bytes for each argument, however long it is.
	for len(k.slots) < len(arguments) {
		k.slots = append(k.slots, 0)
	}
	k.pointers = k.pointers[:0]
	for i, a := range arguments {
		switch a := a.(type) {
		case cu.DevicePtr:
			k.slots[i] = uint64(a)
		case int:
			if int(int32(a)) != a {
				return fmt.Errorf("argument %d of the kernel %s is %d, which an int of the GPU can't hold", i, k.name, a)
			}
			k.slots[i] = uint64(uint32(a))
		case float32:
			k.slots[i] = uint64(math.Float32bits(a))
		default:
			return fmt.Errorf("argument %d of the kernel %s is a %T", i, k.name, a)
		}
		k.pointers = append(k.pointers, unsafe.Pointer(&k.slots[i]))
	}
	return failed(k.f.Launch(grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, s, k.pointers), "launching the kernel "+k.name)
}
