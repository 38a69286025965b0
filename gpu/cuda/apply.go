//go:build cuda

package cuda

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/cuda/driver"
	"github.com/pipectl/pipectl/stages"
)

// area is the memory of what one stage makes of a batch on the device: its output, scratch memory and what it is told.
type area struct {
	data cu.DevicePtr
	size int
	host []byte // page-locked: what the stage is told
	done *event // the last work in the area
}

// job is what a stage does to a batch.
type job struct {
	sample  stages.Type // of the output
	scratch int         // bytes
	told    []int32
	start   func(p *pass, from, to, scratch, told cu.DevicePtr)
}

// Apply does to a batch on the GPU what a stage's workers do to each item on the host, and returns without waiting for it. The
// results are theirs bit for bit. draws returns what the stage draws sample i's random numbers from; stages that aren't random
// don't call it. The batch that it returns takes the place of b, whose memory it shares: only one of them is freed. It is for
// to_float, normalize, random_flip, random_resized_crop and color_jitter.
func (d *Device) Apply(ctx context.Context, b *gpu.Batch, spec stages.StageSpec, draws func(sample int) *rand.Rand) (*gpu.Batch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	buf, err := bufferOf(b)
	if err != nil {
		return nil, err
	}
	out, err := spec.Output(b.Sample)
	if err != nil {
		return nil, err
	}
	if !out.Fixed() || b.Len < 1 {
		return nil, fmt.Errorf("a batch of %d samples of %s can't be worked on by the GPU", b.Len, b.Sample)
	}
	var j *job
	switch spec := spec.(type) {
	case *stages.ToFloat:
		j, err = convert(b, spec.ByteTable())
	case *stages.Normalize:
		j, err = convert(b, spec.ByteTable())
	case *stages.RandomFlip:
		j = flip(b, spec, draws)
	case *stages.RandomResizedCrop:
		j = resizedCrop(b, out, spec, draws)
	case *stages.ColorJitter:
		j = colorJitter(b, spec, draws)
	default:
		err = fmt.Errorf("there is no kernel for %T", spec)
	}
	if err != nil {
		return nil, err
	}
	j.sample = out
	var e *event
	err = d.do(func() (err error) {
		e, err = d.apply(buf, b.Len, j)
		return err
	})
	if err != nil {
		return nil, err
	}
	host := *b.Batch
	host.Sample = out
	return &gpu.Batch{Batch: &host, Ready: e, Free: b.Free, Memory: buf}, nil
}

// apply starts a job on the samples that the buffer holds now. Called on the main thread.
func (d *Device) apply(buf *buffer, samples int, j *job) (*event, error) {
	if err := buf.await(d.compute); err != nil {
		return nil, err
	}
	told := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(j.told))), 4*len(j.told))
	perSample := j.sample.Size()
	pieces := arena{samples: samples}
	pieces.each(perSample)
	scratchAt, toldAt := pieces.take(j.scratch), pieces.take(len(told))
	a, err := d.nextArea(buf, int(pieces.next), perSample, samples, len(told))
	if err != nil {
		return nil, err
	}
	copy(a.host, told)
	if a.done, err = d.begin("a stage on the GPU", d.compute); err != nil {
		return nil, err
	}
	a.done.owned = true
	if len(told) > 0 {
		if err := cu.MemcpyHtoDAsync(a.data+toldAt, unsafe.Pointer(&a.host[0]), int64(len(told)), d.compute); err != nil {
			return nil, failed(err, "copying what a stage draws to the GPU")
		}
	}
	p := &pass{d: d, stream: d.compute, samples: samples}
	j.start(p, buf.now, a.data, a.data+scratchAt, a.data+toldAt)
	if err := errors.Join(p.err, buf.release(d.compute)); err != nil {
		return nil, err
	}
	buf.now = a.data
	buf.applied++
	return a.done, a.done.finish(d.compute)
}

// nextArea returns the area for the next stage of the buffer's batch: size bytes, perSample of them for each sample, and room
// for what the stage is told. Called on the main thread.
func (d *Device) nextArea(buf *buffer, size, perSample, samples, told int) (*area, error) {
	if buf.applied == len(buf.areas) {
		buf.areas = append(buf.areas, new(area))
	}
	a := buf.areas[buf.applied]
	if err := a.retire(); err != nil {
		return nil, err
	}
	if size > a.size || told > len(a.host) {
		if err := a.free(); err != nil {
			return nil, err
		}
		var err error
		if a.data, err = d.alloc("the samples that a stage makes of a batch", size-perSample*samples, perSample, samples); err != nil {
			return nil, err
		}
		a.size = size
		if a.host, err = driver.HostAlloc(max(told, 1)); err != nil {
			return nil, failed(err, "taking page-locked host memory")
		}
	}
	return a, nil
}

// retire waits for the last work in the area.
func (a *area) retire() error {
	if a.done == nil {
		return nil
	}
	err := a.done.Wait(context.Background())
	a.done.recycle()
	a.done = nil
	return err
}

// free frees what the area holds. Called on the main thread.
func (a *area) free() error {
	var errs []error
	if a.data != 0 {
		errs = append(errs, failed(cu.MemFree(a.data), "freeing device memory"))
	}
	if a.host != nil {
		errs = append(errs, failed(driver.FreeHost(a.host), "freeing page-locked host memory"))
	}
	a.data, a.size, a.host = 0, 0, nil
	return errors.Join(errs...)
}

