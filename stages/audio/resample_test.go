package audio

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pipectl/pipectl/stages"
)

func TestResample(t *testing.T) {
	for _, tt := range []struct{ orig, new, samples int }{
		{44100, 16000, 436}, {16000, 22050, 1654}, {48000, 44100, 1103}, {3, 1, 400},
	} {
		t.Run(fmt.Sprintf("%d to %d", tt.orig, tt.new), func(t *testing.T) {
			got := process(t, &Resample{tt.orig, tt.new}, wave(t, 1))
			near(t, got, stages.TensorType(1, 1, tt.samples), golden(t, fmt.Sprintf("resample_%d_%d", tt.orig, tt.new)), 1e-6)
		})
	}
}

// The channels are resampled one by one, and a rate that stays costs nothing.
func TestResampleChannels(t *testing.T) {
	in := wave(t, 2)
	got := process(t, &Resample{3, 1}, in)
	if got.Type != stages.TensorType(2, 1, 400) {
		t.Fatal(got.Type)
	}
	near(t, &stages.Element{Type: stages.TensorType(1, 1, 400), F32: got.F32[:400]}, stages.TensorType(1, 1, 400), golden(t, "resample_3_1"), 1e-6)
	if process(t, &Resample{5, 5}, in) != in {
		t.Error("resampling to the same rate makes a copy")
	}
}

// All kernels give the same bits, for clips from one sample on.
func TestResampleKernels(t *testing.T) {
	for _, tt := range []struct{ orig, new int }{{44100, 16000}, {8000, 16000}, {3, 1}, {1, 7}, {12, 11}} {
		fast, slow := newResampler(tt.orig, tt.new), newResampler(tt.orig, tt.new)
		slow.kernels = portable{}
		for n := 1; n < 300; n += 7 {
			src := noise(1, n).F32
			got, want := make([]float32, fast.length(n)), make([]float32, fast.length(n))
			fast.run(got, src)
			slow.run(want, src)
			if !slices.Equal(got, want) {
				t.Errorf("%d samples, %d to %d: %v, want %v", n, tt.orig, tt.new, got, want)
			}
		}
	}
}

func TestResampleTooMany(t *testing.T) {
	in := new(stages.Element)
	in.Tensor(1, 1, 200000)
	err := newStage(t, &Resample{1, 4096}).Process(testCall(), in, new(stages.Element))
	if want := "200000 samples would become 819200000, which are too many"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func BenchmarkResample(b *testing.B) {
	for _, r := range []Resample{{44100, 16000}, {48000, 16000}} {
		b.Run(fmt.Sprintf("%d to %d", r.OrigFreq, r.NewFreq), func(b *testing.B) { benchmark(b, &r, noise(1, r.OrigFreq)) })
	}
}
