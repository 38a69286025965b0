//go:build cuda

// Package cuda is the CUDA device, through gorgonia.org/cu. It exists in builds with the tag cuda.
package cuda

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"gorgonia.org/cu"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/cuda/driver"
	"github.com/pipectl/pipectl/stages"
)

// Device is the first GPU that the driver shows, by its primary context.
//
// All work is given to the GPU by the main thread, in the order of the calls of do, but for the copies of batches: they
// have a thread of their own, since the driver may keep it busy while it copies from memory that isn't page-locked. What
// the two do on the GPU is ordered by events alone.
type Device struct {
	info   gpu.Info
	device cu.Device
	main   *thread
	copier *thread

	// Used on the main thread.
	context cu.CUContext
	modules []cu.Module
	kernels map[string]*kernel
	compute cu.Stream // where steps run
	// Used on the copier's thread.
	copies cu.Stream

	buffers bufferPool
	events  eventPool
	host    hostMemory

	mu      sync.Mutex
	lost    error // why the context is lost
	late    error // what nobody was there to be told
	closed  bool
	waiters []*thread
	waiting sync.WaitGroup
}

// minCapability is the compute capability, 10 × major + minor, that the kernels are compiled for.
const minCapability = 70

// Open opens the first GPU and loads the kernels. why is what Info shall say. The error says, as part of a sentence, why
// CUDA can't be used here.
func Open(why string) (*Device, error) { return open(why, images()) }