// pixels starts a kernel that has a thread for each of so many pixels of each sample.
func (p *pass) pixels(kernel string, pixels int, arguments ...any) {
	const threads = 256
	p.named(kernel, p.samples*ceilDiv(pixels, threads), threads, arguments...)
}

// named starts a kernel by its name.
func (p *pass) named(kernel string, blocks, threads int, arguments ...any) {
	if p.err != nil {
		return
	}
	k, err := p.d.kernel(kernel)
	if err != nil {
		p.err = err
		return
	}
	p.launch(k, blocks, 1, threads, arguments...)
}

// convert makes tensors of images, by the table of each channel's and byte's value.
func convert(b *gpu.Batch, table [3][256]float32) (*job, error) {
	if b.Sample.Kind != stages.Image {
		return nil, fmt.Errorf("the GPU makes tensors of images, and the batch is of %s", b.Sample)
	}
	j := &job{}
	for _, channel := range table {
		for _, v := range channel {
			j.told = append(j.told, int32(math.Float32bits(v)))
		}
	}
	pixels := b.Sample.Shape[0] * b.Sample.Shape[1]
	j.start = func(p *pass, from, to, _, told cu.DevicePtr) {
		p.pixels("images_to_tensors", pixels, pixels, from, told, to)
	}
	return j, nil
}

func flip(b *gpu.Batch, spec *stages.RandomFlip, draws func(int) *rand.Rand) *job {
	j := &job{}
	for i := range b.Len {
		flipped := int32(0)
		if spec.Draw(draws(i)) {
			flipped = 1
		}
		j.told = append(j.told, flipped)
	}
	kernel, values, width := "flip_tensors", b.Sample.Len(), 0
	if b.Sample.Kind == stages.Image {
		kernel, values, width = "flip_images", b.Sample.Shape[0]*b.Sample.Shape[1], b.Sample.Shape[1]
	} else {
		width = b.Sample.Shape[2]
	}
	j.start = func(p *pass, from, to, _, told cu.DevicePtr) { p.pixels(kernel, values, values, width, told, from, to) }
	return j
}

func resizedCrop(b *gpu.Batch, out stages.Type, spec *stages.RandomResizedCrop, draws func(int) *rand.Rand) *job {
	h, w := b.Sample.Shape[0], b.Sample.Shape[1]
	outH, outW := out.Shape[0], out.Shape[1]
	var crops []int32
	across, down := make([]stages.Taps, b.Len), make([]stages.Taps, b.Len)
	for i := range b.Len {
		top, left, height, width := spec.Draw(draws(i), h, w)
		crops = append(crops, int32(top), int32(left), int32(height))
		across[i], down[i] = spec.Taps(width, outW), spec.Taps(height, outH)
	}
	j := &job{scratch: b.Len * h * outW * 3, told: crops}
	runsAcross, weightsAcross, mostAcross := j.tellTaps(across)
	runsDown, weightsDown, mostDown := j.tellTaps(down)
	j.start = func(p *pass, from, to, scratch, told cu.DevicePtr) {
		p.pixels("resize_rows", h*outW, h, w, outW, mostAcross, told, told+floats(runsAcross), told+floats(weightsAcross), from, scratch)
		p.pixels("resize_columns", outH*outW, h, outW, outH, mostDown, told+floats(runsDown), told+floats(weightsDown), scratch, to)
	}
	return j
}

// tellTaps adds the taps of all samples to what the job is told: where their runs begin in it, where their weights, and how many
// weights each pixel has there.
func (j *job) tellTaps(taps []stages.Taps) (runs, weights, most int) {
	runs = len(j.told)
	for _, t := range taps {
		for i, n := range t.Count {
			j.told = append(j.told, int32(t.First[i]), int32(n))
			most = max(most, n)
		}
	}
	weights = len(j.told)
	for _, t := range taps {
		rest := t.Weights
		for _, n := range t.Count {
			j.told = append(j.told, rest[:n]...)
			j.told = append(j.told, make([]int32, most-n)...)
			rest = rest[n:]
		}
	}
	return runs, weights, most
}

func colorJitter(b *gpu.Batch, spec *stages.ColorJitter, draws func(int) *rand.Rand) *job {
	const none, contrast, hue = -1, 1, 3
	all := make([][]stages.ColorTurn, b.Len)
	most, means := 1, false // one turn at least, which copies
	for i := range all {
		all[i] = spec.Draw(draws(i))
		most = max(most, len(all[i]))
	}
	j := &job{scratch: 4 * b.Len}
	for turn := range most {
		for _, turns := range all {
			kind, bits := int32(none), int32(0)
			if turn < len(turns) {
				t := turns[turn]
				kind, bits = int32(t.Kind), int32(math.Float32bits(t.Factor))
				if t.Kind == hue {
					bits = int32(t.Turn)
				}
				means = means || t.Kind == contrast
			}
			j.told = append(j.told, kind, bits)
		}
	}
	pixels := b.Sample.Shape[0] * b.Sample.Shape[1]
	j.start = func(p *pass, from, to, scratch, told cu.DevicePtr) {
		for turn := range most {
			ops := told + floats(turn*2*p.samples)
			if means {
				p.named("mean_greys", p.samples, 256, pixels, ops, from, scratch)
			}
			p.pixels("jitter_colours", pixels, pixels, ops, scratch, from, to)
			from = to // what follows works in place
		}
	}
	return j
}
