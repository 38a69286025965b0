//go:build cuda

package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/cuda/driver"
	"github.com/pipectl/pipectl/stages"
)

// buffer is the memory of one batch on the device, with what its copying needs. It is the Memory of a batch from Upload.
type buffer struct {
	data    cu.DevicePtr // the samples, as they lie on the host: uint8, float32 or int32
	labels  cu.DevicePtr // int32, one a sample
	size    int          // bytes of data
	samples int          // labels
	staging []byte       // page-locked, for what isn't in memory of Alloc: the labels, and maybe the data behind them
	copied  *event       // the last copy into the buffer
	read    cu.Event     // the end of the last step that reads it
	isRead  bool         // read was recorded since the last copy
	now     cu.DevicePtr // the samples after the stages that were applied
	areas   []*area      // what the stages make
	applied int          // how many were since the last copy
}

// bufferPool holds the buffers of the batches on the device: as many as were there at once, which the queue behind the
// transfer bounds.
type bufferPool struct {
	mu   sync.Mutex
	all  []*buffer
	idle []*buffer
}

// Upload starts the copy of a batch into a buffer that no other batch has, behind the step that read the buffer last. Both
// the data and the labels are copied. Data that isn't in memory of Alloc is copied twice, through page-locked memory.
func (d *Device) Upload(ctx context.Context, b *stages.Batch) (*gpu.Batch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if b.Ragged != nil || !b.Sample.Fixed() {
		return nil, fmt.Errorf("samples that differ in size can't be copied to the GPU: the batch is of %s", b.Sample)
	}
	var buf *buffer
	err := d.on(d.copier, func() (err error) {
		if buf, err = d.takeBuffer(b); err != nil {
			return err
		}
		if err := d.copy(buf, b); err != nil {
			// What was started may still write into the buffer, and read b. An error of the waiting is the one that is there.
			d.copies.Synchronize()
			d.buffers.put(buf)
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &gpu.Batch{Batch: b, Ready: buf.copied, Memory: buf, Free: sync.OnceFunc(func() { d.buffers.put(buf) })}, nil
}

// takeBuffer returns an idle buffer that b fits in, or a new one. Called on the copier's thread.
func (d *Device) takeBuffer(b *stages.Batch) (*buffer, error) {
	if buf := d.buffers.take(b.Size(), len(b.Labels)); buf != nil {
		return buf, nil
	}
	buf := &buffer{size: b.Size(), samples: len(b.Labels)}
	err := d.fill(buf, b)
	if err != nil {
		return nil, errors.Join(err, buf.free())
	}
	d.buffers.add(buf)
	return buf, nil
}

// fill takes what a new buffer is made of.
func (d *Device) fill(buf *buffer, b *stages.Batch) (err error) {
	perSample := b.Sample.Size()
	if buf.data, err = d.alloc("a batch's samples", 0, perSample, (buf.size+perSample-1)/perSample); err != nil {
		return err
	}
	if buf.samples > 0 {
		if buf.labels, err = d.alloc("a batch's labels", 0, 4, buf.samples); err != nil {
			return err
		}
	}
	if buf.read, err = cu.MakeEvent(cu.DisableTiming); err != nil {
		return failed(err, "making an event")
	}
	return nil
}

// copy starts the copy of b into an idle buffer. Called on the copier's thread.
func (d *Device) copy(buf *buffer, b *stages.Batch) error {
	if err := buf.retire(); err != nil {
		return err
	}
	data, labels, err := bytesOf(b)
	if err != nil {
		return err
	}
	need := len(labels)
	pageable := !d.host.holds(data)
	if pageable {
		need += len(data)
	}
	if err := buf.stage(need); err != nil {
		return err
	}
	staged := buf.staging[:copy(buf.staging, labels)]
	if pageable {
		data = buf.staging[len(labels):][:copy(buf.staging[len(labels):], data)]
	}
	if buf.isRead {
		if err := d.copies.Wait(buf.read, 0); err != nil {
			return failed(err, "waiting for the step that read the buffer")
		}
	}
	if buf.copied, err = d.begin("the copy of a batch", d.copies); err != nil {
		return err
	}
	buf.copied.owned, buf.isRead = true, false
	buf.now, buf.applied = buf.data, 0
	for _, part := range []struct {
		to   cu.DevicePtr
		from []byte
	}{{buf.data, data}, {buf.labels, staged}} {
		if len(part.from) == 0 {
			continue
		}
		if err := cu.MemcpyHtoDAsync(part.to, unsafe.Pointer(unsafe.SliceData(part.from)), int64(len(part.from)), d.copies); err != nil {
			return failed(err, "copying "+stages.Bytes(len(part.from)).String()+" to the GPU")
		}
	}
	return buf.copied.finish(d.copies)
}

// retire waits for the last copy into the buffer, after which the staging memory may be written to.
func (buf *buffer) retire() error {
	if buf.copied == nil {
		return nil
	}
	err := buf.copied.Wait(context.Background())
	buf.copied.recycle()
	buf.copied = nil
	return err
}

// bytesOf returns the bytes of the b.Len samples and of their labels.
func bytesOf(b *stages.Batch) (data, labels []byte, err error) {
	switch {
	case b.F32 != nil:
		data = bytesIn(b.F32)
	case b.I32 != nil:
		data = bytesIn(b.I32)
	default:
		data = b.U8
	}
	n := b.Len * b.Sample.Size()
	if b.Len < 0 || n > len(data) || len(b.Labels) > 0 && b.Len > len(b.Labels) {
		return nil, nil, fmt.Errorf("a batch of %d samples of %s has only %d bytes and %d labels", b.Len, b.Sample, len(data), len(b.Labels))
	}
	return data[:n], bytesIn(b.Labels[:min(b.Len, len(b.Labels))]), nil
}

// bytesIn returns the bytes that the values lie in.
func bytesIn[T int32 | float32](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// stage makes the staging memory n bytes long or longer. No copy from it may be under way.
func (buf *buffer) stage(n int) error {
	if n <= len(buf.staging) {
		return nil
	}
	old := buf.staging
	buf.staging = nil
	if old != nil {
		if err := driver.FreeHost(old); err != nil {
			return failed(err, "freeing page-locked host memory")
		}
	}
	mem, err := driver.HostAlloc(n)
	if err != nil {
		return failed(err, "taking "+stages.Bytes(n).String()+" of page-locked host memory")
	}
	buf.staging = mem
	return nil
}

// bufferOf returns the buffer of a batch that this device's Upload returned.
func bufferOf(b *gpu.Batch) (*buffer, error) {
	buf, ok := b.Memory.(*buffer)
	if !ok {
		return nil, errors.New("the batch isn't on the GPU")
	}
	return buf, nil
}

// await makes the work that s gets from here on wait for the copy of the batch. Called on the main thread.
func (buf *buffer) await(s cu.Stream) error {
	return failed(s.Wait(buf.copied.end, 0), "waiting for the copy of a batch")
}

// release tells that what s has got so far is the last that reads the batch: the next copy into the buffer comes after it.
// Called on the main thread.
func (buf *buffer) release(s cu.Stream) error {
	if err := buf.read.Record(s); err != nil {
		return failed(err, "marking the end of a step")
	}
	buf.isRead = true
	return nil
}

// free frees what the buffer holds. Called on a thread of the device.
func (buf *buffer) free() error {
	var errs []error
	if buf.data != 0 {
		errs = append(errs, failed(cu.MemFree(buf.data), "freeing device memory"))
	}
	if buf.labels != 0 {
		errs = append(errs, failed(cu.MemFree(buf.labels), "freeing device memory"))
	}
	if buf.read != (cu.Event{}) {
		errs = append(errs, failed(cu.DestroyEvent(&buf.read), "freeing an event"))
	}
	if buf.staging != nil {
		errs = append(errs, failed(driver.FreeHost(buf.staging), "freeing page-locked host memory"))
	}
	for _, a := range buf.areas {
		errs = append(errs, a.free())
	}
	return errors.Join(errs...)
}

func (p *bufferPool) add(buf *buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, buf)
}

// take returns an idle buffer of size bytes and as many samples at least, or nil.
func (p *bufferPool) take(size, samples int) *buffer {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, buf := range p.idle {
		if buf.size >= size && buf.samples >= samples {
			p.idle = slices.Delete(p.idle, i, i+1)
			return buf
		}
	}
	return nil
}

func (p *bufferPool) put(buf *buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, buf)
}

// free frees all buffers. Called on the main thread.
func (p *bufferPool) free() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, buf := range p.all {
		errs = append(errs, buf.free())
	}
	p.all, p.idle = nil, nil
	return errors.Join(errs...)
}
