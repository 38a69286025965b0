//go:build cuda

package cuda

import (
	"errors"
	"math"
	"slices"
	"testing"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/cpu"
	"github.com/pipectl/pipectl/stages"
)

// gradients returns the gradients of one batch by all parameters, and the loss. The learning rate is so high that next to
// the steps it makes, and by a power of two, the parameters themselves don't count.
func gradients(tb testing.TB, d gpu.Device, c gpu.CNN, in gpu.Input, b *stages.Batch) ([]float32, float64) {
	tb.Helper()
	const rate = 1 << 24
	c.LearningRate = rate
	s := classifierOn(tb, d, c, in)
	if s, ok := s.(*classifier); ok {
		s.scatter(tb)
	}
	before := params(tb, s)
	loss := train(tb, d, s, b)
	g := params(tb, s)
	for i := range g {
		g[i] = float32((float64(before[i]) - float64(g[i])) / rate)
	}
	return g, loss
}

// shapes are the networks whose gradients are compared, the small ones first.
var shapes = []struct {
	name           string
	cnn            gpu.CNN
	sample         stages.Type
	batch, samples int
	classes        int
}{
	{"one block", gpu.CNN{Width: 2, Depth: 1, Stride: 1}, stages.TensorType(1, 4, 4), 2, 2, 2},
	{"colour, odd size", gpu.CNN{Width: 5, Depth: 1, Stride: 1}, stages.TensorType(3, 7, 9), 3, 3, 4},
	{"two blocks, short batch", gpu.CNN{Width: 3, Depth: 2, Stride: 1}, stages.TensorType(2, 9, 6), 4, 1, 3},
	{"stride 2", gpu.CNN{Width: 3, Depth: 2, Stride: 2}, stages.TensorType(2, 11, 8), 5, 5, 3},
	{"three blocks", gpu.CNN{Width: 6, Depth: 3, Stride: 1}, stages.TensorType(3, 17, 19), 17, 17, 10},
	{"stride 3, one sample", gpu.CNN{Width: 34, Depth: 2, Stride: 3}, stages.TensorType(3, 31, 29), 1, 1, 33},
	{"wider than a tile", gpu.CNN{Width: 66, Depth: 2, Stride: 1}, stages.TensorType(5, 9, 9), 17, 17, 130},
	{"split sums", gpu.CNN{Width: 20, Depth: 2, Stride: 1}, stages.TensorType(3, 50, 46), 9, 9, 5},
}

// Every gradient is the CPU's within 1e-3 of the largest of its layer, and nearly all are within 1e-3 of themselves.
func TestGradients(t *testing.T) {
	d := openDevice(t)
	host := cpu.New("Reference.")
	for _, tc := range shapes {
		t.Run(tc.name, func(t *testing.T) {
			in := gpu.Input{Sample: tc.sample, Batch: tc.batch, Classes: tc.classes, Seed: 7}
			b := randomBatch(tc.sample, tc.samples, tc.classes, 5)
			want, wantLoss := gradients(t, host, tc.cnn, in, b)
			got, loss := gradients(t, d, tc.cnn, in, b)
			if math.Abs(loss-wantLoss) > 1e-5*wantLoss {
				t.Errorf("loss %v, want %v", loss, wantLoss)
			}
			compareGradients(t, &tc.cnn, in, got, want, 1e-3)
		})
	}
}

// compareGradients reports gradients that are further from want than tolerance, relative to themselves or, where they are
// what a sum's terms leave of each other, to 1/100 of their layer's root mean square.
func compareGradients(t *testing.T, c *gpu.CNN, in gpu.Input, got, want []float32, tolerance float64) {
	t.Helper()
	net, err := c.Net(in)
	if err != nil {
		t.Fatal(err)
	}
	ends := []int{}
	for _, conv := range net.Blocks {
		ends = append(ends, conv.Bias, conv.Bias+conv.Out)
	}
	start := 0
	for i, end := range append(ends, net.Bias, net.Params) {
		square := 0.0
		for _, v := range want[start:end] {
			square += float64(v) * float64(v)
		}
		floor := math.Sqrt(square/float64(end-start)) / 100
		bad := 0
		for j := start; j < end; j++ {
			if diff := math.Abs(float64(got[j]) - float64(want[j])); !(diff <= tolerance*max(math.Abs(float64(want[j])), floor)) {
				if bad++; bad <= 3 {
					t.Errorf("gradient %d of the %s of layer %d is %v, want %v", j-start, []string{"weights", "biases"}[i%2], i/2, got[j], want[j])
				}
			}
		}
		if bad > 3 {
			t.Errorf("and %d more of %d", bad-3, end-start)
		}
		start = end
	}
}

