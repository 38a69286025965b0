//go:build cuda

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
	"unsafe"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/cuda"
	"github.com/pipectl/pipectl/stages"
)

// measurement measures the GPU's speed.
type measurement struct {
	ctx    context.Context
	d      *cuda.Device
	report *report
	small  bool
}

// measured is how often each thing is done.
const measured = 20

// shape is a network whose steps are measured.
type shape struct {
	name string
	cnn  gpu.CNN
	in   gpu.Input
}

func (m *measurement) shapes() []shape {
	if m.small {
		return []shape{{"small", gpu.CNN{Width: 8, Depth: 2, Stride: 1}, gpu.Input{Sample: stages.TensorType(3, 16, 16), Batch: 4, Classes: 10}}}
	}
	return []shape{
		{"64 channels and up", gpu.CNN{Width: 64, Depth: 3, Stride: 1}, gpu.Input{Sample: stages.TensorType(3, 64, 64), Batch: 128, Classes: 100}},
		{"256 channels and up", gpu.CNN{Width: 256, Depth: 2, Stride: 1}, gpu.Input{Sample: stages.TensorType(3, 32, 32), Batch: 128, Classes: 100}},
		{"pictures of 224×224", gpu.CNN{Width: 32, Depth: 4, Stride: 2}, gpu.Input{Sample: stages.TensorType(3, 224, 224), Batch: 64, Classes: 1000}},
	}
}

// batch makes a batch in memory of Alloc.
func (m *measurement) batch(in gpu.Input, pinned bool) (*stages.Batch, func(), error) {
	random := rand.New(rand.NewPCG(1, 2))
	b := &stages.Batch{Len: in.Batch, Sample: in.Sample, Labels: make([]int32, in.Batch)}
	mem, free, err := m.d.Alloc(b.Len*in.Sample.Size(), pinned)
	if err != nil {
		return nil, nil, err
	}
	b.F32 = unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/4)
	for i := range b.F32 {
		b.F32[i] = random.Float32() - 0.5
	}
	for i := range b.Labels {
		b.Labels[i] = random.Int32N(int32(max(in.Classes, 1)))
	}
	return b, free, nil
}

// copies measures the link, from page-locked memory and from other.
func (m *measurement) copies() error {
	in := gpu.Input{Sample: stages.TensorType(3, 512, 512), Batch: 64} // 192 MiB
	if m.small {
		in.Sample = stages.TensorType(3, 64, 64)
	}
	for _, pinned := range []bool{true, false} {
		b, free, err := m.batch(in, pinned)
		if err != nil {
			return err
		}
		took, err := m.median(func() (gpu.Event, error) {
			copied, err := m.d.Upload(m.ctx, b)
			if err != nil {
				return nil, err
			}
			defer copied.Free()
			return copied.Ready, copied.Ready.Wait(m.ctx)
		})
		free()
		if err != nil {
			return err
		}
		name := map[bool]string{true: "copy, pinned", false: "copy, not pinned"}[pinned]
		m.report.add(name, fmt.Sprintf("%.1f GB/s", float64(b.Size())/took.Seconds()/1e9), fmt.Sprintf("%v of host memory to the GPU", stages.Bytes(b.Size())))
	}
	return nil
}

