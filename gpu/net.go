package gpu

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/pipectl/pipectl/stages"
)

// Net is the shape of a CNN's network. Its parameters lie in one slice: for each block, the convolution's weights
// (Out × 3 × 3 × In, the input's channels innermost) and bias (Out); then the linear layer's weights (Classes ×
// Features) and bias (Classes). Features are the last block's output, H × W × Out.
type Net struct {
	Blocks   []Conv
	Features int // inputs of the linear layer
	Classes  int
	Weights  int // where the linear layer's weights begin, and the blocks' parameters end
	Bias     int // where the linear layer's bias begins
	Params   int // parameters in all
}

// Conv is a 3×3 convolution with padding 1 and bias, followed by ReLU and a 2×2 max pooling.
type Conv struct {
	H, W, In int // the input's size and channels
	Out      int // the output's channels
	Stride   int // of the convolution
	Weights  int // where its weights begin
	Bias     int // where its bias begins
}

// Taps returns the number of weights of one output channel.
func (c Conv) Taps() int { return 9 * c.In }

// Pooled returns the size of the output. As in PyTorch, an odd last row or column of the convolution is dropped.
func (c Conv) Pooled() (h, w int) {
	return ((c.H-1)/c.Stride + 1) / 2, ((c.W-1)/c.Stride + 1) / 2
}

// blocks returns the convolutions for samples of type t.
func (c *CNN) blocks(t stages.Type) []Conv {
	convs := make([]Conv, c.Depth)
	next := Conv{In: t.Shape[0], H: t.Shape[1], W: t.Shape[2], Out: c.Width, Stride: c.Stride}
	for i := range convs {
		next.Bias = next.Weights + next.Out*next.Taps()
		convs[i] = next
		h, w := next.Pooled()
		next = Conv{H: h, W: w, In: next.Out, Out: 2 * next.Out, Stride: 1, Weights: next.Bias + next.Out}
	}
	return convs
}

// Net returns the network for in, or an error that says which attribute doesn't go with it.
func (c *CNN) Net(in Input) (*Net, error) {
	if err := c.Accepts(in.Sample); err != nil {
		return nil, err
	}
	classes := c.Classes
	switch {
	case in.Sample.Kind != stages.Tensor:
		return nil, fmt.Errorf("the samples' type is not known")
	case in.Batch < 1:
		return nil, fmt.Errorf("a batch of %d samples can't be trained on", in.Batch)
	case classes == 0 && in.Classes == 0:
		return nil, fmt.Errorf("the loaded items have no labels to learn: set classes, or load labelled ones")
	case classes == 0:
		classes = in.Classes
	case classes < in.Classes:
		return nil, fmt.Errorf("classes = %d is less than the %d classes of the loaded items: set it to %[2]d, or leave it out", classes, in.Classes)
	}
	n := &Net{Blocks: c.blocks(in.Sample), Classes: classes}
	last := n.Blocks[len(n.Blocks)-1]
	h, w := last.Pooled()
	n.Features = h * w * last.Out
	n.Weights = last.Bias + last.Out
	n.Bias = n.Weights + classes*n.Features
	n.Params = n.Bias + classes
	return n, nil
}

// Init returns the initial parameters: biases of 0, and normally distributed weights with variance 2/inputs where a
// ReLU follows (He et al., "Delving Deep into Rectifiers", 2015) and 1/inputs in the linear layer. They depend on the
// network and the seed alone.
func (n *Net) Init(seed uint64) []float32 {
	params := make([]float32, n.Params)
	r := rand.New(rand.NewPCG(seed, 0))
	draw := func(weights []float32, variance float64) {
		for i := range weights {
			weights[i] = float32(r.NormFloat64() * math.Sqrt(variance))
		}
	}
	for _, c := range n.Blocks {
		draw(params[c.Weights:c.Bias], 2/float64(c.Taps()))
	}
	draw(params[n.Weights:n.Bias], 1/float64(n.Features))
	return params
}