// On tensor cores each layer's gradients are off by no more than TF32's rounding makes them, and the largest of equals that
// it changes.
func TestGradientsTF32(t *testing.T) {
	d := openDevice(t)
	host := cpu.New("Reference.")
	for _, tc := range shapes {
		t.Run(tc.name, func(t *testing.T) {
			in := gpu.Input{Sample: tc.sample, Batch: tc.batch, Classes: tc.classes, Seed: 7}
			b := randomBatch(tc.sample, tc.samples, tc.classes, 5)
			want, _ := gradients(t, host, tc.cnn, in, b)
			single, _ := gradients(t, d, tc.cnn, in, b)
			tc.cnn.Precision = "tf32"
			got, _ := gradients(t, d, tc.cnn, in, b)
			if slices.Equal(got, single) {
				t.Error("the gradients are those of float32")
			}
			off, all := 0.0, 0.0
			for i, v := range want {
				off += (float64(got[i]) - float64(v)) * (float64(got[i]) - float64(v))
				all += float64(v) * float64(v)
			}
			if !(off < 0.02*0.02*all) {
				t.Errorf("the gradients are %.2g off, relative to all", math.Sqrt(off/all))
			}
		})
	}
}

// Gradients are difference quotients of the loss.
func TestFiniteDifferences(t *testing.T) {
	d := openDevice(t)
	for _, tc := range shapes[:4] {
		t.Run(tc.name, func(t *testing.T) {
			in := gpu.Input{Sample: tc.sample, Batch: tc.batch, Classes: tc.classes, Seed: 7}
			b := randomBatch(tc.sample, tc.samples, tc.classes, 5)
			want, _ := gradients(t, d, tc.cnn, in, b)
			tc.cnn.LearningRate = 0
			s := classifierOn(t, d, tc.cnn, in).(*classifier)
			loss := func(i int, value float32) float64 {
				s.set(t, i, value)
				return train(t, d, s, b)
			}
			const h = 1.0 / 256
			stride, off := 1+len(want)/100, 0
			for i := 0; i < len(want); i += stride {
				v := params(t, s)[i]
				up, down := loss(i, v+h), loss(i, v-h)
				s.set(t, i, v)
				if got := (up - down) / (2 * h); math.Abs(got-float64(want[i])) > 2e-4+1e-3*math.Abs(got) {
					off++
					t.Logf("the loss changes by %v times parameter %d, and its gradient is %v", got, i, want[i])
				}
			}
			// Where a value is about to become the largest of its window, or cut off, the quotient is between two gradients.
			if most := len(want) / stride / 20; off > most {
				t.Errorf("%d of %d gradients are off, more than %d", off, len(want)/stride, most)
			}
		})
	}
}

// set changes one parameter.
func (s *classifier) set(tb testing.TB, i int, value float32) {
	tb.Helper()
	err := s.d.do(func() error {
		var err error
		s.network.runs(s.net, func(l *layer, at, padded, count int) {
			if at <= i && i < at+count {
				err = cu.MemcpyHtoD(l.params+floats(padded+i-at), unsafe.Pointer(&value), 4)
			}
		})
		return errors.Join(err, cu.Synchronize())
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// scatter moves each piece of the network's memory to memory of its own, of exactly its size, so that what reads or writes
// past its end is out of bounds.
func (s *classifier) scatter(tb testing.TB) {
	tb.Helper()
	a := arena{samples: s.in.Batch, next: s.memory}
	layOut(s.net, &a)
	moved := map[cu.DevicePtr]cu.DevicePtr{}
	for at, n := range a.taken {
		err := s.d.do(func() (err error) {
			if moved[at], err = cu.MemAlloc(int64(n)); err != nil {
				return err
			}
			host := unsafe.Pointer(unsafe.SliceData(make([]byte, n)))
			return errors.Join(cu.MemcpyDtoH(host, at, int64(n)), cu.MemcpyHtoD(moved[at], host, int64(n)), cu.Synchronize())
		})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() {
			if err := s.d.do(func() error { return cu.MemFree(moved[at]) }); err != nil {
				tb.Error(err)
			}
		})
	}
	n := s.network
	pointers := []*cu.DevicePtr{&n.in, &n.partial, &n.dLogits, &n.losses, &n.loss, &n.predicted}
	for i := range n.blocks {
		b := &n.blocks[i]
		pointers = append(pointers, &b.in, &b.out, &b.argmax, &b.dOut)
	}
	for _, l := range n.layers() {
		pointers = append(pointers, &l.params, &l.velocity, &l.gradients)
	}
	for _, p := range pointers {
		to, ok := moved[*p]
		if !ok {
			tb.Fatalf("%#x isn't a piece of the network's memory", *p)
		}
		*p = to
	}
}
