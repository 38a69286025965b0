package stages

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// GaussianBlur holds the attributes of `augment "gaussian_blur"`.
type GaussianBlur struct {
	Kernel []int     `hcl:"kernel" min:"1" max:"1023" doc:"Pixels of both edges of the kernel, or \x60[width, height]\x60: odd numbers."`
	Sigma  []float64 `hcl:"sigma,optional" moremin:"0" doc:"The kernel's standard deviation in pixels, or what it is drawn from, \x60[least, greatest]\x60."`
}

func gaussianBlurOperator() Operator {
	return Operator{
		Block:   Augment,
		Type:    "gaussian_blur",
		Summary: "Blurs an image with a Gaussian kernel of random width.",
		Doc: `As torchvision's ` + "`GaussianBlur`" + ` on a PIL image: sigma is drawn uniformly, and beyond its edges the image is mirrored. The result of a given sigma is
torchvision's (0.14), but for one value in 100,000 or so that is one level off: pipectl sums up along rows and columns, one after the other. The
draws have the same distribution, but come from pipectl's own random numbers. An image smaller than half of the kernel, which torchvision refuses, is
mirrored again and again.`,
		New: func() any { return &GaussianBlur{Sigma: []float64{0.1, 2}} },
	}
}

// Validate reports kernels without a middle, and limits that aren't.
func (s *GaussianBlur) Validate() []Problem {
	var problems []Problem
	report := func(summary, format string, args ...any) {
		problems = append(problems, Problem{Attribute: "kernel", Summary: summary, Detail: fmt.Sprintf(format, args...)})
	}
	if n := len(s.Kernel); n != 1 && n != 2 {
		report("Not a size", "A kernel's size is one odd number of pixels, or a list of two, [width, height]. This list has %d.", n)
	}
	for _, n := range s.Kernel {
		if n%2 == 0 {
			report("Even number", "A kernel has a pixel in its middle, so its size is odd: write %d or %d.", max(n-1, 1), n+1)
			break
		}
	}
	if len(s.Sigma) != 1 {
		problems = append(problems, rangeProblems("sigma", s.Sigma)...)
	}
	return problems
}

// Output returns in.
func (s *GaussianBlur) Output(in Type) (Type, error) { return in, accept(in, Image) }

// New makes an instance for one worker.
func (s *GaussianBlur) New() (Stage, error) { return &blurrer{spec: *s}, nil }

// draw returns the sigma of one item.
func (s *GaussianBlur) draw(r *rand.Rand) float64 {
	return uniform(r, s.Sigma[0], s.Sigma[len(s.Sigma)-1])
}

type blurrer struct {
	spec         GaussianBlur
	across, down []float32 // the weights from the kernel's middle outwards
	padded       []float32 // a row with its mirrored ends
	rows         []float32 // the image blurred along its rows, with its mirrored ends above and below
	blurred      []float32 // a row
}

func (b *blurrer) Process(c *Call, in, out *Element) error {
	src := pixelsOf(in)
	out.Image(src.h, src.w)
	b.blur(pixelsOf(out), src, b.spec.draw(c.Rand))
	return nil
}

// blur fills dst with src, blurred.
func (b *blurrer) blur(dst, src pixels, sigma float64) {
	b.across = gaussian(b.across, b.spec.Kernel[0], sigma)
	b.down = gaussian(b.down, b.spec.Kernel[len(b.spec.Kernel)-1], sigma)
	beside, above, n := len(b.across)-1, len(b.down)-1, 3*src.w
	b.padded = floats(b.padded, n+6*beside)
	b.rows = floats(b.rows, (src.h+2*above)*n)
	b.blurred = floats(b.blurred, n)
	row := func(y int) []float32 { return b.rows[(above+y)*n:][:n] }
	for y := range src.h {
		from := src.row(y)
		for i, v := range from {
			b.padded[3*beside+i] = float32(v)
		}
		for x := 1; x <= beside; x++ {
			left, right := b.padded[3*(beside-x):][:3], b.padded[3*(beside+src.w-1+x):][:3]
			for k := range 3 {
				left[k] = float32(from[3*mirrored(-x, src.w)+k])
				right[k] = float32(from[3*mirrored(src.w-1+x, src.w)+k])
			}
		}
		convolve(row(y), b.padded, b.across, 3)
	}
	for y := 1; y <= above; y++ {
		copy(row(-y), row(mirrored(-y, src.h)))
		copy(row(src.h-1+y), row(mirrored(src.h-1+y, src.h)))
	}
	for y := range src.h {
		convolve(b.blurred, b.rows[y*n:], b.down, n)
		to := dst.row(y)
		for i, v := range b.blurred {
			to[i] = nearestByte(v)
		}
	}
}

// nearestByte rounds a number from 0 to 255, halves to the even neighbour.
func nearestByte(v float32) byte {
	const integers = 1 << 23 // from here on, float32s are integers
	return byte(math.Float32bits(v + integers))
}

// floats returns n float32s, in the memory of f if there is enough.
func floats(f []float32, n int) []float32 {
	if cap(f) < n {
		return make([]float32, n)
	}
	return f[:n]
}

// gaussian returns the weights of a kernel of size pixels from its middle outwards, in the memory of w if there is enough.
// They are 1 together.
func gaussian(w []float32, size int, sigma float64) []float32 {
	w = floats(w, size/2+1)
	sum := 0.0
	for i := range w {
		deviations := float64(i) / sigma
		v := math.Exp(-0.5 * deviations * deviations)
		w[i] = float32(v)
		sum += v
		if i > 0 {
			sum += v
		}
	}
	for i := range w {
		w[i] = float32(float64(w[i]) / sum)
	}
	return w
}

// mirrored returns which of n pixels in a row is in place i where the row is mirrored at its ends, which aren't repeated.
func mirrored(i, n int) int {
	if n == 1 {
		return 0
	}
	period := 2 * (n - 1)
	i = (i%period + period) % period
	return min(i, period-i)
}

// convolve fills dst with the sums of the values of src that lie around each, step apart, times the weights of a symmetric
// kernel, given from its middle outwards. src begins as many steps before dst as the kernel reaches.
func convolve(dst, src, weights []float32, step int) {
	middle := (len(weights) - 1) * step
	i := 0
	for ; i+4 <= len(dst); i += 4 {
		at := middle + i
		v := src[at:][:4]
		w := weights[0]
		a, b, c, d := product(w, v[0]), product(w, v[1]), product(w, v[2]), product(w, v[3])
		before, after := at, at
		for _, w := range weights[1:] {
			before -= step
			after += step
			p, q := src[before:][:4], src[after:][:4]
			a += product(w, p[0]+q[0])
			b += product(w, p[1]+q[1])
			c += product(w, p[2]+q[2])
			d += product(w, p[3]+q[3])
		}
		to := dst[i:][:4]
		to[0], to[1], to[2], to[3] = a, b, c, d
	}
	for ; i < len(dst); i++ {
		at := middle + i
		a := product(weights[0], src[at])
		for j, w := range weights[1:] {
			a += product(w, src[at-(j+1)*step]+src[at+(j+1)*step])
		}
		dst[i] = a
	}
}
