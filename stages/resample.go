package stages

import (
	"encoding/binary"
	"iter"
	"math"
)

// resampler resizes RGB images of 8 bits a channel as Pillow's Image.resize does, bit for bit: each output pixel is a
// weighted mean of the input pixels around its centre, over an area that grows with the reduction (antialiasing), taken
// along the rows first and along the columns then, each time rounded to 8 bits. Weights are fixed-point numbers. (Pillow
// 9.4, Image.resize; the kernels are those of Keys, "Cubic Convolution Interpolation for Digital Image Processing",
// 1981, with a = -0.5, and the triangle.) It serves one goroutine at a time.
type resampler struct {
	kernel         kernel
	kernels        kernels
	across, down   taps
	narrow         []byte // what the pass along the rows makes
	sourceOfColumn []int  // for nearest
}

// kernel gives the weight of an input pixel at a distance from the output pixel's centre, in output pixels where the
// image shrinks and in input pixels where it grows. Outside ±support it is 0. Its zero value takes the nearest pixel.
type kernel struct {
	support float64
	weight  func(distance float64) float64
}

// newResampler returns a resampler for a value of the attribute interpolation.
func newResampler(interpolation string) *resampler {
	r := &resampler{kernels: fastKernels()}
	switch interpolation {
	case "bilinear":
		r.kernel = kernel{1, triangle}
	case "bicubic":
		r.kernel = kernel{2, cubic}
	}
	return r
}

func triangle(x float64) float64 { return max(1-math.Abs(x), 0) }

func cubic(x float64) float64 {
	switch x = math.Abs(x); {
	case x < 1:
		return product(product(product(1.5, x)-2.5, x), x) + 1
	case x < 2:
		return -0.5 * (product(product(x-5, x)+8, x) - 4)
	}
	return 0
}

// product returns a·b, rounded. A bare product may be fused with an addition, on some CPUs only, and results must be the
// same on all of them.
func product[F float32 | float64](a, b F) F { return F(a * b) }

// resize fills dst with src, resized.
func (r *resampler) resize(dst, src pixels) {
	if r.kernel.weight == nil {
		r.nearest(dst, src)
		return
	}
	r.resizePart(dst, src, span{0, float64(src.h)}, span{0, float64(src.w)})
}

// resizePart fills dst with what lies in the rows of down and the columns of across of src, resized. Its kernel isn't that of the
// nearest pixel. What of src lies outside them, which is less than a pixel on each side, takes part in the means at the edges.
func (r *resampler) resizePart(dst, src pixels, down, across span) {
	if across != (span{0, float64(dst.w)}) {
		r.across.set(src.w, dst.w, across, r.kernel)
		if down == (span{0, float64(dst.h)}) {
			r.kernels.alongRows(&r.across, dst, src)
			return
		}
		if n := 3 * src.h * dst.w; cap(r.narrow) < n {
			r.narrow = make([]byte, n)
		}
		narrow := pixels{r.narrow[:3*src.h*dst.w], 3 * dst.w, src.h, dst.w}
		r.kernels.alongRows(&r.across, narrow, src)
		src = narrow
	}
	r.down.set(src.h, dst.h, down, r.kernel)
	r.kernels.alongColumns(&r.down, dst, src)
}

// span is a part of an axis, in pixels. It need not begin or end between two of them.
type span struct{ first, length float64 }

// nearest fills dst with the pixels of src that are nearest to the centres of its own.
func (r *resampler) nearest(dst, src pixels) {
	r.sourceOfColumn = r.sourceOfColumn[:0]
	for _, x := range nearestPixels(src.w, dst.w) {
		r.sourceOfColumn = append(r.sourceOfColumn, 3*x)
	}
	for y, fromY := range nearestPixels(src.h, dst.h) {
		to, from := dst.row(y), src.row(fromY)
		for x, s := range r.sourceOfColumn {
			copy(to[3*x:3*x+3], from[s:s+3])
		}
	}
}

// nearestPixels yields for each of out pixels the one of in that is nearest to its centre. Positions are summed up, not
// multiplied, because Pillow does so, and rounding shows where a centre falls between two pixels.
func nearestPixels(in, out int) iter.Seq2[int, int] {
	return func(yield func(to, from int) bool) {
		step := float64(in) / float64(out)
		for i, at := 0, step/2; i < out; i, at = i+1, at+step {
			if !yield(i, min(int(at), in-1)) {
				return
			}
		}
	}
}

