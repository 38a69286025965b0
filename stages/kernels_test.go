package stages

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The fastest kernels of this machine give what the portable ones give, bit for bit, and write nothing beyond their part of dst.
func TestKernels(t *testing.T) {
	fast := fastKernels()
	if fast == (portable{}) {
		t.Log("this build or machine has the portable ones alone")
	}
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 70)
		h, w, to := size.Draw(t, "h"), size.Draw(t, "w"), size.Draw(t, "to")
		k := kernel{1, triangle}
		if rapid.Bool().Draw(t, "cubic") {
			k = kernel{2, cubic}
		}
		first := rapid.Float64Range(0, 0.99).Draw(t, "first")
		part := func(n int) span { return span{first, rapid.Float64Range(0.01, float64(n)-first).Draw(t, "length")} }
		across, down := new(taps), new(taps)
		across.set(w, to, part(w), k)
		down.set(h, to, part(h), k)
		image := testImage(h, w)
		n, uncached := normalizeOperator().New().(*Normalize).imageNormalizer(), rapid.Bool().Draw(t, "uncached")
		bytes := map[string]func(kernels, pixels, pixels){
			"alongRows":    func(k kernels, dst, src pixels) { k.alongRows(across, dst, src) },
			"alongColumns": func(k kernels, dst, src pixels) { k.alongColumns(down, dst, src) },
			"mirror":       kernels.mirror,
		}
		for name, run := range bytes {
			of := box{Height: h, Width: w}
			switch name {
			case "alongRows":
				of.Width = to
			case "alongColumns":
				of.Height = to
			}
			got, want := framed(of), framed(of)
			run(fast, got.crop(box{1, 1, of.Height, of.Width}), pixelsOf(image))
			run(portable{}, want.crop(box{1, 1, of.Height, of.Width}), pixelsOf(image))
			if !slices.Equal(got.pix, want.pix) {
				t.Errorf("%s of %d×%d to %+v: %v, want %v", name, h, w, of, got.pix, want.pix)
			}
		}
		factor, grey := rapid.Float32Range(0, 3).Draw(t, "factor"), rapid.Int32Range(0, 255).Draw(t, "grey")
		colours := map[string]func(kernels, []byte){
			"mixGrey":  func(k kernels, dst []byte) { k.mixGrey(dst, image.U8, grey, factor) },
			"saturate": func(k kernels, dst []byte) { k.saturate(dst, image.U8, factor) },
			"turnHues": func(k kernels, dst []byte) {
				var hues hueTable
				hues.turn(byte(grey))
				k.turnHues(&hues, dst, image.U8)
			},
			"in place": func(k kernels, dst []byte) {
				copy(dst, image.U8)
				k.saturate(dst[:len(image.U8)], dst[:len(image.U8)], factor)
			},
		}
		for name, run := range colours {
			got, want := make([]byte, 3*h*w+1), make([]byte, 3*h*w+1)
			run(fast, got)
			run(portable{}, want)
			if !slices.Equal(got, want) {
				t.Errorf("%s by %v of %d×%d: %v, want %v", name, factor, h, w, got, want)
			}
		}
		if got, want := fast.sumGreys(image.U8), (portable{}).sumGreys(image.U8); got != want {
			t.Errorf("greys of %d×%d: %d, want %d", h, w, got, want)
		}
		floats := map[string]func(kernels, []float32){
			"normalize": func(k kernels, dst []float32) { k.normalize(n, dst[:3*h*w], image.U8, uncached) },
			"standardize": func(k kernels, dst []float32) {
				k.standardize(dst[:h*w], []float32(testTensor(1, h, w).F32), 0.485, 0.229)
			},
		}
		for name, run := range floats {
			got, want := make([]float32, 3*h*w+1), make([]float32, 3*h*w+1)
			run(fast, got)
			run(portable{}, want)
			if !slices.EqualFunc(got, want, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
				t.Errorf("%s of %d×%d: %v, want %v", name, h, w, got, want)
			}
		}
	})
}

// framed returns black pixels with room for a rectangle of b's size that has one pixel around it.
func framed(b box) pixels {
	e := new(Element)
	e.Image(b.Height+2, b.Width+2)
	return pixelsOf(e)
}
