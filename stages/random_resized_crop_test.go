package stages

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func defaultCrop(size int) *RandomResizedCrop {
	s := randomResizedCropOperator().New().(*RandomResizedCrop)
	s.Size = []int{size}
	return s
}

// The first item of a stream of random numbers is always cropped in the same place.
func TestRandomResizedCrop(t *testing.T) {
	photo := golden(t, "photo")
	spec := defaultCrop(28)
	crop := spec.draw(testCall(t.Context()).Rand, 96, 128)
	if want := (box{Top: 2, Left: 29, Height: 94, Width: 92}); crop != want {
		t.Errorf("drew %+v, want %+v", crop, want)
	}
	want := new(Element)
	want.Image(28, 28)
	newResampler("bilinear").resize(pixelsOf(want), pixelsOf(photo).crop(crop))
	if got := process(t, spec, photo); string(got.U8) != string(want.U8) {
		t.Error("the result isn't the crop that was drawn, resized")
	}
}

// Crops lie within the image, whatever its size and the limits.
func TestRandomResizedCropDraw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.Float64Range(1e-9, 1)
		ratio := rapid.Float64Range(1e-3, 1e3)
		spec := &RandomResizedCrop{Scale: []float64{share.Draw(t, "least scale"), 1}, Ratio: []float64{ratio.Draw(t, "least ratio"), 1e3}}
		spec.Scale[1] = max(spec.Scale[0], share.Draw(t, "greatest scale"))
		spec.Ratio[1] = max(spec.Ratio[0], ratio.Draw(t, "greatest ratio"))
		h, w := rapid.IntRange(1, 70000).Draw(t, "h"), rapid.IntRange(1, 70000).Draw(t, "w")
		b := spec.draw(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), h, w)
		if b.Height < 1 || b.Width < 1 || b.Top < 0 || b.Left < 0 || b.Top+b.Height > h || b.Left+b.Width > w {
			t.Errorf("%+v isn't within %d×%d", b, h, w)
		}
	})
}

// Where no draw fits, the crop is the largest in the middle that keeps the ratio.
func TestRandomResizedCropFallback(t *testing.T) {
	tests := []struct {
		h, w      int
		low, high float64
		want      box
	}{
		{1000, 10, 0.75, 4. / 3, box{493, 0, 13, 10}},
		{10, 1000, 0.75, 4. / 3, box{0, 493, 10, 13}},
		{100, 100, 3, 4, box{33, 0, 33, 100}},
		{1, 1, 3, 4, box{0, 0, 1, 1}},
	}
	for _, tt := range tests {
		spec := &RandomResizedCrop{Scale: []float64{1, 1}, Ratio: []float64{tt.low, tt.high}}
		if got := spec.draw(rand.New(rand.NewPCG(1, 2)), tt.h, tt.w); got != tt.want {
			t.Errorf("%d×%d with ratios from %v to %v: %+v, want %+v", tt.h, tt.w, tt.low, tt.high, got, tt.want)
		}
	}
}

// Areas are uniform and ratios uniform in their logarithm, so both have their middle in the middle.
func TestRandomResizedCropDistribution(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	spec := &RandomResizedCrop{Scale: []float64{0.1, 0.5}, Ratio: []float64{0.5, 2}}
	const n = 10000
	var area, logRatio float64
	for range n {
		b := spec.draw(r, 1000, 1000)
		area += float64(b.Height*b.Width) / 1e6 / n
		logRatio += math.Log(float64(b.Width)/float64(b.Height)) / n
	}
	if math.Abs(area-0.3) > 0.005 || math.Abs(logRatio) > 0.02 {
		t.Errorf("mean area %v, want 0.3; mean logarithm of the ratio %v, want 0", area, logRatio)
	}
}

func TestRandomResizedCropValidate(t *testing.T) {
	tests := []struct {
		scale, ratio []float64
		want         string
	}{
		{[]float64{0.5, 0.5}, []float64{1, 2}, "[]"},
		{[]float64{0.5}, []float64{2, 1}, "[{scale Not a range It is a list of two numbers, the least and the greatest. This list has 1. false} {ratio Range upside down The least value comes first: [1, 2]. false}]"},
	}
	for _, tt := range tests {
		spec := &RandomResizedCrop{Size: []int{224}, Scale: tt.scale, Ratio: tt.ratio}
		if got := fmt.Sprint(spec.Validate()); got != tt.want {
			t.Errorf("scale %v, ratio %v:\n got %s\nwant %s", tt.scale, tt.ratio, got, tt.want)
		}
	}
}

func BenchmarkRandomResizedCrop(b *testing.B) { benchmark(b, defaultCrop(224), testImage(300, 400)) }
