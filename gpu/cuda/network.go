//go:build cuda

package cuda

import (
	"fmt"
	"math"

	"gorgonia.org/cu"

	"github.com/pipectl/pipectl/gpu"
)

// network is a gpu.Net on the device. Pictures are H×W×C, as on the CPU. The kernels take four values at a time, so channels
// and classes are padded to multiples of four. What is added has weights of 0, so it is 0 itself, gets gradients of 0, and
// stays so.
type network struct {
	samples  int // of a batch at most
	channels int // of a sample, not padded
	blocks   []block
	linear   layer
	features int // of the linear layer
	classes  int // not padded
	stride   int // padded

	in        cu.DevicePtr // samples × H × W × channels
	partial   cu.DevicePtr // parts × samples × stride: the linear layer's sums
	parts     int
	dLogits   cu.DevicePtr // samples × stride
	losses    cu.DevicePtr // samples
	loss      cu.DevicePtr // their mean
	predicted cu.DevicePtr // samples, int32

	channelsLast, linearForward, linearBackwardData, linearBackwardWeights *kernel
	softmaxCrossEntropy, meanLoss, classify, sgdMomentum                   *kernel
}

// block is a gpu.Conv on the device, its channels padded.
type block struct {
	gpu.Conv
	layer
	rows, columns int          // of the output
	in            cu.DevicePtr // samples × H × W × In
	out           cu.DevicePtr // samples × rows × columns × Out
	argmax        cu.DevicePtr // uint8, as out
	dOut          cu.DevicePtr // as out

	forward, backwardData, backwardWeights *kernel
}

// layer is what the update of one layer works on: its weights, followed by its bias.
type layer struct {
	size      int // of the parameters
	bias      int // where it begins
	params    cu.DevicePtr
	velocity  cu.DevicePtr
	gradients cu.DevicePtr // the gradient in parts, of size each, to be added up
	span      int          // what a part is summed over at most: windows of pooling
}

// The tiles of a convolution's matrix product are tileM × 64, or × 32 where there are no more columns; those of the linear
// layer's are tileM × linearTile.
const tileM, linearTile = 128, 32

func tileN(columns int) int {
	if columns <= 32 {
		return 32
	}
	return 64
}

// tiles returns the number of a product's tiles.
func tiles(m, n, tileN int) int { return ceilDiv(m, tileM) * ceilDiv(n, tileN) }

// wantedBlocks is how many blocks of threads a product is split into that has fewer tiles. A large GPU runs some 400 at a time,
// so it is idle for little of the last of its turns. It is the same on all GPUs, so that the sums' rounding is.
const wantedBlocks = 1024

