package stages

import (
	"slices"
	"testing"
)

func TestToFloat(t *testing.T) {
	in := &Element{Type: ImageType(1, 2), U8: []byte{0, 1, 51, 102, 254, 255}}
	got := process(t, &ToFloat{}, in)
	want := []float32{0, 102. / 255, 1. / 255, 254. / 255, 51. / 255, 1}
	if got.Type != TensorType(3, 1, 2) || !slices.Equal(got.F32, want) {
		t.Errorf("%v %v, want %v", got.Type, got.F32, want)
	}
}

func BenchmarkToFloat(b *testing.B) { benchmark(b, &ToFloat{}, testImage(224, 224)) }