// median does something again and again and returns the median of its events' times.
func (m *measurement) median(do func() (gpu.Event, error)) (time.Duration, error) {
	const warmUp = 3
	var times []time.Duration
	for i := range warmUp + measured {
		e, err := do()
		if err != nil {
			return 0, err
		}
		if err := e.Wait(m.ctx); err != nil {
			return 0, err
		}
		took, ok := e.Elapsed()
		if !ok {
			return 0, fmt.Errorf("the GPU's clock has no time for work that is done")
		}
		if i >= warmUp {
			times = append(times, took)
		}
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// steps measures steps, against the time that their arithmetic and their memory traffic take at the GPU's peaks.
func (m *measurement) steps() error {
	rates, err := m.d.Rates()
	if err != nil {
		return err
	}
	for _, shape := range m.shapes() {
		b, free, err := m.batch(shape.in, true)
		if err != nil {
			return err
		}
		for _, precision := range []string{"float32", "tf32"} {
			peak := map[string]float64{"float32": rates.Float32, "tf32": rates.TF32}[precision]
			if peak == 0 && precision == "tf32" && !m.small {
				continue
			}
			if err := m.step(shape, precision, b, peak, rates.Memory); err != nil {
				return err
			}
		}
		free()
	}
	return nil
}

func (m *measurement) step(shape shape, precision string, b *stages.Batch, peak, memory float64) error {
	c := shape.cnn
	c.Precision = precision
	net, err := c.Net(shape.in)
	if err != nil {
		return err
	}
	s, err := m.d.NewClassifier(&c, shape.in)
	if err != nil {
		return err
	}
	defer s.Close()
	copied, err := m.d.Upload(m.ctx, b)
	if err != nil {
		return err
	}
	defer copied.Free()
	var submitting []time.Duration
	took, err := m.median(func() (gpu.Event, error) {
		start := time.Now()
		e, err := s.Submit(m.ctx, copied)
		submitting = append(submitting, time.Since(start))
		return e, err
	})
	if err != nil {
		return err
	}
	slices.Sort(submitting)
	arithmetic, traffic := work(net, b.Len)
	note := fmt.Sprintf("%.3g TFLOP/s", arithmetic/took.Seconds()/1e12)
	if peak > 0 && memory > 0 {
		floor := max(arithmetic/peak, traffic/memory)
		note += fmt.Sprintf("; at the GPU's peaks the arithmetic takes %.3f ms and the memory %.3f ms: %.0f %% of the rate that allows",
			1e3*arithmetic/peak, 1e3*traffic/memory, 100*floor/took.Seconds())
	} else {
		note += "; the GPU's peaks are not known"
	}
	note += fmt.Sprintf("; the host needs %v to start it", submitting[len(submitting)/2].Round(time.Microsecond))
	m.report.add("step, "+shape.name+", "+precision, fmt.Sprintf("%.3f ms", 1e3*took.Seconds()), note)
	return nil
}

// work returns the floating-point operations of a step on n samples, and the bytes that it has to move at least: each value
// once for each pass that needs it.
func work(net *gpu.Net, n int) (operations, bytes float64) {
	const forward, backwardWeights, backwardData = 1, 1, 1
	multiplyAdds := 0.0
	for i, c := range net.Blocks {
		h, w := c.Pooled()
		passes := float64(forward + backwardWeights)
		if i > 0 {
			passes += backwardData
		}
		multiplyAdds += passes * float64(n) * float64(4*h*w) * float64(c.Out*c.Taps())
		in, out := float64(4*n*c.H*c.W*c.In), float64(n*h*w*c.Out)
		bytes += 2*in + 5*out + 2*5*out + 4*out // in twice; out with its argmax written; read with its gradient by two passes; the gradient written
	}
	multiplyAdds += 3 * float64(n) * float64(net.Classes*net.Features)
	bytes += 4 * 8 * float64(net.Params) // read twice, gradients written and read, velocity and parameters read and written
	return 2 * multiplyAdds, bytes
}

// overlap measures copies and steps alone and at the same time.
func (m *measurement) overlap() error {
	shape := m.shapes()[len(m.shapes())-1]
	s, err := m.d.NewClassifier(&shape.cnn, shape.in)
	if err != nil {
		return err
	}
	defer s.Close()
	b, free, err := m.batch(shape.in, true)
	if err != nil {
		return err
	}
	defer free()
	// rounds returns the time for each of some rounds of a copy, or a step, or both, with two batches on the GPU.
	rounds := func(doCopy, doStep bool) (time.Duration, error) {
		var batches [2]*gpu.Batch
		var last [2]gpu.Event
		defer func() {
			for _, b := range batches {
				if b != nil {
					b.Free()
				}
			}
		}()
		var start time.Time
		const warmUp = 4
		for i := range warmUp + measured {
			if i == warmUp {
				start = time.Now()
			}
			k := i % 2
			if last[k] != nil {
				if err := last[k].Wait(m.ctx); err != nil {
					return 0, err
				}
			}
			if doCopy || batches[k] == nil {
				if batches[k] != nil {
					batches[k].Free()
				}
				if batches[k], err = m.d.Upload(m.ctx, b); err != nil {
					return 0, err
				}
				last[k] = batches[k].Ready
			}
			if doStep {
				if last[k], err = s.Submit(m.ctx, batches[k]); err != nil {
					return 0, err
				}
			}
		}
		for _, e := range last {
			if err := e.Wait(m.ctx); err != nil {
				return 0, err
			}
		}
		return time.Since(start) / measured, nil
	}
	copying, err := rounds(true, false)
	if err != nil {
		return err
	}
	stepping, err := rounds(false, true)
	if err != nil {
		return err
	}
	both, err := rounds(true, true)
	if err != nil {
		return err
	}
	m.report.add("copy and step together", fmt.Sprintf("%.3f ms", 1e3*both.Seconds()),
		fmt.Sprintf("copy alone %.3f ms, step alone %.3f ms: %.0f %% of their sum", 1e3*copying.Seconds(), 1e3*stepping.Seconds(), 100*both.Seconds()/(copying+stepping).Seconds()))
	return nil
}
