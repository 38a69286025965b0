package stages

import (
	"errors"
	"math/rand/v2"
)

// What follows is for devices that do a stage's work themselves: the operators' draws and tables, so that the results are
// the host's bit for bit.

// OnDevice reports whether devices can do the work of an operator with such a spec.
func OnDevice(spec any) bool {
	switch spec.(type) {
	case *ToFloat, *Normalize, *RandomFlip, *RandomResizedCrop, *ColorJitter:
		return true
	}
	return false
}

// DeviceTakes returns nil if a device can do a stage's work on batches of such samples, which the stage takes on the host, or an
// error that says, in full sentences for the file's author, why not and what to do.
func DeviceTakes(spec StageSpec, sample Type) error {
	if !sample.Fixed() {
		return errors.New("Devices work on batches whose samples are all of one size, and it gets " + sample.String() +
			`. Resize the items above the batch (prepare "resize").`)
	}
	if _, ok := spec.(*Normalize); ok && sample.Kind != Image {
		return errors.New("On the device normalize makes tensors of images, in one pass, and it gets " + sample.String() +
			". Remove the to_float above it, or let it work on the host, above the batch.")
	}
	return nil
}

// ByteTable returns the value of each channel and byte after the conversion to a tensor.
func (s *ToFloat) ByteTable() [3][256]float32 { return s.imageNormalizer().table }

// ByteTable returns the value of each channel and byte after the conversion to a tensor and the normalization.
func (s *Normalize) ByteTable() [3][256]float32 { return s.imageNormalizer().table }

// Draw reports whether an item is flipped.
func (s *RandomFlip) Draw(r *rand.Rand) bool { return s.draw(r) }

// Draw returns the part of an image of h×w that is cut out.
func (s *RandomResizedCrop) Draw(r *rand.Rand, h, w int) (top, left, height, width int) {
	b := s.draw(r, h, w)
	return b.Top, b.Left, b.Height, b.Width
}

// Taps says what the pixels of an axis are made of that is resized.
type Taps struct {
	First, Count []int   // for each output pixel, the run of input pixels
	Weights      []int32 // of all runs, one after the other, with 22 bits after the point
}

// Taps returns what each of out pixels is made of when in pixels are resized.
func (s *RandomResizedCrop) Taps(in, out int) Taps {
	r := newResampler(s.Interpolation)
	if r.kernel.weight == nil {
		var t Taps
		for _, from := range nearestPixels(in, out) {
			t.First, t.Count, t.Weights = append(t.First, from), append(t.Count, 1), append(t.Weights, one)
		}
		return t
	}
	r.across.set(in, out, span{0, float64(in)}, r.kernel)
	t := Taps{Weights: r.across.weights}
	for _, run := range r.across.runs {
		t.First, t.Count = append(t.First, run.first), append(t.Count, run.n)
	}
	return t
}

// ColorTurn is one of the changes that color_jitter makes to an image.
type ColorTurn struct {
	Kind   int     // 0 brightness, 1 contrast, 2 saturation, 3 hue
	Factor float32 // of the first three
	Turn   byte    // of the hue, in 1/255 of the wheel
}

// Draw returns what is done to an image, in order: at most four changes.
func (s *ColorJitter) Draw(r *rand.Rand) []ColorTurn {
	limits := s.limits()
	if limits.off() {
		return nil
	}
	change := limits.draw(r)
	var turns []ColorTurn
	for _, a := range change.order {
		if !limits[a].off {
			turns = append(turns, ColorTurn{Kind: int(a), Factor: float32(change.factor[a]), Turn: byte(int(change.factor[a] * 255))})
		}
	}
	return turns
}
