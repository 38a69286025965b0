// Package cpu is the reference device: it trains on the host's processor, with BLAS.
//
// The build tag openblas takes OpenBLAS through cgo in place of gonum's BLAS.
package cpu

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/mem"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

// Device is the host's processor. It works synchronously: all is done when its calls return.
type Device struct {
	info    gpu.Info
	applied applier
}

// New returns the device. why says, as a sentence, why it was taken.
func New(why string) *Device {
	d := &Device{info: gpu.Info{Kind: "cpu", Name: "unknown", Why: why + " Its BLAS is " + BLAS + "."}}
	// What can't be learnt of the host is left unknown: it is only reported.
	if cpus, err := cpu.Info(); err == nil && len(cpus) > 0 && cpus[0].ModelName != "" {
		d.info.Name = cpus[0].ModelName
	}
	if memory, err := mem.VirtualMemory(); err == nil {
		d.info.Memory = memory.Total
	}
	return d
}

// Info describes the processor; Memory is the host's.
func (d *Device) Info() gpu.Info { return d.info }

// Alloc returns n zeroed bytes aligned to 64 bytes. Pinned memory would gain nothing here: no device copies from it.
func (d *Device) Alloc(n int, _ bool) ([]byte, func(), error) {
	if n < 0 {
		return nil, nil, fmt.Errorf("can't allocate %d bytes", n)
	}
	const alignment = 64
	mem := make([]byte, n+alignment-1)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(mem))) % alignment
	return mem[skip:][:n:n], func() {}, nil
}

// Upload returns b itself.
func (d *Device) Upload(ctx context.Context, b *stages.Batch) (*gpu.Batch, error) {
	return &gpu.Batch{Batch: b, Ready: gpu.Passed{}, Free: func() {}}, ctx.Err()
}

// NewClassifier makes the step of `train "cnn"`.
func (d *Device) NewClassifier(c *gpu.CNN, in gpu.Input) (gpu.Classifier, error) {
	s, err := newClassifier(c, in)
	if err != nil {
		return nil, err // and no nil *classifier, which would not be nil
	}
	return s, nil
}

// FreeMemory returns 0: the device's memory is the host's.
func (d *Device) FreeMemory() (uint64, error) { return 0, nil }

// Close frees the stages that Apply has made.
func (d *Device) Close() error { return d.applied.close() }
