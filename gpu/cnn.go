package gpu

import (
	"errors"
	"fmt"

	"github.com/pipectl/pipectl/stages"
)

// CNN holds the attributes of `train "cnn"`: a small convolutional classifier.
type CNN struct {
	Device       string  `hcl:"device,optional" enum:"auto,cuda,cpu" doc:"Where the step runs. \"auto\" takes CUDA where it can be used, else the CPU."`
	Classes      int     `hcl:"classes,optional" min:"0" max:"100000" doc:"Outputs of the classifier. Left out or 0: as many as the load block counts."`
	Width        int     `hcl:"width,optional" min:"1" max:"1024" doc:"Channels of the first convolution. Each further one has twice as many as the one before it."`
	Depth        int     `hcl:"depth,optional" min:"1" max:"8" doc:"Number of blocks of convolution, ReLU and pooling. Each halves the picture."`
	Stride       int     `hcl:"stride,optional" min:"1" max:"16" doc:"Stride of the first convolution: 2 quarters the work on large pictures."`
	LearningRate float64 `hcl:"learning_rate,optional" moremin:"0" max:"1e6" doc:"Learning rate of the stochastic gradient descent."`
	Momentum     float64 `hcl:"momentum,optional" min:"0" max:"1" doc:"Share of the last update that the next one keeps."`
	Precision    string  `hcl:"precision,optional" enum:"float32,tf32" doc:"What the convolutions compute in. \"tf32\" takes a GPU's tensor cores: faster, with factors of 10 bits of fraction."`
}

func cnnOperator() stages.Operator {
	return stages.Operator{
		Block:   stages.Train,
		Type:    "cnn",
		Summary: "Trains a small convolutional classifier.",
		Doc: `A real training step: forward, backward and update. The network is ` + "`depth`" + ` blocks of convolution (3×3, padding 1, with bias), ReLU
and 2×2 max pooling, then one linear layer on the flattened result. The convolutions have ` + "`width`, 2·`width`, 4·`width`" + ` … channels.
The loss is the batch's mean softmax cross-entropy; the update is stochastic gradient descent with momentum, v ← momentum·v + gradient,
w ← w − learning_rate·v, as PyTorch's ` + "`SGD`" + ` has it. Initial weights are drawn from the experiment's seed (He et al., 2015), so a run can
be repeated, bit for bit: on the CPU whatever the number of cores, and on CUDA. The two agree but for rounding.

On CUDA, ` + "`precision = \"tf32\"`" + ` lets tensor cores compute the convolutions (compute capability 8.0 and up): factors are rounded to TF32, sums are kept
in float32. It is what PyTorch's ` + "`torch.backends.cudnn.allow_tf32`" + ` allows.

It takes float32 C×H×W tensors of one size, with labels.`,
		New: func() any {
			return &CNN{Device: "auto", Width: 32, Depth: 3, Stride: 1, LearningRate: 0.01, Momentum: 0.9, Precision: "float32"}
		},
	}
}

// Validate reports a precision that the device asked for doesn't have.
func (c *CNN) Validate() []stages.Problem {
	if c.Precision == "tf32" && c.Device == "cpu" {
		return []stages.Problem{{Attribute: "precision", Summary: "No tensor cores", Detail: `precision = "tf32" is for a GPU's tensor cores, and device = "cpu" has the ` +
			"step run on the CPU. Remove one of them."}}
	}
	return nil
}

// Want returns the device attribute.
func (c *CNN) Want() string { return c.Device }

// Accepts returns nil for tensors of a fixed size that are large enough for the depth.
func (c *CNN) Accepts(t stages.Type) error {
	const (
		scale = `prepare "normalize" (or "to_float")`
		fit   = `one that makes all pictures the same size, such as augment "random_resized_crop" or prepare "center_crop"`
	)
	advice := ""
	switch {
	case t.Kind == stages.Unknown:
		return nil
	case t.Kind == stages.Tensor && t.Fixed():
		return c.fits(t)
	case t.Kind == stages.Encoded:
		advice = `Three stages are missing above it: one that decodes, such as prepare "decode_jpeg"; ` + fit + "; and " + scale + "."
	case t.Kind == stages.Image && t.Fixed():
		advice = "A stage is missing above it: " + scale + "."
	case t.Kind == stages.Image:
		advice = "Two stages are missing above it: " + fit + "; and " + scale + "."
	case t.Kind == stages.Tensor:
		advice = "A stage is missing above the one that makes the tensor: " + fit + "."
	default:
		advice = `Load pictures, or take train "emulated", which eats anything.`
	}
	return errors.New("It takes float32 C×H×W tensors of one size, and gets " + t.String() + ". " + advice)
}

// fits returns nil if every block leaves at least one pixel of a tensor of type t.
func (c *CNN) fits(t stages.Type) error {
	for depth, conv := range c.blocks(t) {
		h, w := conv.Pooled()
		if h > 0 && w > 0 {
			continue
		}
		advice := "Make the pictures larger above it."
		if depth > 0 {
			advice = fmt.Sprintf("Set depth to %d or less, or make the pictures larger above it.", depth)
		}
		return errors.New(fmt.Sprintf("depth = %d with stride = %d leaves nothing of pictures of %d×%d after block %d. ",
			c.Depth, c.Stride, t.Shape[1], t.Shape[2], depth+1) + advice)
	}
	return nil
}

// NewStep makes the classifier on d.
func (c *CNN) NewStep(d Device, in Input) (Step, error) { return d.NewClassifier(c, in) }