// taps says for each pixel of an output axis which run of the input axis it is made of, and with which weights.
type taps struct {
	in, out int
	of      span // of the input axis
	runs    []run
	most    int       // the length of the longest run
	weights []int32   // of all runs, one after the other, in units of 1/one
	exact   []float64 // those of one run
	packed  []byte    // the weights as kernels arrange them
}

type run struct{ first, n int }

// Weights have as many bits after the point as leave an int32 room for 8 bits of a pixel and 2 of overshoot.
const (
	precision = 32 - 8 - 2
	one       = 1 << precision
	half      = one / 2
)

// set makes t the taps for an axis of which a part goes to out pixels, unless it is already. in is the number of the axis's pixels.
func (t *taps) set(in, out int, of span, k kernel) {
	if t.in == in && t.out == out && t.of == of {
		return
	}
	t.in, t.out, t.of = in, out, of
	t.runs, t.weights, t.most = t.runs[:0], t.weights[:0], 0
	scale := of.length / float64(out)
	stretch := max(scale, 1)
	support := product(k.support, stretch)
	for i := range out {
		centre := of.first + product(float64(i)+0.5, scale)
		first := max(int(centre-support+0.5), 0)
		end := min(int(centre+support+0.5), in)
		t.exact = t.exact[:0]
		sum := 0.0
		for x := first; x < end; x++ {
			w := k.weight(product(float64(x)-centre+0.5, 1/stretch))
			t.exact = append(t.exact, w)
			sum += w
		}
		for _, w := range t.exact {
			t.weights = append(t.weights, int32(math.Round(w/sum*one)))
		}
		t.runs = append(t.runs, run{first, end - first})
		t.most = max(t.most, end-first)
	}
}

// room returns n bytes for the weights as kernels arrange them.
func (t *taps) room(n int) []byte {
	if cap(t.packed) < n {
		t.packed = make([]byte, n)
	}
	return t.packed[:n]
}

func (portable) alongRows(t *taps, dst, src pixels) {
	for y := range src.h {
		to, from, weights := dst.row(y), src.row(y), t.weights
		for x, run := range t.runs {
			px := from[3*run.first:][:3*run.n]
			r, g, b := int32(half), int32(half), int32(half)
			for j, w := range weights[:run.n] {
				p := px[3*j:][:3]
				r += int32(p[0]) * w
				g += int32(p[1]) * w
				b += int32(p[2]) * w
			}
			weights = weights[run.n:]
			p := to[3*x:][:3]
			p[0], p[1], p[2] = round8(r), round8(g), round8(b)
		}
	}
}

func (portable) alongColumns(t *taps, dst, src pixels) {
	weights := t.weights
	for y, run := range t.runs {
		w, to := weights[:run.n], dst.row(y)
		weights = weights[run.n:]
		rows := src.pix[run.first*src.stride:]
		x := 0
		for ; x+8 <= len(to); x += 8 {
			binary.LittleEndian.PutUint64(to[x:], weigh8(rows[x:], src.stride, w))
		}
		for ; x < len(to); x++ {
			sum := int32(half)
			for j, w := range w {
				sum += int32(rows[j*src.stride+x]) * w
			}
			to[x] = round8(sum)
		}
	}
}

// weigh8 returns the weighted means of 8 neighbouring columns of bytes. It sums them in pairs: the products of a byte b0
// and, 32 bits higher, a byte b4 with a weight are the product of (b4<<32 + b0) with it.
func weigh8(rows []byte, stride int, weights []int32) uint64 {
	const pair = 0xff<<32 | 0xff
	const halves = half<<32 | half
	s0, s1, s2, s3 := int64(halves), int64(halves), int64(halves), int64(halves)
	for _, w := range weights {
		b := binary.LittleEndian.Uint64(rows)
		w := int64(w)
		s0 += int64(b&pair) * w
		s1 += int64(b>>8&pair) * w
		s2 += int64(b>>16&pair) * w
		s3 += int64(b>>24&pair) * w
		rows = rows[min(stride, len(rows)):]
	}
	return round8x2(s0) | round8x2(s1)<<8 | round8x2(s2)<<16 | round8x2(s3)<<24
}

// round8x2 rounds both halves of a sum of pairs.
func round8x2(s int64) uint64 {
	low := int32(s)
	high := int32((s - int64(low)) >> 32) // a negative low half has borrowed from it
	return uint64(round8(high))<<32 | uint64(round8(low))
}

// round8 returns the whole part of a sum that half was added to, as a byte.
func round8(sum int32) byte { return byte(min(max(sum>>precision, 0), 255)) }
