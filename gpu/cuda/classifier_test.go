//go:build cuda

package cuda

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/cpu"
	"github.com/pipectl/pipectl/gpu/cuda/driver"
	"github.com/pipectl/pipectl/gpu/cuda/emulator/control"
	"github.com/pipectl/pipectl/stages"
)

// randomBatch makes a batch of n samples of normally distributed values.
func randomBatch(sample stages.Type, n, classes int, seed uint64) *stages.Batch {
	r := rand.New(rand.NewPCG(seed, 1))
	b := &stages.Batch{Len: n, Sample: sample, F32: make([]float32, n*sample.Len()), Labels: make([]int32, n)}
	for i := range b.F32 {
		b.F32[i] = float32(r.NormFloat64())
	}
	for i := range b.Labels {
		b.Labels[i] = r.Int32N(int32(classes))
	}
	return b
}

// classifierOn makes a classifier that the test closes.
func classifierOn(tb testing.TB, d gpu.Device, c gpu.CNN, in gpu.Input) gpu.Classifier {
	tb.Helper()
	s, err := d.NewClassifier(&c, in)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// train does one step and returns the loss.
func train(tb testing.TB, d gpu.Device, s gpu.Classifier, b *stages.Batch) float64 {
	tb.Helper()
	batch, err := d.Upload(tb.Context(), b)
	if err != nil {
		tb.Fatal(err)
	}
	defer batch.Free()
	e, err := s.Submit(tb.Context(), batch)
	if err == nil {
		err = e.Wait(tb.Context())
	}
	if err != nil {
		tb.Fatal(err)
	}
	loss, err := s.Loss()
	if err != nil {
		tb.Fatal(err)
	}
	return loss
}

func params(tb testing.TB, s gpu.Classifier) []float32 {
	tb.Helper()
	p, err := s.Params(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// Steps on samples that are mixed with each other go as the CPU's.
func TestMixedSamples(t *testing.T) {
	d, host := openDevice(t), cpu.New("Reference.")
	sample := stages.TensorType(3, 8, 8)
	in := gpu.Input{Sample: sample, Batch: 7, Classes: 5, Seed: 3, Mixed: true}
	c := gpu.CNN{Width: 4, Depth: 1, Stride: 1, LearningRate: 0.05, Momentum: 0.9}
	reference, s := classifierOn(t, host, c, in), classifierOn(t, d, c, in)
	for i, own := range []float32{0.75, 0, 1, 0.3} {
		b := randomBatch(sample, 7-i, 5, uint64(i))
		b.Mixed, b.Own = true, own
		want, got := train(t, host, reference, b), train(t, d, s, b)
		if math.Abs(got-want) > 1e-4*want {
			t.Errorf("loss %v where samples keep %v of their own, want %v", got, own, want)
		}
	}
	want := params(t, reference)
	for i, v := range params(t, s) {
		if math.Abs(float64(v-want[i])) > 1e-4 {
			t.Fatalf("parameter %d is %v, want %v", i, v, want[i])
		}
	}
}

// A hundred steps go as the CPU's, short batches among them.
func TestLossCurve(t *testing.T) {
	d := openDevice(t)
	sample := stages.TensorType(3, 12, 11)
	in := gpu.Input{Sample: sample, Batch: 12, Classes: 4, Seed: 3}
	c := gpu.CNN{Width: 6, Depth: 2, Stride: 1, LearningRate: 0.02, Momentum: 0.9}
	host := cpu.New("Reference.")
	reference, s := classifierOn(t, host, c, in), classifierOn(t, d, c, in)
	var first, last float64
	for i := range 100 {
		// Each class has a brighter spot of its own, so that there is something to learn.
		b := randomBatch(sample, 12-i%5, 4, uint64(i))
		for j, label := range b.Labels {
			for p := range 9 {
				b.F32[j*sample.Len()+int(label)*30+p*12] += 1.5
			}
		}
		want, got := train(t, host, reference, b), train(t, d, s, b)
		if math.Abs(got-want) > 0.01*want {
			t.Fatalf("loss %v after %d steps, want %v", got, i+1, want)
		}
		if i == 0 {
			first = got
		}
		last = got
	}
	if last > first/2 {
		t.Errorf("the loss goes from %v to %v: nothing was learnt", first, last)
	}

	b := randomBatch(sample, 11, 4, 1000)
	want, got := make([]int32, 12), make([]int32, 12)
	for _, p := range []struct {
		device gpu.Device
		s      gpu.Classifier
		into   []int32
	}{{host, reference, want}, {d, s, got}} {
		batch, err := p.device.Upload(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		defer batch.Free()
		before := params(t, p.s)
		if err := p.s.Predict(t.Context(), batch, p.into); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(before, params(t, p.s)) {
			t.Error("a prediction changed the parameters")
		}
	}
	if !slices.Equal(want, got) {
		t.Errorf("predicted %v, want %v", got, want)
	}
}

// Steps that nobody waits for give the same bits as steps one by one, and as those of another classifier.
func TestReproducible(t *testing.T) {
	d := openDevice(t)
	sample := stages.TensorType(3, 14, 12)
	in := gpu.Input{Sample: sample, Batch: 9, Classes: 5, Seed: 3}
	for _, precision := range []string{"float32", "tf32"} {
		c := gpu.CNN{Width: 9, Depth: 1, Stride: 1, LearningRate: 0.01, Momentum: 0.9, Precision: precision}
		steps := maxSteps + 6
		var batches []*stages.Batch
		for i := range steps {
			batches = append(batches, randomBatch(sample, 9-i%3, 5, uint64(i)))
		}
		waited := classifierOn(t, d, c, in)
		var want []float64
		for _, b := range batches {
			want = append(want, train(t, d, waited, b))
		}
		s := classifierOn(t, d, c, in)
		var events []gpu.Event
		for _, b := range batches {
			batch, err := d.Upload(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			e, err := s.Submit(t.Context(), batch)
			if err != nil {
				t.Fatal(err)
			}
			batch.Free()
			events = append(events, e)
		}
		for i, e := range events {
			if err := e.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if loss, err := e.(*step).read(); err != nil || loss != want[i] {
				t.Fatalf("%s: loss %v of step %d, %v, want %v", precision, loss, i+1, err, want[i])
			}
			if took, ok := e.Elapsed(); !ok || took <= 0 {
				t.Fatalf("step %d took %v, %v", i+1, took, ok)
			}
		}
		if loss, err := s.Loss(); err != nil || loss != want[steps-1] {
			t.Errorf("%s: loss %v, %v, want %v", precision, loss, err, want[steps-1])
		}
		if !slices.Equal(params(t, waited), params(t, s)) {
			t.Errorf("%s: the parameters differ", precision)
		}
		if err := s.(gpu.Restarter).Restart(); err != nil {
			t.Fatal(err)
		}
		for i, b := range batches[:3] {
			if loss := train(t, d, s, b); loss != want[i] {
				t.Errorf("%s: loss %v of step %d after a restart, want %v", precision, loss, i+1, want[i])
			}
		}
	}
}

// What isn't a batch to learn from is the CPU's error, word by word, and changes nothing.
func TestRefuses(t *testing.T) {
	d := openDevice(t)
	host := cpu.New("Reference.")
	sample := stages.TensorType(3, 8, 8)
	in := gpu.Input{Sample: sample, Batch: 4, Classes: 3, Seed: 3}
	c := gpu.CNN{Width: 4, Depth: 1, Stride: 1, LearningRate: 0.5}
	for _, tc := range []struct {
		name   string
		change func(b *stages.Batch)
		err    string
	}{
		{"label too large", func(b *stages.Batch) { b.Labels[2] = 3 }, "sample 2 of batch 8 has label 3, and the classifier has 3 classes, counted from 0: set classes, or leave it out to have as many as the data"},
		{"negative label", func(b *stages.Batch) { b.Labels[0] = -1 }, "sample 0 of batch 8 has label -1, and the classifier has 3 classes, counted from 0: set classes, or leave it out to have as many as the data"},
		{"not a number", func(b *stages.Batch) { b.F32[100] = float32(math.NaN()) }, "the loss of step 1 is NaN: the training diverges; lower learning_rate (it is 0.5), or scale the data to around 0 with prepare \"normalize\""},
		{"infinite", func(b *stages.Batch) { b.F32[300] = float32(math.Inf(1)) }, "the loss of step 1 is NaN: the training diverges; lower learning_rate (it is 0.5), or scale the data to around 0 with prepare \"normalize\""},
		{"too long", func(b *stages.Batch) { *b = *randomBatch(sample, 5, 3, 1); b.Index = 8 }, "batch 8 has 5 samples, and the classifier takes 1 to 4"},
		{"other samples", func(b *stages.Batch) { b.Sample = stages.TensorType(3, 8, 4) }, "batch 8 holds float32 3×8×4, and the classifier takes float32 3×8×8"},
		{"no labels", func(b *stages.Batch) { b.Labels = nil }, "batch 8 has 768 values and 0 labels for its 4 samples of float32 3×8×8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, device := range []gpu.Device{host, d} {
				s := classifierOn(t, device, c, in)
				if _, err := s.Loss(); err == nil || err.Error() != "no step has been done yet" {
					t.Errorf("loss before the first step: %v", err)
				}
				before := params(t, s)
				b := randomBatch(sample, 4, 3, 1)
				b.Index = 8
				tc.change(b)
				batch, err := device.Upload(t.Context(), b)
				if err != nil {
					t.Fatal(err)
				}
				defer batch.Free()
				e, err := s.Submit(t.Context(), batch)
				if err == nil {
					err = e.Wait(t.Context())
				}
				if err == nil || err.Error() != tc.err {
					t.Errorf("on %s:\n got %v\nwant %s", device.Info().Kind, err, tc.err)
				}
				if !slices.Equal(before, params(t, s)) {
					t.Errorf("on %s: the parameters changed", device.Info().Kind)
				}
			}
		})
	}
}

// openDevice opens the GPU or the emulated one, and skips the test where there is none and none is asked for. At the end
// nothing of the emulated one may be left.
func openDevice(tb testing.TB) *Device {
	tb.Helper()
	var e *control.Emulator
	if os.Getenv(driver.Variable) != "" {
		e = emulator(tb)
	}
	d, err := Open("Test.")
	if err != nil {
		if os.Getenv("PIPECTL_REQUIRE_CUDA") == "1" {
			tb.Fatal(err)
		}
		tb.Skip(err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Error(err)
		}
		if e == nil {
			return
		}
		if s := e.State(); s.Held != (control.Held{}) || s.Left != (control.Held{}) {
			tb.Errorf("after Close the driver holds %+v, and freed %+v itself", s.Held, s.Left)
		}
	})
	return d
}

// A network that the GPU has no memory for says how much it needs and which batch would fit; one that the kernels can't count
// says that.
func TestTooLarge(t *testing.T) {
	emulator(t) // whose memory is known
	d := openDevice(t)
	for _, tc := range []struct {
		cnn    gpu.CNN
		sample stages.Type
		batch  int
		err    string
	}{
		{gpu.CNN{Width: 64, Depth: 2, Stride: 1}, stages.TensorType(3, 224, 224), 128,
			"the network's parameters and activations need 1.49 GiB of device memory, of which 1.00 GiB of 1.00 GiB are free: CUDA_ERROR_OUT_OF_MEMORY (out of memory); a batch of 83 samples would fit"},
		{gpu.CNN{Width: 1024, Depth: 3, Stride: 1}, stages.TensorType(3, 64, 64), 1,
			"the network's parameters and activations need 1.11 GiB of device memory, of which 1.00 GiB of 1.00 GiB are free: CUDA_ERROR_OUT_OF_MEMORY (out of memory)"},
		{gpu.CNN{Width: 1024, Depth: 6, Stride: 1}, stages.TensorType(3, 64, 64), 1,
			"a layer of 4831870976 parameters is more than the GPU's kernels can count: lower width, depth or classes, or make the pictures smaller"},
		{gpu.CNN{Width: 1, Depth: 1, Stride: 16}, stages.TensorType(3, 16384, 16384), 8,
			"batches of 8 pictures of 16384×16384 with 4 channels are more than the GPU's kernels can count: make the batches or the pictures smaller, or lower width"},
	} {
		_, err := d.NewClassifier(&tc.cnn, gpu.Input{Sample: tc.sample, Batch: tc.batch, Classes: 10})
		if err == nil || err.Error() != tc.err {
			t.Errorf("error:\n%v\nwant:\n%s", err, tc.err)
		}
	}
}
