package cpu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

// applier does stages' work on whole batches. Its memory may be given back by another goroutine than its calls'.
type applier struct {
	instances map[stages.StageSpec]stages.Stage
	call      stages.Call
	in, out   stages.Element

	mu   sync.Mutex
	idle []*samples
}

// samples is memory for what a stage makes of a batch: the Memory of a batch from Apply.
type samples struct {
	u8  []byte
	f32 []float32
}

// Apply does to each sample what the stage does to an item, by the stage's own code. It is done when it returns.
func (d *Device) Apply(ctx context.Context, b *gpu.Batch, spec stages.StageSpec, draws func(sample int) *rand.Rand) (*gpu.Batch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sample, err := spec.Output(b.Sample)
	if err != nil {
		return nil, err
	}
	if err := stages.DeviceTakes(spec, b.Sample); err != nil {
		return nil, err
	}
	a := &d.applied
	stage, err := a.instance(spec)
	if err != nil {
		return nil, err
	}
	made := *b.Batch
	made.Sample = sample
	mem := a.take(&made, len(b.Labels))
	a.call.Context = ctx
	for i := range b.Len {
		if err := a.process(stage, b.Batch, &made, i, draws); err != nil {
			a.give(mem)
			return nil, fmt.Errorf("sample %d of the batch: %w", i, err)
		}
	}
	if before, ok := b.Memory.(*samples); ok {
		a.give(before) // made takes the place of b
	}
	return &gpu.Batch{Batch: &made, Ready: gpu.Passed{}, Free: func() { a.give(mem) }, Memory: mem}, nil
}

// process makes sample i of one batch that of another.
func (a *applier) process(stage stages.Stage, from, to *stages.Batch, i int, draws func(int) *rand.Rand) error {
	a.in, a.out = sampleOf(from, i), sampleOf(to, i)
	if a.call.Rand = nil; draws != nil {
		a.call.Rand = draws(i)
	}
	if a.call.Item = (stages.Item{}); from.Items != nil {
		a.call.Item = from.Items[i]
	}
	if err := stage.Process(&a.call, &a.in, &a.out); err != nil {
		return err
	}
	made := a.out.Result()
	if made.Type != to.Sample {
		return fmt.Errorf("the stage gave %s where %s was promised", made.Type, to.Sample)
	}
	if made != &a.out {
		a.out.CopyFrom(made)
	}
	return nil
}

// sampleOf returns sample i of a batch whose samples are of one size.
func sampleOf(b *stages.Batch, i int) stages.Element {
	e, n := stages.Element{Type: b.Sample}, b.Sample.Len()
	if b.Sample.Kind == stages.Tensor {
		e.F32 = b.F32[i*n : (i+1)*n : (i+1)*n]
	} else {
		e.U8 = b.U8[i*n : (i+1)*n : (i+1)*n]
	}
	return e
}

// instance returns the Stage of a spec, making it at its first use.
func (a *applier) instance(spec stages.StageSpec) (stages.Stage, error) {
	s := a.instances[spec]
	if s == nil {
		var err error
		if s, err = spec.New(); err != nil {
			return nil, err
		}
		if a.instances == nil {
			a.instances = map[stages.StageSpec]stages.Stage{}
		}
		a.instances[spec] = s
	}
	return s, nil
}

// take gives b memory for n samples of its type.
func (a *applier) take(b *stages.Batch, n int) *samples {
	a.mu.Lock()
	mem := new(samples)
	if last := len(a.idle) - 1; last >= 0 {
		mem = a.idle[last]
		a.idle = a.idle[:last]
	}
	a.mu.Unlock()
	n = max(n, b.Len) * b.Sample.Len()
	b.U8, b.F32, b.I32 = nil, nil, nil
	if b.Sample.Kind == stages.Tensor {
		if len(mem.f32) < n {
			mem.f32 = make([]float32, n)
		}
		b.F32 = mem.f32[:n]
	} else {
		if len(mem.u8) < n {
			mem.u8 = make([]byte, n)
		}
		b.U8 = mem.u8[:n]
	}
	return mem
}

// give takes memory back.
func (a *applier) give(mem *samples) {
	a.mu.Lock()
	a.idle = append(a.idle, mem)
	a.mu.Unlock()
}

// close frees what the stages hold.
func (a *applier) close() error {
	var errs []error
	for _, s := range a.instances {
		if c, ok := s.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	a.instances = nil
	return errors.Join(errs...)
}