// span returns how much of a sum over n a part gets, a multiple of unit and not less than least.
func span(n, tiles, unit, least int) int {
	return ceilDiv(max(ceilDiv(n, ceilDiv(wantedBlocks, tiles)), least), unit) * unit
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// padded returns n rounded up to a multiple of four.
func padded(n int) int { return (n + 3) &^ 3 }

// arena gives out a stretch of memory piece by piece.
type arena struct {
	samples   int // of a batch at most
	next      cu.DevicePtr
	taken     map[cu.DevicePtr]int // the pieces' bytes
	perSample int                  // those that each sample adds
}

// take returns a piece of n bytes, aligned for any use.
func (a *arena) take(n int) cu.DevicePtr {
	const alignment = 256
	p := a.next
	if a.taken == nil {
		a.taken = map[cu.DevicePtr]int{}
	}
	a.taken[p] = n
	a.next += cu.DevicePtr(ceilDiv(n, alignment) * alignment)
	return p
}

// each returns a piece of n bytes for each sample.
func (a *arena) each(n int) cu.DevicePtr {
	a.perSample += n
	return a.take(n * a.samples)
}

// layer lays out a layer of outputs × inputs weights and its biases, with gradients in parts.
func (a *arena) layer(outputs, inputs, parts int) layer {
	l := layer{size: outputs * (inputs + 1), bias: outputs * inputs}
	l.params, l.velocity, l.gradients = a.take(4*l.size), a.take(4*l.size), a.take(4*l.size*parts)
	return l
}

// layOut returns the network for batches of a.samples, with its memory taken from a, but without its kernels.
func layOut(net *gpu.Net, a *arena) *network {
	n := &network{samples: a.samples, channels: net.Blocks[0].In, classes: net.Classes, stride: padded(net.Classes)}
	for i, conv := range net.Blocks {
		b := block{Conv: conv}
		b.In, b.Out = padded(conv.In), padded(conv.Out)
		b.rows, b.columns = conv.Pooled()
		windows := a.samples * b.rows * b.columns
		part := span(windows, tiles(b.Taps(), b.Out, tileN(b.Out)), 2, 64)
		b.layer = a.layer(b.Out, b.Taps(), ceilDiv(windows, part))
		b.span = part
		if i == 0 {
			b.in = a.each(4 * b.H * b.W * b.In)
			n.in = b.in
		} else {
			b.in = n.blocks[i-1].out
		}
		out := b.rows * b.columns * b.Out
		b.out, b.argmax, b.dOut = a.each(4*out), a.each(out), a.each(4*out)
		n.blocks = append(n.blocks, b)
		n.features = out
	}
	n.linear = a.layer(n.stride, n.features, 1)
	n.linear.span = span(n.features, tiles(a.samples, n.stride, linearTile), 8, 256)
	n.parts = ceilDiv(n.features, n.linear.span)
	n.partial, n.dLogits = a.each(4*n.parts*n.stride), a.each(4*n.stride)
	n.losses, n.predicted, n.loss = a.each(4), a.each(4), a.take(4)
	return n
}

// fits returns an error if the network has more of something than the kernels, whose integers have 32 bits, can count.
func (n *network) fits() error {
	const most = math.MaxInt32 - 4*256 // where the last block of threads still has numbers for all
	for _, b := range n.blocks {
		if max(n.samples*b.H*b.W, b.H*b.W*b.In) > most {
			return fmt.Errorf("batches of %d pictures of %d×%d with %d channels are more than the GPU's kernels can count: make the batches or the pictures smaller, or lower width",
				n.samples, b.H, b.W, b.In)
		}
	}
	for _, l := range n.layers() {
		if l.size > most {
			return fmt.Errorf("a layer of %d parameters is more than the GPU's kernels can count: lower width, depth or classes, or make the pictures smaller", l.size)
		}
	}
	return nil
}

// find looks the kernels up; those of the convolutions are the ones for a precision. Called on the main thread.
func (n *network) find(d *Device, precision string) error {
	var err error
	kernel := func(to **kernel, name string) {
		if err == nil {
			*to, err = d.kernel(name)
		}
	}
	kind := ""
	if precision == "tf32" {
		kind = "tf32_"
	}
	for i := range n.blocks {
		b := &n.blocks[i]
		kernel(&b.forward, fmt.Sprint("conv_forward_", kind, tileN(b.Out)))
		kernel(&b.backwardData, fmt.Sprint("conv_backward_data_", kind, tileN(b.In)))
		kernel(&b.backwardWeights, fmt.Sprint("conv_backward_weights_", kind, tileN(b.Out)))
	}
	kernel(&n.channelsLast, "channels_last")
	kernel(&n.linearForward, "linear_forward")
	kernel(&n.linearBackwardData, "linear_backward_data")
	kernel(&n.linearBackwardWeights, "linear_backward_weights")
	kernel(&n.softmaxCrossEntropy, "softmax_cross_entropy")
	kernel(&n.meanLoss, "mean_loss")
	kernel(&n.classify, "classify")
	kernel(&n.sgdMomentum, "sgd_momentum")
	return err
}

// pass is some work on one batch, of the network or of a stage, given to a stream kernel by kernel until one fails to launch.
type pass struct {
	*network
	d       *Device
	stream  cu.Stream
	samples int // in the batch
	err     error
}

// launch starts a kernel on blocks × parts blocks of threads.
func (p *pass) launch(k *kernel, blocks, parts, threads int, arguments ...any) {
	if p.err == nil {
		p.err = k.launch(p.stream, [3]int{blocks, parts, 1}, [3]int{threads, 1, 1}, 0, arguments...)
	}
}

// product starts a kernel that computes a product of m×n, in parts.
func (p *pass) product(k *kernel, m, n, tileN, parts int, arguments ...any) {
	p.launch(k, tiles(m, n, tileN), parts, 2*tileN, arguments...)
}

// forward computes the logits, in parts, of a batch of C×H×W tensors.
func (p *pass) forward(tensors cu.DevicePtr) {
	first := &p.blocks[0]
	p.launch(p.channelsLast, p.samples*first.In/4*ceilDiv(first.H*first.W, 256), 1, 256, p.channels, first.H*first.W, first.In, tensors, p.in)
	for i := range p.blocks {
		b := &p.blocks[i]
		p.product(b.forward, 4*p.samples*b.rows*b.columns, b.Out, tileN(b.Out), 1,
			p.samples, b.H, b.W, b.In, b.Out, b.Stride, b.rows, b.columns, b.in, b.params, b.params+floats(b.bias), b.out, b.argmax)
	}
	p.product(p.linearForward, p.samples, p.stride, linearTile, p.parts,
		p.samples, p.features, p.stride, p.linear.span, p.last().out, p.linear.params, p.partial)
}

// learn computes the loss and all gradients, after forward. own is the weight of each sample's own label, less than 1 where it is mixed
// with the sample before it.
func (p *pass) learn(labels cu.DevicePtr, own float32) {
	l, last := &p.linear, p.last()
	p.launch(p.softmaxCrossEntropy, p.samples, 1, 128, p.classes, p.stride, p.parts, p.partial, l.params+floats(l.bias), labels, own, p.losses, p.dLogits)
	p.launch(p.meanLoss, 1, 1, 128, p.samples, p.losses, p.loss)
	p.product(p.linearBackwardWeights, p.features, p.stride, linearTile, 1, p.samples, p.features, p.stride, last.out, p.dLogits, l.gradients)
	p.product(p.linearBackwardData, p.features, p.samples, linearTile, 1, p.samples, p.features, p.stride, p.dLogits, l.params, last.dOut)
	for i := len(p.blocks) - 1; i >= 0; i-- {
		b := &p.blocks[i]
		p.product(b.backwardWeights, b.Taps(), b.Out, tileN(b.Out), ceilDiv(p.samples*b.rows*b.columns, b.span),
			p.samples, b.H, b.W, b.In, b.Out, b.Stride, b.rows, b.columns, b.span, b.in, b.dOut, b.argmax, b.gradients)
		if i > 0 { // whose stride is 1
			p.product(b.backwardData, p.samples*b.H*b.W, b.In, tileN(b.In), 1,
				p.samples, b.H, b.W, b.In, b.Out, b.rows, b.columns, b.dOut, b.argmax, b.params, p.blocks[i-1].dOut)
		}
	}
}

// update changes the parameters by the gradients, after learn.
func (p *pass) update(rate, momentum float32) {
	update := func(l *layer, parts int) {
		p.launch(p.sgdMomentum, ceilDiv(l.size/4, 256), 1, 256, l.size, parts, rate, momentum, p.loss, l.gradients, l.velocity, l.params)
	}
	for i := range p.blocks {
		b := &p.blocks[i]
		update(&b.layer, ceilDiv(p.samples*b.rows*b.columns, b.span))
	}
	update(&p.linear, 1)
}

// predict stores the likeliest classes, after forward.
func (p *pass) predict() {
	p.launch(p.classify, p.samples, 1, 128, p.classes, p.stride, p.parts, p.partial, p.linear.params+floats(p.linear.bias), p.predicted)
}

// last returns the last block.
func (n *network) last() *block { return &n.blocks[len(n.blocks)-1] }

// runs calls do for each stretch of a layer's parameters that lies together both in a gpu.Net's, from at on, and in the padded
// layer's.
func (n *network) runs(net *gpu.Net, do func(l *layer, at, padded, count int)) {
	for i := range n.blocks {
		b, conv := &n.blocks[i], net.Blocks[i]
		for tap := range 9 * conv.Out {
			do(&b.layer, conv.Weights+tap*conv.In, tap*b.In, conv.In)
		}
		do(&b.layer, conv.Bias, b.bias, conv.Out)
	}
	channels, width := net.Blocks[len(net.Blocks)-1].Out, n.last().Out
	for i := range net.Classes * net.Features / channels {
		do(&n.linear, net.Weights+i*channels, i*width, channels)
	}
	do(&n.linear, net.Bias, n.linear.bias, net.Classes)
}

// layers returns all layers.
func (n *network) layers() []*layer {
	var all []*layer
	for i := range n.blocks {
		all = append(all, &n.blocks[i].layer)
	}
	return append(all, &n.linear)
}

// floats returns the bytes of n float32.
func floats(n int) cu.DevicePtr { return cu.DevicePtr(4 * n) }
