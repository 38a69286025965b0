package stages

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestResizedCrop(t *testing.T) {
	photo := pixelsOf(golden(t, "photo"))
	for _, interpolation := range []string{"bilinear", "bicubic", "nearest"} {
		t.Run(interpolation, func(t *testing.T) {
			got := new(Element)
			got.Image(28, 36)
			newResampler(interpolation).resize(pixelsOf(got), photo.crop(box{Top: 13, Left: 40, Height: 60, Width: 51}))
			equalsGolden(t, got, "resized_crop_"+interpolation)
		})
	}
}

// Rows and columns are resized by different code, which must agree: resizing the transposed image along the other axis is
// the same.
func TestResampleTransposed(t *testing.T) {
	transposed := func(e *Element) *Element {
		h, w := e.Type.Shape[0], e.Type.Shape[1]
		out := new(Element)
		out.Image(w, h)
		for y := range h {
			for x := range w {
				copy(out.U8[3*(x*h+y):][:3], e.U8[3*(y*w+x):])
			}
		}
		return out
	}
	resized := func(kernel string, e *Element, h, w int) *Element {
		out := new(Element)
		out.Image(h, w)
		newResampler(kernel).resize(pixelsOf(out), pixelsOf(e))
		return out
	}
	rapid.Check(t, func(t *rapid.T) {
		kernel := rapid.SampledFrom([]string{"bilinear", "bicubic", "nearest"}).Draw(t, "kernel")
		size := rapid.IntRange(1, 50)
		h, w, to := size.Draw(t, "h"), size.Draw(t, "w"), size.Draw(t, "to")
		in := testImage(h, w)
		down := resized(kernel, in, to, w)
		across := transposed(resized(kernel, transposed(in), w, to))
		if !slices.Equal(down.U8, across.U8) {
			t.Errorf("%s from %d to %d rows of %d: %v, and along the other axis %v", kernel, h, to, w, down.U8, across.U8)
		}
	})
}

// Weights add up to 1 closely enough for a plain colour to stay as it is.
func TestResamplePlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kernel := rapid.SampledFrom([]string{"bilinear", "bicubic", "nearest"}).Draw(t, "kernel")
		size := rapid.IntRange(1, 2000)
		var in, out Element
		for i := range in.Image(size.Draw(t, "h"), 1) {
			in.U8[i] = 255
		}
		for i := range out.Image(size.Draw(t, "to"), 1) {
			out.U8[i] = 0
		}
		newResampler(kernel).resize(pixelsOf(&out), pixelsOf(&in))
		if i := slices.IndexFunc(out.U8, func(v byte) bool { return v != 255 }); i >= 0 {
			t.Errorf("%s from %v to %v: byte %d is %d", kernel, in.Type, out.Type, i, out.U8[i])
		}
	})
}
