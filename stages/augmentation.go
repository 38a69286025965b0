package stages

import (
	"math"
	"math/rand/v2"
)

// augmentation is one of the changes that trivial_augment and rand_augment draw from.
type augmentation int

// They are in torchvision's order.
const (
	keepImage augmentation = iota
	shearX
	shearY
	translateX
	translateY
	rotate
	changeBrightness
	changeColour
	changeContrast
	changeSharpness
	posterize
	solarize
	autocontrast
	equalize
	augmentations // how many there are
)

// signed reports whether the magnitude can be negative.
func (a augmentation) signed() bool { return a >= shearX && a <= changeSharpness }

// graded reports whether there is a magnitude.
func (a augmentation) graded() bool { return a.signed() || a == posterize || a == solarize }

// magnitudes says how far the augmentations go, each from 0 to what stands here.
type magnitudes struct {
	shear                  float64 // pixels a pixel
	translateX, translateY float64 // pixels
	rotate                 float64 // degrees
	colour                 float64 // brightness, colour, contrast, sharpness: to both sides of 1
	bits                   int     // that posterize takes away
}

// of returns the magnitude of an augmentation that stands in bin, counted from 0, of a number of bins, in float32 as torchvision
// does.
func (m *magnitudes) of(a augmentation, bin, bins int) float64 {
	switch a {
	case shearX, shearY:
		return linspace(0, m.shear, bin, bins)
	case translateX:
		return linspace(0, m.translateX, bin, bins)
	case translateY:
		return linspace(0, m.translateY, bin, bins)
	case rotate:
		return linspace(0, m.rotate, bin, bins)
	case changeBrightness, changeColour, changeContrast, changeSharpness:
		return linspace(0, m.colour, bin, bins)
	case posterize:
		step := float32(bins-1) / float32(m.bits)
		return 8 - math.RoundToEven(float64(float32(bin)/step))
	case solarize:
		return linspace(255, 0, bin, bins)
	}
	return 0
}

// linspace returns the i-th of n numbers from start to end, equally far apart, as torch.linspace rounds them where it works on one at
// a time. Several at a time, as the CPU allows, can differ in their last bit.
func linspace(start, end float64, i, n int) float64 {
	from, to := float32(start), float32(end)
	step := (to - from) / float32(n-1)
	if i < n/2 {
		return float64(from + product(step, float32(i)))
	}
	return float64(to - product(step, float32(n-1-i)))
}

// augmenter does augmentations as torchvision does them on PIL images. It serves one goroutine at a time.
type augmenter struct {
	kernels       kernels
	interpolation string
	fill          [3]byte
	steps         []augmentationStep // of one item
	between       Element            // what the next step works on
	tables        channelTables
	histograms    histograms
	sharpener     sharpener
}

type augmentationStep struct {
	augmentation augmentation
	magnitude    float64
}

// add draws an augmentation and the sign of its magnitude, whose place among bins comes from bin, and adds the step to those of
// the item.
func (a *augmenter) add(r *rand.Rand, m *magnitudes, bins int, bin func() int) {
	s := augmentationStep{augmentation: augmentation(r.IntN(int(augmentations)))}
	if s.augmentation.graded() {
		s.magnitude = m.of(s.augmentation, bin(), bins)
	}
	if s.augmentation.signed() && r.IntN(2) == 1 {
		s.magnitude = -s.magnitude
	}
	if s.augmentation != keepImage {
		a.steps = append(a.steps, s)
	}
}

// run leaves in out what the item's steps make of in.
func (a *augmenter) run(in, out *Element) {
	defer func() { a.steps = a.steps[:0] }()
	if len(a.steps) == 0 {
		out.Pass(in)
		return
	}
	h, w := in.Type.Shape[0], in.Type.Shape[1]
	src := in
	for i, s := range a.steps {
		dst := out
		if (len(a.steps)-i)%2 == 0 {
			dst = &a.between
		}
		dst.Image(h, w)
		a.apply(s, pixelsOf(dst), pixelsOf(src))
		src = dst
	}
}

// apply fills dst with src, changed. They are images of the same size, and not the same.
func (a *augmenter) apply(s augmentationStep, dst, src pixels) {
	factor := float32(1 + s.magnitude)
	switch s.augmentation {
	case shearX:
		a.warp(affine{1, s.magnitude, 0, 0, 1, 0}, dst, src)
	case shearY:
		a.warp(affine{1, 0, 0, s.magnitude, 1, 0}, dst, src)
	case translateX:
		a.warp(affine{1, 0, -math.Trunc(s.magnitude), 0, 1, 0}, dst, src)
	case translateY:
		a.warp(affine{1, 0, 0, 0, 1, -math.Trunc(s.magnitude)}, dst, src)
	case rotate:
		turned, _, _ := rotation(s.magnitude, src.h, src.w, nil, false)
		a.warp(turned, dst, src)
	case changeBrightness:
		a.kernels.mixGrey(dst.pix, src.pix, 0, factor)
	case changeColour:
		a.kernels.saturate(dst.pix, src.pix, factor)
	case changeContrast:
		a.kernels.mixGrey(dst.pix, src.pix, meanGrey(a.kernels, src.pix), factor)
	case changeSharpness:
		a.sharpener.apply(dst, src, factor)
	case posterize:
		a.tables.posterize(int(s.magnitude))
		a.tables.apply(dst.pix, src.pix)
	case solarize:
		a.tables.solarize(s.magnitude)
		a.tables.apply(dst.pix, src.pix)
	case autocontrast:
		a.histograms.count(src.pix)
		a.tables.autocontrast(&a.histograms)
		a.tables.apply(dst.pix, src.pix)
	case equalize:
		a.histograms.count(src.pix)
		a.tables.equalize(&a.histograms)
		a.tables.apply(dst.pix, src.pix)
	}
}

func (a *augmenter) warp(m affine, dst, src pixels) { m.warp(dst, src, a.interpolation, a.fill) }
