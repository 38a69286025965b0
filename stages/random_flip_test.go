package stages

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestRandomFlip(t *testing.T) {
	always := &RandomFlip{P: 1}
	image := &Element{Type: ImageType(2, 3), U8: []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}}
	got := process(t, always, image)
	if want := []byte{6, 7, 8, 3, 4, 5, 0, 1, 2, 15, 16, 17, 12, 13, 14, 9, 10, 11}; got.Type != image.Type || !slices.Equal(got.U8, want) {
		t.Errorf("%v %v, want %v", got.Type, got.U8, want)
	}
	tensor := testTensor(2, 2, 3)
	got = process(t, always, tensor)
	if want := []float32{2, 1, 0, 5, 4, 3, 8, 7, 6, 11, 10, 9}; got.Type != tensor.Type || !slices.Equal(got.F32, want) {
		t.Errorf("%v %v, want %v", got.Type, got.F32, want)
	}
	if process(t, &RandomFlip{P: 0}, image) != image {
		t.Error("the image isn't passed on with p = 0")
	}
}

func TestRandomFlipDraw(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	spec := &RandomFlip{P: 0.25}
	flips := 0
	for range 10000 {
		if spec.draw(r) {
			flips++
		}
	}
	if flips < 2400 || flips > 2600 {
		t.Errorf("%d of 10000 flipped, want about 2500", flips)
	}
}

func BenchmarkRandomFlip(b *testing.B) {
	image := testImage(224, 224)
	b.Run("image", func(b *testing.B) { benchmark(b, &RandomFlip{P: 1}, image) })
	b.Run("tensor", func(b *testing.B) { benchmark(b, &RandomFlip{P: 1}, process(b, &ToFloat{}, image)) })
}
