package stages

import (
	"math"
	"math/rand/v2"
)

// Mixing says how the samples of a batch are mixed with each other, as torchvision's MixUp and CutMix do (0.16). Its zero value
// leaves them as they are.
type Mixing struct {
	// Mixup is the α of the Beta(α, α) distribution that λ is drawn from, the share of its own that a sample keeps: λ of its values,
	// and 1 - λ of the other's. 0: not done. (Zhang et al., "mixup: Beyond Empirical Risk Minimization", 2017)
	Mixup float64
	// Cutmix is the same for a rectangle of 1 - λ of the sample's area that the other's takes the place of. 0: not done. (Yun et al.,
	// "CutMix: Regularization Strategy to Train Strong Classifiers with Localizable Features", 2019)
	Cutmix float64
}

// On reports whether samples are mixed. Where both ways are given, each batch is mixed in one of them, both as likely.
func (m Mixing) On() bool { return m.Mixup > 0 || m.Cutmix > 0 }

// Problems returns why batches of such samples can't be mixed.
func (m Mixing) Problems(sample Type) []Problem {
	var problems []Problem
	report := func(attribute, takes, advice string) {
		problems = append(problems, Problem{
			Attribute: attribute,
			Summary:   "Samples that can't be mixed",
			Detail:    attribute + " takes " + takes + " of one size, and the batch gets " + sample.String() + ". " + advice,
		})
	}
	image, tensor := sample.Kind == Image, sample.Kind == Tensor
	size := `Make all pictures the same size above it, such as with augment "random_resized_crop" or prepare "resize".`
	switch {
	case sample.Kind == Unknown:
	case (image || tensor) && !sample.Fixed() && m.Cutmix > 0:
		report("cutmix", "images or tensors", size)
	case tensor && !sample.Fixed() && m.Mixup > 0:
		report("mixup", "tensors", size)
	case !tensor && m.Mixup > 0:
		report("mixup", "tensors", `Make tensors of images above it, with prepare "normalize" or "to_float", and not on the device. Leave mixup out for anything else.`)
	case !tensor && !image && m.Cutmix > 0:
		report("cutmix", "images or tensors", "Leave it out.")
	}
	return problems
}

// Mixer mixes batches. It serves one goroutine at a time.
type Mixer struct {
	mixing Mixing
	last   Element // the sample that the first is mixed with
}

// NewMixer returns a mixer for batches of samples without problems.
func NewMixer(m Mixing) *Mixer { return &Mixer{mixing: m} }

// Mix mixes the samples of a batch, which has one at least, as r draws.
func (m *Mixer) Mix(b *Batch, r *rand.Rand) {
	cut := m.mixing.Mixup == 0
	if m.mixing.Mixup > 0 && m.mixing.Cutmix > 0 {
		cut = r.IntN(2) == 1
	}
	if cut {
		h, w := b.Sample.area()
		m.cutmix(b, drawCut(r, beta(r, m.mixing.Cutmix), h, w))
	} else {
		m.mixup(b, beta(r, m.mixing.Mixup))
	}
	b.Mixed = true
}

// area returns the height and width of an image or a tensor.
func (t Type) area() (h, w int) {
	if t.Kind == Tensor {
		return t.Shape[1], t.Shape[2]
	}
	return t.Shape[0], t.Shape[1]
}

// mixup leaves own of each sample.
func (m *Mixer) mixup(b *Batch, own float64) {
	n, share, rest := b.Sample.Len(), float32(own), float32(1-own)
	sample := func(i int) []float32 { return b.F32[i*n:][:n] }
	last := m.last.Tensor(1, 1, n) // as it was, for the first
	copy(last, sample(b.Len-1))
	for i := b.Len - 1; i >= 0; i-- {
		other, values := last, sample(i)
		if i > 0 {
			other = sample(b.Other(i))
		}
		for j, v := range other {
			values[j] = product(v, rest) + product(values[j], share)
		}
	}
	b.Own = share
}

// cutmix puts a part of the other in each sample's place.
func (m *Mixer) cutmix(b *Batch, part box) {
	h, w := b.Sample.area()
	if b.Sample.Kind == Tensor {
		last := m.last.Tensor(1, 1, b.Sample.Len())
		paste(b.F32, last, b.Len, b.Sample.Shape[0], h, w, 1, part)
	} else {
		last := m.last.Image(h, w)
		paste(b.U8, last, b.Len, 1, h, w, 3, part)
	}
	b.Own = float32(1 - float64(part.Height*part.Width)/float64(h*w))
}

// paste puts a part of the sample before it in each of n samples' place, which have a number of planes of h×w pixels. last is memory
// for a sample.
func paste[T byte | float32](samples, last []T, n, planes, h, w, pixel int, part box) {
	size := len(last)
	copy(last, samples[(n-1)*size:][:size])
	for i := n - 1; i >= 0; i-- {
		other, values := last, samples[i*size:][:size]
		if i > 0 {
			other = samples[(i-1)*size:][:size]
		}
		for y := range planes * part.Height {
			at := ((y/part.Height*h+part.Top+y%part.Height)*w + part.Left) * pixel
			copy(values[at:][:part.Width*pixel], other[at:])
		}
	}
}

// drawCut draws the part of samples of h×w that is exchanged, of 1 - own of their area but for what would lie outside.
func drawCut(r *rand.Rand, own float64, h, w int) box {
	x, y := r.IntN(w), r.IntN(h)
	half := 0.5 * math.Sqrt(1-own)
	halfW, halfH := int(half*float64(w)), int(half*float64(h))
	left, top := max(x-halfW, 0), max(y-halfH, 0)
	return box{Top: top, Left: left, Height: min(y+halfH, h) - top, Width: min(x+halfW, w) - left}
}

// beta draws from the Beta(α, α) distribution, as the share that one of two gamma-distributed numbers has in their sum. Their
// logarithms don't underflow where α is small.
func beta(r *rand.Rand, alpha float64) float64 {
	a, b := logGamma(r, alpha), logGamma(r, alpha)
	return 1 / (1 + math.Exp(b-a))
}

// logGamma draws the logarithm of a gamma-distributed number with scale 1 (Marsaglia and Tsang, "A Simple Method for Generating
// Gamma Variables", 2000).
func logGamma(r *rand.Rand, shape float64) float64 {
	d := shape + 1 - 1./3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + product(c, x)
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-r.Float64()) < product(0.5*x, x)+d-product(d, v)+product(d, math.Log(v)) {
			// That is for shape + 1; a uniform number to the power of 1/shape makes up for it.
			return math.Log(product(d, v)) + math.Log(1-r.Float64())/shape
		}
	}
}
