package cpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

// open makes a classifier that the test closes.
func open(tb testing.TB, c gpu.CNN, sample stages.Type, batch, classes int) *classifier {
	tb.Helper()
	s, err := newClassifier(&c, gpu.Input{Sample: sample, Batch: batch, Classes: classes, Seed: 7})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}

// randomBatch makes a batch of n samples of normally distributed values.
func randomBatch(sample stages.Type, n, classes int, seed uint64) *gpu.Batch {
	r := rand.New(rand.NewPCG(seed, 1))
	b := &stages.Batch{Len: n, Sample: sample, F32: make([]float32, n*sample.Len()), Labels: make([]int32, n)}
	for i := range b.F32 {
		b.F32[i] = float32(r.NormFloat64())
	}
	for i := range b.Labels {
		b.Labels[i] = r.Int32N(int32(classes))
	}
	return &gpu.Batch{Batch: b, Ready: gpu.Passed{}}
}

func submit(tb testing.TB, s *classifier, b *gpu.Batch) {
	tb.Helper()
	event, err := s.Submit(tb.Context(), b)
	if err == nil {
		err = event.Wait(tb.Context())
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// One filter that passes the picture on with a bias of ½, two classes that come out equally likely: all values are exact.
func TestStepByHand(t *testing.T) {
	s := open(t, gpu.CNN{Width: 1, Depth: 1, Stride: 1, LearningRate: 0.5, Momentum: 0.5}, stages.TensorType(1, 2, 2), 1, 2)
	before := []float32{
		0, 0, 0, 0, 1, 0, 0, 0, 0, // filter
		0.5,  // its bias
		2, 0, // a weight for each class
		0, 9, // and bias
	}
	copy(s.params, before)
	b := &stages.Batch{Len: 1, Sample: s.in.Sample, F32: []float32{1, 2, 3, 4}, Labels: []int32{0}}
	submit(t, s, &gpu.Batch{Batch: b, Ready: gpu.Passed{}})

	// The feature is 4 + ½, both classes get 9; the gradient by the classes is -½, ½, by the feature -1, and the filter
	// saw the picture in its upper left when it found the maximum.
	gradient := []float32{
		-1, -2, 0, -3, -4, 0, 0, 0, 0,
		-1,
		-2.25, 2.25,
		-0.5, 0.5,
	}
	after := make([]float32, len(before))
	for i := range after {
		after[i] = before[i] - 0.5*gradient[i]
	}
	if diff := cmp.Diff(gradient, s.velocity); diff != "" {
		t.Errorf("gradient (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(after, s.params); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
	if loss, err := s.Loss(); err != nil || loss != math.Ln2 {
		t.Errorf("loss %v, %v, want ln 2", loss, err)
	}
}

// Every parameter's gradient is the difference quotient of the loss.
func TestGradients(t *testing.T) {
	for _, tc := range []struct {
		name           string
		cnn            gpu.CNN
		sample         stages.Type
		batch, classes int
	}{
		{"one block", gpu.CNN{Width: 2, Depth: 1, Stride: 1}, stages.TensorType(1, 4, 4), 2, 2},
		{"colour, odd size", gpu.CNN{Width: 3, Depth: 1, Stride: 1}, stages.TensorType(3, 5, 7), 3, 4},
		{"two blocks", gpu.CNN{Width: 2, Depth: 2, Stride: 1}, stages.TensorType(2, 9, 6), 4, 3},
		{"three blocks", gpu.CNN{Width: 2, Depth: 3, Stride: 1}, stages.TensorType(1, 8, 11), 20, 3},
		{"stride 2", gpu.CNN{Width: 3, Depth: 2, Stride: 2}, stages.TensorType(2, 11, 8), 5, 3},
		{"stride 3", gpu.CNN{Width: 3, Depth: 1, Stride: 3}, stages.TensorType(1, 13, 7), 5, 3},
		{"more windows than a tile", gpu.CNN{Width: 2, Depth: 1, Stride: 1}, stages.TensorType(1, 14, 12), 1, 2},
		{"wider than gonum's serial block", gpu.CNN{Width: 70, Depth: 1, Stride: 1}, stages.TensorType(24, 2, 2), 2, 2},
		{"more parameters than a chunk", gpu.CNN{Width: 40, Depth: 1, Stride: 1}, stages.TensorType(3, 12, 12), 2, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.cnn.LearningRate = 1
			s := open(t, tc.cnn, tc.sample, tc.batch, tc.classes)
			params := make([]float64, s.net.Params)
			r := rand.New(rand.NewPCG(3, 4))
			for i := s.net.Weights - 1; i >= 0; i-- {
				s.params[i] += float32(0.1 * r.NormFloat64()) // biases too
			}
			for i, v := range s.params {
				params[i] = float64(v)
			}
			b := randomBatch(tc.sample, tc.batch, tc.classes, 5)
			submit(t, s, b)
			if loss, want := s.loss, referenceLoss(s.net, params, b.Batch); math.Abs(loss-want) > 1e-5 {
				t.Errorf("loss %v, want %v", loss, want)
			}
			stride := 1 + len(params)/300 // a sample of the larger networks' parameters
			for i := 0; i < len(params); i += stride {
				v, h := params[i], 1e-6
				params[i] = v + h
				up := referenceLoss(s.net, params, b.Batch)
				params[i] = v - h
				down := referenceLoss(s.net, params, b.Batch)
				params[i] = v
				if got, want := float64(s.velocity[i]), (up-down)/(2*h); math.Abs(got-want) > 1e-5 {
					t.Errorf("gradient by %s is %v, want %v", describe(s.net, i), got, want)
				}
			}
		})
	}
}

// describe names a parameter.
func describe(n *gpu.Net, i int) string {
	for l, c := range n.Blocks {
		switch {
		case i < c.Bias:
			return fmt.Sprintf("weight %d of block %d", i-c.Weights, l)
		case i < c.Bias+c.Out:
			return fmt.Sprintf("bias %d of block %d", i-c.Bias, l)
		}
	}
	if i < n.Bias {
		return fmt.Sprintf("weight %d of the linear layer", i-n.Weights)
	}
	return fmt.Sprintf("bias %d of the linear layer", i-n.Bias)
}

// velocity = momentum·velocity + gradient, parameters = parameters − rate·velocity.
func TestMomentum(t *testing.T) {
	sample := stages.TensorType(2, 6, 6)
	cnn := gpu.CNN{Width: 3, Depth: 1, Stride: 1, LearningRate: 0.25, Momentum: 0.5}
	s := open(t, cnn, sample, 4, 3)
	submit(t, s, randomBatch(sample, 4, 3, 1))
	first, params := slices.Clone(s.velocity), slices.Clone(s.params)
	second := randomBatch(sample, 3, 3, 2)
	submit(t, s, second)

	cnn.Momentum = 0
	plain := open(t, cnn, sample, 4, 3)
	copy(plain.params, params)
	submit(t, plain, second)
	velocity := make([]float32, len(first))
	for i, g := range plain.velocity {
		velocity[i] = 0.5*first[i] + g
		params[i] -= 0.25 * velocity[i]
	}
	near := cmpopts.EquateApprox(0, 1e-6)
	if diff := cmp.Diff(velocity, s.velocity, near); diff != "" {
		t.Errorf("velocity (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(params, s.params, near); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
}

// The same training as PyTorch's, from testdata/make_torch.py.
func TestTorch(t *testing.T) {
	data, err := os.ReadFile("testdata/torch.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Channels, Height, Width, Filters, Depth, Stride, Classes int
		Rate, Momentum                                           float64
		Batches                                                  []int
		Losses                                                   []float64
		Params                                                   []float32
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	numbers := func(n int, step float64) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(math.Sin(step * float64(i)))
		}
		return v
	}
	for _, tc := range cases {
		sample := stages.TensorType(tc.Channels, tc.Height, tc.Width)
		s := open(t, gpu.CNN{Width: tc.Filters, Depth: tc.Depth, Stride: tc.Stride, LearningRate: tc.Rate, Momentum: tc.Momentum},
			sample, slices.Max(tc.Batches), tc.Classes)
		for i, v := range numbers(len(s.params), 1.7) {
			s.params[i] = 0.5 * v
		}
		total := 0
		for _, n := range tc.Batches {
			total += n
		}
		data := numbers(total*sample.Len(), 0.37)
		var losses []float64
		done := 0
		for _, n := range tc.Batches {
			b := &stages.Batch{Len: n, Sample: sample, F32: data[done*sample.Len():]}
			for i := range n {
				b.Labels = append(b.Labels, int32((done+i)%tc.Classes))
			}
			done += n
			submit(t, s, &gpu.Batch{Batch: b, Ready: gpu.Passed{}})
			losses = append(losses, s.loss)
		}
		near := cmpopts.EquateApprox(0, 2e-6)
		if diff := cmp.Diff(tc.Losses, losses, near); diff != "" {
			t.Errorf("losses (-PyTorch +ours):\n%s", diff)
		}
		if diff := cmp.Diff(tc.Params, s.params, near); diff != "" {
			t.Errorf("parameters (-PyTorch +ours):\n%s", diff)
		}
	}
}

// The number of cores doesn't change a bit of the parameters.
func TestReproducible(t *testing.T) {
	sample := stages.TensorType(3, 12, 12)
	train := func(procs int) (losses []float64, params []float32) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		s := open(t, gpu.CNN{Width: 8, Depth: 2, Stride: 1, LearningRate: 0.01, Momentum: 0.9}, sample, 37, 5)
		for i := range 4 {
			submit(t, s, randomBatch(sample, 37-3*i, 5, uint64(i)))
			losses = append(losses, s.loss)
		}
		return losses, s.params
	}
	losses, params := train(1)
	for _, procs := range []int{2, 4, 32} {
		l, p := train(procs)
		if !slices.Equal(l, losses) || !slices.Equal(p, params) {
			t.Errorf("GOMAXPROCS=%d: losses %v, want %v, and the same parameters", procs, l, losses)
		}
	}
}

// A step that begins anew does what it did at first, bit for bit.
func TestRestart(t *testing.T) {
	sample := stages.TensorType(3, 12, 12)
	s := open(t, gpu.CNN{Width: 8, Depth: 2, Stride: 1, LearningRate: 0.01, Momentum: 0.9}, sample, 5, 3)
	var losses [2][]float64
	for round := range losses {
		for i := range 4 {
			submit(t, s, randomBatch(sample, 5, 3, uint64(i)))
			losses[round] = append(losses[round], s.loss)
		}
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(losses[0], losses[1]) || losses[0][0] == losses[0][3] {
		t.Errorf("losses %v", losses)
	}
}

// The loss of samples of two labels is theirs, each by its share, and so is what a step makes of the parameters.
func TestMixedLabels(t *testing.T) {
	sample := stages.TensorType(1, 4, 4)
	step := func(mixed bool, labels ...int32) (float64, []float32) {
		s := open(t, gpu.CNN{Width: 2, Depth: 1, Stride: 1, LearningRate: 1}, sample, 3, 3)
		b := randomBatch(sample, 3, 3, 1)
		b.Labels, b.Mixed, b.Own = labels, mixed, 0.75
		before := slices.Clone(s.params)
		submit(t, s, b)
		for i, v := range s.params {
			before[i] = v - before[i]
		}
		return s.loss, before
	}
	first, firstMoves := step(false, 1, 2, 2)
	second, secondMoves := step(false, 2, 1, 2)
	loss, moves := step(true, 1, 2, 2)
	if want := 0.75*first + 0.25*second; math.Abs(loss-want) > 1e-6 {
		t.Errorf("loss %v, want %v", loss, want)
	}
	for i, v := range moves {
		if want := 0.75*firstMoves[i] + 0.25*secondMoves[i]; math.Abs(float64(v-want)) > 1e-5 {
			t.Errorf("parameter %d moves by %v, want %v", i, v, want)
		}
	}
}

// What lies behind a short batch's last sample is not looked at.
func TestShortBatch(t *testing.T) {
	sample := stages.TensorType(1, 6, 6)
	cnn := gpu.CNN{Width: 2, Depth: 1, Stride: 1, LearningRate: 0.1}
	full, short := open(t, cnn, sample, 5, 3), open(t, cnn, sample, 20, 3)
	b := randomBatch(sample, 20, 3, 1)
	submit(t, short, b)
	copy(short.params, full.params)
	for i := range b.F32[5*sample.Len():] {
		b.F32[5*sample.Len()+i] = float32(math.NaN())
	}
	b.Labels[5] = -1
	b.Len = 5
	submit(t, full, b)
	submit(t, short, b)
	if short.loss != full.loss || !slices.Equal(short.params, full.params) {
		t.Errorf("loss %v, want %v, and the same parameters", short.loss, full.loss)
	}
}

func TestPredict(t *testing.T) {
	sample := stages.TensorType(1, 2, 2)
	s := open(t, gpu.CNN{Width: 1, Depth: 1, Stride: 1}, sample, 3, 2)
	copy(s.params, []float32{0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, -1, 0, 2}) // class 0 if the maximum is over 1
	b := &stages.Batch{Len: 3, Sample: sample, F32: []float32{0, 0, 0, 3, 0, 0, 0, 0.5, 0, 2, 0, 0}, Labels: make([]int32, 3)}
	got := make([]int32, 3)
	if err := s.Predict(t.Context(), &gpu.Batch{Batch: b, Ready: gpu.Passed{}}, got); err != nil {
		t.Fatal(err)
	}
	if want := []int32{0, 1, 0}; !slices.Equal(got, want) {
		t.Errorf("classes %v, want %v", got, want)
	}
	if err := s.Predict(t.Context(), &gpu.Batch{Batch: b, Ready: gpu.Passed{}}, got[:2]); err == nil {
		t.Error("too few classes are no error")
	}
	if _, err := s.Loss(); err == nil {
		t.Error("a loss without a step")
	}
}

// A step that fails says what to do, and leaves the parameters as they were.
func TestSubmitErrors(t *testing.T) {
	sample := stages.TensorType(1, 4, 4)
	for _, tc := range []struct {
		name  string
		spoil func(b *gpu.Batch)
		want  string
	}{
		{"label too large", func(b *gpu.Batch) { b.Labels[1] = 3 },
			"sample 1 of batch 9 has label 3, and the classifier has 3 classes, counted from 0: set classes, or leave it out to have as many as the data"},
		{"label negative", func(b *gpu.Batch) { b.Labels[2] = -1 },
			"sample 2 of batch 9 has label -1, and the classifier has 3 classes, counted from 0: set classes, or leave it out to have as many as the data"},
		{"no labels", func(b *gpu.Batch) { b.Labels = nil },
			"batch 9 has 64 values and 0 labels for its 4 samples of float32 1×4×4"},
		{"other type", func(b *gpu.Batch) { b.Sample = stages.ImageType(4, 4) },
			"batch 9 holds uint8 image 4×4×3, and the classifier takes float32 1×4×4"},
		{"empty", func(b *gpu.Batch) { b.Len = 0 },
			"batch 9 has 0 samples, and the classifier takes 1 to 4"},
		{"too long", func(b *gpu.Batch) { b.Len = 5 },
			"batch 9 has 5 samples, and the classifier takes 1 to 4"},
		{"not a number", func(b *gpu.Batch) { b.F32[5] = float32(math.NaN()) },
			`the loss of step 1 is NaN: the training diverges; lower learning_rate (it is 0.5), or scale the data to around 0 with prepare "normalize"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := open(t, gpu.CNN{Width: 2, Depth: 1, Stride: 1, LearningRate: 0.5}, sample, 4, 3)
			params := slices.Clone(s.params)
			b := randomBatch(sample, 4, 3, 1)
			b.Index = 9
			tc.spoil(b)
			if _, err := s.Submit(t.Context(), b); err == nil || err.Error() != tc.want {
				t.Errorf("error:\n%v\nwant:\n%v", err, tc.want)
			}
			if !slices.Equal(s.params, params) {
				t.Error("the parameters changed")
			}
		})
	}
}

func TestDivergence(t *testing.T) {
	sample := stages.TensorType(1, 8, 8)
	s := open(t, gpu.CNN{Width: 4, Depth: 2, Stride: 1, LearningRate: 1e30}, sample, 4, 3)
	b := randomBatch(sample, 4, 3, 1)
	submit(t, s, b)
	_, err := s.Submit(t.Context(), b)
	want := `the loss of step 2 is NaN: the training diverges; lower learning_rate (it is 1e+30), or scale the data to around 0 with prepare "normalize"`
	if err == nil || err.Error() != want {
		t.Errorf("error:\n%v\nwant:\n%v", err, want)
	}
}

func TestCancelled(t *testing.T) {
	sample := stages.TensorType(1, 4, 4)
	s := open(t, gpu.CNN{Width: 2, Depth: 1, Stride: 1, LearningRate: 0.5}, sample, 4, 3)
	params := slices.Clone(s.params)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := randomBatch(sample, 4, 3, 1)
	if _, err := s.Submit(ctx, b); !errors.Is(err, context.Canceled) {
		t.Errorf("Submit: error %v, want the context's", err)
	}
	if err := s.Predict(ctx, b, make([]int32, 4)); !errors.Is(err, context.Canceled) {
		t.Errorf("Predict: error %v, want the context's", err)
	}
	if !slices.Equal(s.params, params) {
		t.Error("the parameters changed")
	}
}

func TestTensorCores(t *testing.T) {
	_, err := newClassifier(&gpu.CNN{Width: 1, Depth: 1, Stride: 1, Precision: "tf32"}, gpu.Input{Sample: stages.TensorType(1, 2, 2), Batch: 1, Classes: 2})
	want := `precision = "tf32" is for a GPU's tensor cores, and the step runs on the CPU: set it to "float32", or leave it out`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestTooLarge(t *testing.T) {
	_, err := newClassifier(&gpu.CNN{Width: 1024, Depth: 6, Stride: 1}, gpu.Input{Sample: stages.TensorType(3, 64, 64), Batch: 1, Classes: 10})
	want := "the network has 6436579338 parameters and would take 432 GiB to train: lower width, depth or classes, raise stride, or make the pictures smaller"
	if err == nil || err.Error() != want {
		t.Errorf("error:\n%v\nwant:\n%v", err, want)
	}
}

// Close ends the workers: the bubble would report any that are left.
func TestClose(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	synctest.Test(t, func(t *testing.T) {
		sample := stages.TensorType(1, 4, 4)
		s, err := newClassifier(&gpu.CNN{Width: 1, Depth: 1, Stride: 1}, gpu.Input{Sample: sample, Batch: 8, Classes: 2})
		if err != nil {
			t.Fatal(err)
		}
		if len(s.members) != 4 {
			t.Errorf("%d workers, want 4", len(s.members))
		}
		submit(t, s, randomBatch(sample, 8, 2, 1))
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A step allocates nothing, which also shows that BLAS starts no goroutines of its own.
func TestNoAllocation(t *testing.T) {
	sample := stages.TensorType(3, 16, 16)
	s := open(t, gpu.CNN{Width: 64, Depth: 3, Stride: 1, LearningRate: 0.01}, sample, 4, 300)
	b := randomBatch(sample, 4, 300, 1)
	if n := testing.AllocsPerRun(3, func() { submit(t, s, b) }); n != 0 {
		t.Errorf("%v allocations a step, want none", n)
	}
}

func BenchmarkStep(b *testing.B) {
	for _, bc := range []struct {
		name                       string
		batch, size, width, stride int
	}{
		{"batch=64,size=32,width=32", 64, 32, 32, 1},
		{"batch=16,size=128,width=8,stride=2", 16, 128, 8, 2},
	} {
		b.Run(bc.name, func(b *testing.B) {
			sample := stages.TensorType(3, bc.size, bc.size)
			s := open(b, gpu.CNN{Width: bc.width, Depth: 3, Stride: bc.stride, LearningRate: 0.01, Momentum: 0.9}, sample, bc.batch, 10)
			in := randomBatch(sample, bc.batch, 10, 1)
			b.ReportAllocs()
			for b.Loop() {
				submit(b, s, in)
			}
			b.ReportMetric(float64(bc.batch)*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
		})
	}
}
