package stages

import (
	"math/rand/v2"
	"testing"
)

func TestRandomGrayscale(t *testing.T) {
	small := golden(t, "resize_bilinear_24x32")
	equalsGolden(t, process(t, &RandomGrayscale{P: 1}, small), "grayscale")
	if process(t, &RandomGrayscale{P: 0}, small) != small {
		t.Error("the image isn't passed on with p = 0")
	}
}

func TestRandomGrayscaleDraw(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	spec := &RandomGrayscale{P: 0.25}
	grey := 0
	for range 10000 {
		if spec.draw(r) {
			grey++
		}
	}
	if grey < 2400 || grey > 2600 {
		t.Errorf("%d of 10000 grey, want about 2500", grey)
	}
}

func BenchmarkRandomGrayscale(b *testing.B) {
	benchmark(b, &RandomGrayscale{P: 1}, testImage(224, 224))
}
