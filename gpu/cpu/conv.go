package cpu

import (
	"gonum.org/v1/gonum/blas"

	"github.com/pipectl/pipectl/gpu"
)

// window is the number of pixels in a pooling window.
const window = 4

// tile is the number of pooling windows that are convolved at a time, so that the data stays in the core's cache.
const tile = 16

// dead marks in argmax a window whose maximum ReLU has cut off: it passes no gradient on.
const dead = window

// block is what one worker needs to run one gpu.Conv on one sample after the other. Pictures are H×W×C: one pixel's
// channels lie together, so that a row of a 3×3 patch is one copy.
type block struct {
	gpu.Conv
	rows, columns int // of the output

	in     []float32 // H × W × In
	out    []float32 // rows × columns × Out
	argmax []uint8   // for each value of out, the pixel of its window that it came from, or dead
	dIn    []float32 // gradient of the loss by in; nil for the first block, which needs none
	dOut   []float32 // and by out

	// Of one tile, window by window, a pixel's patch or channels in a row:
	patches  []float32 // tile·window × Taps
	dPatches []float32
	pixels   []float32 // tile·window × Out: the convolution's output, or the loss's gradient by it
}

// newBlock makes the block for c. in is the output of the block before and dIn its gradient; both nil for the first.
func newBlock(c gpu.Conv, in, dIn []float32) *block {
	b := &block{Conv: c, in: in, dIn: dIn}
	b.rows, b.columns = c.Pooled()
	if in == nil {
		b.in = make([]float32, c.H*c.W*c.In)
	}
	out := b.rows * b.columns * c.Out
	b.out, b.argmax, b.dOut = make([]float32, out), make([]uint8, out), make([]float32, out)
	pixels := min(tile, b.rows*b.columns) * window
	b.patches = make([]float32, pixels*c.Taps())
	if dIn != nil {
		b.dPatches = make([]float32, len(b.patches))
	}
	b.pixels = make([]float32, pixels*c.Out)
	return b
}

// forward computes out and argmax from in.
func (b *block) forward(params []float32) {
	weights, bias := params[b.Weights:b.Bias], params[b.Bias:b.Bias+b.Out]
	k := b.Taps()
	for first, windows := range b.tiles {
		b.cut(first, windows)
		gemm(blas.NoTrans, blas.Trans, windows*window, b.Out, k, b.patches, k, weights, k, 0, b.pixels, b.Out)
		b.pool(first, windows, bias)
	}
}

// backward adds to grad, which is laid out as params, the gradient by the weights and the bias, and computes dIn from
// dOut, for the input of the last forward.
func (b *block) backward(params, grad []float32) {
	weights, dWeights, dBias := params[b.Weights:b.Bias], grad[b.Weights:b.Bias], grad[b.Bias:b.Bias+b.Out]
	k := b.Taps()
	clear(b.dIn)
	for first, windows := range b.tiles {
		pixels := windows * window
		b.unpool(first, windows, dBias)
		b.cut(first, windows)
		gemm(blas.Trans, blas.NoTrans, b.Out, k, pixels, b.pixels, b.Out, b.patches, k, 1, dWeights, k)
		if b.dIn != nil {
			gemm(blas.NoTrans, blas.NoTrans, pixels, k, b.Out, b.pixels, b.Out, weights, k, 0, b.dPatches, k)
			b.paste(first, windows)
		}
	}
}

// tiles yields the first window of each tile and the number of windows in it.
func (b *block) tiles(yield func(first, windows int) bool) {
	for first := 0; first < b.rows*b.columns; first += tile {
		if !yield(first, min(tile, b.rows*b.columns-first)) {
			return
		}
	}
}

// cut copies into patches what the convolution sees at the pixels of a tile: zeros outside the picture.
func (b *block) cut(first, windows int) {
	row := 3 * b.In
	for i := range windows * window {
		patch := b.patches[i*b.Taps():][:b.Taps()]
		for y := range 3 {
			in, left, right := b.patchRow(first, i, y)
			to := patch[y*row:][:row]
			clear(to[:left])
			copy(to[left:right], b.in[in:])
			clear(to[right:])
		}
	}
}

// paste adds dPatches to the pixels of dIn that cut took patches from.
func (b *block) paste(first, windows int) {
	row := 3 * b.In
	for i := range windows * window {
		patch := b.dPatches[i*b.Taps():][:b.Taps()]
		for y := range 3 {
			in, left, right := b.patchRow(first, i, y)
			add(1, patch[y*row:][left:right], b.dIn[in:])
		}
	}
}

// patchRow says where row y of the patch of a tile's pixel i lies in the input: its values left … right-1 begin at in,
// the others are outside the picture.
func (b *block) patchRow(first, i, y int) (in, left, right int) {
	win, pixel := first+i/window, i%window
	inY := (2*(win/b.columns)+pixel/2)*b.Stride + y - 1
	inX := (2*(win%b.columns)+pixel%2)*b.Stride - 1
	if inY < 0 || inY >= b.H {
		return 0, 0, 0
	}
	from, to := max(inX, 0), min(inX+3, b.W)
	return (inY*b.W + from) * b.In, (from - inX) * b.In, (to - inX) * b.In
}

// pool computes a tile's windows of out and argmax: bias, ReLU and maximum. Bias and ReLU keep the order, so they can
// come after the maximum.
func (b *block) pool(first, windows int, bias []float32) {
	n := b.Out
	for i := range windows {
		p := b.pixels[i*window*n:][:window*n]
		p0, p1, p2, p3 := p[:n], p[n:][:n], p[2*n:][:n], p[3*n:][:n]
		out, argmax := b.out[(first+i)*n:][:n], b.argmax[(first+i)*n:][:n]
		for c, shift := range bias[:n] {
			v, arg := p0[c], uint8(0)
			if p1[c] > v {
				v, arg = p1[c], 1
			}
			if p2[c] > v {
				v, arg = p2[c], 2
			}
			if p3[c] > v {
				v, arg = p3[c], 3
			}
			v += shift
			if v <= 0 {
				v, arg = 0, dead
			}
			out[c], argmax[c] = v, arg
		}
	}
}

// unpool sends a tile's gradients of dOut back to the pixels they came from and adds them to dBias.
func (b *block) unpool(first, windows int, dBias []float32) {
	n := b.Out
	clear(b.pixels[:windows*window*n])
	for i := range windows {
		pixels := b.pixels[i*window*n:][:window*n]
		dOut, argmax := b.dOut[(first+i)*n:][:n], b.argmax[(first+i)*n:][:n]
		for c, g := range dOut {
			if arg := int(argmax[c]); arg != dead {
				pixels[arg*n+c] = g
				dBias[c] += g
			}
		}
	}
}
