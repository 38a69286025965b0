package audio

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/pipectl/pipectl/stages"
)

func TestAmplitudeToDB(t *testing.T) {
	in := new(stages.Element)
	copy(in.Tensor(2, 128, 7), golden(t, "mel_default"))
	top := 30.0
	tests := []struct {
		name string
		spec *AmplitudeToDB
	}{
		{"db_power", &AmplitudeToDB{Stype: "power"}},
		{"db_magnitude_30", &AmplitudeToDB{Stype: "magnitude", TopDB: &top}},
	}
	for _, tt := range tests {
		near(t, process(t, tt.spec, in), in.Type, golden(t, tt.name), 8e-6)
	}
	if at := golden(t, "db_power"); !slices.Contains(at, -100) {
		t.Error("no value is at the least")
	}
}

// What isn't a number, or infinite, spreads by the limit, as in torchaudio.
func TestAmplitudeToDBNotFinite(t *testing.T) {
	top, nan, inf := 20.0, float32(math.NaN()), float32(math.Inf(1))
	tests := []struct {
		spec *AmplitudeToDB
		in   []float32
		want string
	}{
		{&AmplitudeToDB{Stype: "power"}, []float32{nan, inf, 0, -1}, "[NaN +Inf -100 -100]"},
		{&AmplitudeToDB{Stype: "power", TopDB: &top}, []float32{nan, inf, 0, -1}, "[NaN NaN NaN NaN]"},
		{&AmplitudeToDB{Stype: "power", TopDB: &top}, []float32{1, inf, 0, -1}, "[+Inf +Inf +Inf +Inf]"},
		{&AmplitudeToDB{Stype: "magnitude", TopDB: &top}, []float32{0, 0, 0, 0}, "[-200 -200 -200 -200]"},
	}
	for _, tt := range tests {
		in := new(stages.Element)
		copy(in.Tensor(1, 2, 2), tt.in)
		if got := fmt.Sprint(process(t, tt.spec, in).F32); got != tt.want {
			t.Errorf("%v becomes %s, want %s", tt.in, got, tt.want)
		}
	}
}

// Logarithms are those of package math, rounded, in all but few cases; all kernels give the same bits.
func TestLogarithms(t *testing.T) {
	inf := float32(math.Inf(1))
	src := []float32{0, -1, 1e-10, 1e-40, 1, 0.99999994, 1.0000001, math.Sqrt2, math.Sqrt2 / 2, 10, math.MaxFloat32, inf, -inf}
	for v := float32(1e-11); v < inf; v *= 1.0007 {
		src = append(src, v)
	}
	got, want := make([]float32, len(src)), make([]float32, len(src))
	fastKernels().logarithms(got, src, 20)
	portable{}.logarithms(want, src, 20)
	other := 0
	for i, v := range src {
		if got[i] != want[i] {
			t.Errorf("%v: %v, want %v", v, got[i], want[i])
		}
		if exact := 20 * float32(math.Log10(float64(max(v, leastAmplitude)))); got[i] != exact {
			other++
			if math.Abs(float64(got[i]-exact)) > 1e-7*math.Abs(float64(exact)) {
				t.Errorf("%v: %v, want %v", v, got[i], exact)
			}
		}
	}
	if other > len(src)/1000 {
		t.Errorf("%d of %d values are others", other, len(src))
	}
}

func BenchmarkAmplitudeToDB(b *testing.B) {
	in := noise(1, 80*1000)
	in.Tensor(1, 80, 1000)
	top := 80.0
	for name, spec := range map[string]*AmplitudeToDB{"unlimited": {Stype: "power"}, "limited": {Stype: "power", TopDB: &top}} {
		b.Run(name, func(b *testing.B) { benchmark(b, spec, in) })
	}
}
