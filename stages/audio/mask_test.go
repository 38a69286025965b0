package audio

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pipectl/pipectl/stages"
)

// From the same random numbers a mask lies where torchaudio puts it.
func TestMaskPlace(t *testing.T) {
	rows := golden(t, "masks") // two numbers, limit, size, start (-1 without a mask), width
	for row := range slices.Chunk(rows, 6) {
		start, end := place(float64(row[0]), float64(row[1]), int(row[2]), int(row[3]))
		if end-start != int(row[5]) || start != end && start != int(row[4]) {
			t.Errorf("%v: from %d to %d", row, start, end)
		}
	}
	if len(rows) != 6*56 {
		t.Errorf("%d rows", len(rows)/6)
	}
}

func TestMask(t *testing.T) {
	in := new(stages.Element)
	for i := range in.Tensor(2, 3, 5) {
		in.F32[i] = float32(i + 1)
	}
	tests := []struct {
		spec stages.StageSpec
		want []float32 // nil: nothing is masked, and nothing copied
	}{
		{&TimeMask{4, 1}, []float32{
			1, 0, 0, 4, 5, 6, 0, 0, 9, 10, 11, 0, 0, 14, 15,
			16, 0, 0, 19, 20, 21, 0, 0, 24, 25, 26, 0, 0, 29, 30,
		}},
		{&TimeMask{5, 0.4}, []float32{
			1, 0, 3, 4, 5, 6, 0, 8, 9, 10, 11, 0, 13, 14, 15,
			16, 0, 18, 19, 20, 21, 0, 23, 24, 25, 26, 0, 28, 29, 30,
		}},
		{&TimeMask{5, 0.1}, nil},
		{&TimeMask{1, 1}, nil},
		{&FrequencyMask{3}, []float32{
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11, 12, 13, 14, 15,
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 26, 27, 28, 29, 30,
		}},
		{&FrequencyMask{0}, nil},
	}
	for _, tt := range tests {
		got := process(t, tt.spec, in)
		if tt.want == nil {
			if got != in {
				t.Errorf("%+v: %v, want what it got", tt.spec, got.F32)
			}
			continue
		}
		if got.Type != in.Type || !slices.Equal(got.F32, tt.want) {
			t.Errorf("%+v: %v %v, want %v", tt.spec, got.Type, got.F32, tt.want)
		}
	}
}

// Widths are uniform from 0 to below the limit, and a mask may begin anywhere where it fits.
func TestMaskDistribution(t *testing.T) {
	const draws = 40000
	m := &masker{limit: 4, fraction: 1}
	r := rand.New(rand.NewPCG(3, 4))
	widths, starts := make([]int, 4), make([]int, 10)
	for range draws {
		start, end := m.draw(r, 10)
		widths[end-start]++
		if end-start == 3 {
			starts[start]++
		}
	}
	for width, n := range widths {
		if n < draws/4-600 || n > draws/4+600 {
			t.Errorf("%d of %d masks have the width %d", n, draws, width)
		}
	}
	// With a width from 3 to 4 the place is uniform in 0 to 10 minus that.
	for start, n := range starts {
		if (n > 1100 && n < 1900) != (start < 6) || start > 6 && n > 0 {
			t.Errorf("%d masks of width 3 start at %d", n, start)
		}
	}
}

func BenchmarkTimeMask(b *testing.B) {
	in := noise(1, 80*1000)
	in.Tensor(1, 80, 1000)
	benchmark(b, &TimeMask{100, 1}, in)
}

func BenchmarkFrequencyMask(b *testing.B) {
	in := noise(1, 80*1000)
	in.Tensor(1, 80, 1000)
	benchmark(b, &FrequencyMask{27}, in)
}