func open(why string, ptx []string) (*Device, error) {
	if err := driver.Open(); err != nil {
		return nil, err
	}
	if file := os.Getenv(driver.Variable); file != "" {
		why += fmt.Sprintf(" Its driver is %s, which %s names.", file, driver.Variable)
	}
	d := &Device{main: newThread(), copier: newThread(), kernels: map[string]*kernel{}}
	d.info.Kind, d.info.Why = "cuda", why
	if err := d.open(ptx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Device) open(ptx []string) error {
	err := d.do(func() error {
		n, err := cu.NumDevices()
		if err != nil {
			return failed(err, "counting the GPUs")
		}
		if n == 0 {
			return driver.NoGPU()
		}
		if d.device, err = cu.GetDevice(0); err != nil {
			return failed(err, "opening the first GPU")
		}
		if err := d.describe(); err != nil {
			return err
		}
		context, err := d.device.RetainPrimaryCtx()
		if err != nil {
			return failed(err, "taking the GPU's primary context")
		}
		d.context = context
		if err := cu.SetCurrentContext(context); err != nil {
			return failed(err, "making the context current")
		}
		if d.compute, err = cu.MakeStream(cu.NonBlocking); err != nil {
			return failed(err, "making the stream of the steps")
		}
		for _, image := range ptx {
			if err := d.load(image); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.on(d.copier, func() (err error) {
		if err := cu.SetCurrentContext(d.context); err != nil {
			return failed(err, "making the context current")
		}
		d.copies, err = cu.MakeStream(cu.NonBlocking)
		return failed(err, "making the stream of the copies")
	})
}

// describe fills in the GPU's name, memory and address, and checks that the kernels can run on it.
func (d *Device) describe() error {
	name, err := d.device.Name()
	if err != nil {
		return failed(err, "asking for the GPU's name")
	}
	total, err := d.device.TotalMem()
	if err != nil {
		return failed(err, "asking for the GPU's memory")
	}
	d.info.Name, d.info.Memory = name, uint64(total)
	major, err := d.device.Attribute(cu.ComputeCapabilityMajor)
	if err != nil {
		return failed(err, "asking for the GPU's compute capability")
	}
	minor, err := d.device.Attribute(cu.ComputeCapabilityMinor)
	if err != nil {
		return failed(err, "asking for the GPU's compute capability")
	}
	if 10*major+minor < minCapability {
		return &gpu.Unusable{
			Err: fmt.Errorf("the GPU %s has compute capability %d.%d, and the kernels need %d.%d", name, major, minor, minCapability/10, minCapability%10),
			Fix: "Train on another GPU, which CUDA_VISIBLE_DEVICES chooses, or on the CPU.",
		}
	}
	var address [3]int
	for i, part := range []cu.DeviceAttribute{cu.PciDomainID, cu.PciBusID, cu.PciDeviceID} {
		if address[i], err = d.device.Attribute(part); err != nil {
			return failed(err, "asking for the GPU's PCI address")
		}
	}
	d.info.PCI = fmt.Sprintf("%04x:%02x:%02x.0", address[0], address[1], address[2])
	return nil
}

// Info describes the GPU; Memory is its own.
func (d *Device) Info() gpu.Info { return d.info }

// do executes f on the main thread.
func (d *Device) do(f func() error) error { return d.on(d.main, f) }

// on executes f on a thread, unless the device is lost. The first error that loses it is the one that all later calls get.
func (d *Device) on(t *thread, f func() error) error {
	if err := d.failure(); err != nil {
		return err
	}
	return d.note(t.run(f))
}

// note keeps an error that loses the device, and returns err.
func (d *Device) note(err error) error {
	if r, ok := errors.AsType[driver.Result](err); ok && r.Fatal() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.lost == nil {
			d.lost = fmt.Errorf("the device is lost since %w", err)
		}
	}
	return err
}

// failure returns why the device is lost, or nil.
func (d *Device) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lost
}

// alloc takes device memory for a batch of samples: fixed bytes, and perSample for each. What says, as the subject of a
// sentence in the plural, what it is for. Called on the main or the copier's thread.
func (d *Device) alloc(what string, fixed, perSample, samples int) (cu.DevicePtr, error) {
	n := fixed + perSample*samples
	p, err := cu.MemAlloc(int64(n))
	if err = driver.Of(err); !errors.Is(err, driver.OutOfMemory) {
		return p, failed(err, "taking device memory for "+what)
	}
	free, total, infoErr := driver.MemInfo()
	if infoErr != nil {
		return 0, fmt.Errorf("%s need %s of device memory: %w", what, stages.Bytes(n), err)
	}
	err = fmt.Errorf("%s need %s of device memory, of which %s of %s are free: %w",
		what, stages.Bytes(n), stages.Bytes(free), stages.Bytes(total), err)
	// Memory in pieces may be free and yet not fit, so the driver's word stands against the count.
	if fit := min((int(free)-fixed)/max(perSample, 1), samples-1); fit > 0 {
		return 0, fmt.Errorf("%w; a batch of %d samples would fit", err, fit)
	}
	return 0, err
}

// Close waits for the device's work and frees all that the device holds, memory of Alloc and batches included. The error is
// the first that lost the device, or what freeing met.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		defer d.mu.Unlock()
		return nil
	}
	lost := d.lost
	d.closed, d.lost = true, errors.New("the device is closed") // to those who come late
	d.mu.Unlock()
	d.waiting.Wait()
	errs := []error{d.copier.run(d.freeCopies), d.main.run(d.free)}
	for _, t := range append(d.waiters, d.copier, d.main) {
		t.end()
	}
	if lost != nil {
		return lost
	}
	return errors.Join(append(errs, d.late)...)
}

// freeCopies frees what the copier made.
func (d *Device) freeCopies() error {
	if d.copies == (cu.Stream{}) {
		return nil
	}
	return errors.Join(failed(d.copies.Synchronize(), "waiting for the copies"), failed(d.copies.Destroy(), "ending the stream of the copies"))
}

// free frees everything else, and goes on after an error. What a lost context can't free goes with the context.
func (d *Device) free() error {
	var errs []error
	if d.compute != (cu.Stream{}) {
		errs = append(errs, failed(d.compute.Synchronize(), "waiting for the steps"), failed(d.compute.Destroy(), "ending the stream of the steps"))
	}
	errs = append(errs, d.buffers.free(), d.events.free(), d.host.free())
	for _, m := range d.modules {
		errs = append(errs, failed(m.Unload(), "unloading the kernels"))
	}
	if d.context != (cu.CUContext{}) {
		errs = append(errs, failed(d.device.ReleasePrimaryCtx(), "leaving the GPU's primary context"))
	}
	return errors.Join(errs...)
}
