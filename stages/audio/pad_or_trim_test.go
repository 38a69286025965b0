package audio

import (
	"slices"
	"testing"

	"github.com/pipectl/pipectl/stages"
)

func TestPadOrTrim(t *testing.T) {
	in := new(stages.Element)
	copy(in.Tensor(2, 2, 3), []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	tests := []struct {
		length int
		want   []float32
	}{
		{2, []float32{1, 2, 4, 5, 7, 8, 10, 11}},
		{3, in.F32},
		{5, []float32{1, 2, 3, 0, 0, 4, 5, 6, 0, 0, 7, 8, 9, 0, 0, 10, 11, 12, 0, 0}},
	}
	for _, tt := range tests {
		stage, out := newStage(t, &PadOrTrim{tt.length}), new(stages.Element)
		for i := range out.Tensor(2, 2, 5) { // as after another item
			out.F32[i] = -1
		}
		if err := stage.Process(testCall(), in, out); err != nil {
			t.Fatal(err)
		}
		if got := out.Result(); got.Type != stages.TensorType(2, 2, tt.length) || !slices.Equal(got.F32, tt.want) {
			t.Errorf("length %d: %v %v, want %v", tt.length, got.Type, got.F32, tt.want)
		}
	}
}

func BenchmarkPadOrTrim(b *testing.B) { benchmark(b, &PadOrTrim{16000}, noise(1, 12000)) }
