//go:build cuda

package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/cpu"
	"github.com/pipectl/pipectl/gpu/cuda"
	"github.com/pipectl/pipectl/stages"
)

// trial is a network and a batch for it.
type trial struct {
	cnn   gpu.CNN
	in    gpu.Input
	batch *stages.Batch
}

// randomTrial draws a network of any shape that a CPU can still train quickly.
func randomTrial(r *rand.Rand, small bool) trial {
	width, edge := 72, 40
	if small {
		width, edge = 36, 12
	}
	t := trial{
		cnn: gpu.CNN{Width: 1 + r.IntN(width), Depth: 1 + r.IntN(3), Stride: 1 + r.IntN(3)},
		in:  gpu.Input{Batch: 1 + r.IntN(20), Classes: 2 + r.IntN(60), Seed: r.Uint64()},
	}
	least := t.cnn.Stride << t.cnn.Depth
	t.in.Sample = stages.TensorType(1+r.IntN(5), least+r.IntN(edge), least+r.IntN(edge))
	t.batch = randomBatch(r, t.in, 1+r.IntN(t.in.Batch))
	return t
}

// randomBatch makes a batch of n samples.
func randomBatch(r *rand.Rand, in gpu.Input, n int) *stages.Batch {
	b := &stages.Batch{Len: n, Sample: in.Sample, F32: make([]float32, n*in.Sample.Len()), Labels: make([]int32, n)}
	for i := range b.F32 {
		b.F32[i] = float32(r.NormFloat64())
	}
	for i := range b.Labels {
		b.Labels[i] = r.Int32N(int32(in.Classes))
	}
	return b
}

// gradients does one step and returns the gradients and the loss. The learning rate is a power of two so large that the
// parameters themselves don't count beside the step.
func (t trial) gradients(ctx context.Context, d gpu.Device, precision string) (gradients []float32, loss float64, err error) {
	const rate = 1 << 24
	c := t.cnn
	c.LearningRate, c.Precision = rate, precision
	s, err := d.NewClassifier(&c, t.in)
	if err != nil {
		return nil, 0, err
	}
	defer s.Close()
	before, err := s.Params(ctx)
	if err != nil {
		return nil, 0, err
	}
	b, err := d.Upload(ctx, t.batch)
	if err != nil {
		return nil, 0, err
	}
	defer b.Free()
	e, err := s.Submit(ctx, b)
	if err == nil {
		err = e.Wait(ctx)
	}
	if err != nil {
		return nil, 0, err
	}
	if loss, err = s.Loss(); err != nil {
		return nil, 0, err
	}
	gradients, err = s.Params(ctx)
	for i := range gradients {
		gradients[i] = float32((float64(before[i]) - float64(gradients[i])) / rate)
	}
	return gradients, loss, err
}

// distance returns how far got is from want, relative to want.
func distance(got, want []float32) float64 {
	off, all := 0.0, 0.0
	for i, v := range want {
		off += (float64(got[i]) - float64(v)) * (float64(got[i]) - float64(v))
		all += float64(v) * float64(v)
	}
	return math.Sqrt(off / max(all, math.SmallestNonzeroFloat64))
}

// numerics compares steps of random networks with the CPU's, and with themselves.
func numerics(ctx context.Context, d *cuda.Device, r *report, seed uint64, small bool) error {
	random := rand.New(rand.NewPCG(seed, 0))
	host := cpu.New("It is the reference.")
	// TF32's rounding now and then makes another pixel of a window the largest, and all that follows from it.
	limits := map[string]float64{"float32": 1e-3, "tf32": 1e-1}
	rates, err := d.Rates()
	if err != nil {
		return err
	}
	if rates.TF32 == 0 && !small {
		delete(limits, "tf32")
	}
	worst, repeats, trials := map[string]float64{}, true, 0
	for end := time.Now().Add(40 * time.Second); trials < 30 && time.Now().Before(end); trials++ {
		t := randomTrial(random, small)
		want, wantLoss, err := t.gradients(ctx, host, "float32")
		if err != nil {
			return fmt.Errorf("the CPU's step of network %d: %w", trials, err)
		}
		for precision := range limits {
			got, loss, err := t.gradients(ctx, d, precision)
			if err != nil {
				return fmt.Errorf("the GPU's step of network %d: %w", trials, err)
			}
			again, _, err := t.gradients(ctx, d, precision)
			if err != nil {
				return err
			}
			repeats = repeats && slices.Equal(got, again)
			// Not a number is further off than any number.
			if off := max(distance(got, want), math.Abs(loss-wantLoss)/wantLoss); !(off <= worst[precision]) {
				worst[precision] = off
			}
		}
	}
	for _, precision := range []string{"float32", "tf32"} {
		if limit, ok := limits[precision]; ok {
			r.verify("gradients, "+precision, worst[precision] <= limit,
				fmt.Sprintf("%d random networks; at most %.1e off the CPU's, relative to all, of %.0e", trials, worst[precision], limit))
		}
	}
	r.verify("repeatable", repeats, "the same bits when done twice")
	return nil
}
