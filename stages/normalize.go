package stages

import (
	"errors"
	"fmt"
)

// Normalize holds the attributes of `prepare "normalize"`.
type Normalize struct {
	Mean []float64 `hcl:"mean,optional" doc:"What is subtracted: a number, or one for each channel. Default: ImageNet's."`
	Std  []float64 `hcl:"std,optional" doc:"What the difference is divided by: a number, or one for each channel. Default: ImageNet's."`
}

func normalizeOperator() Operator {
	return Operator{
		Block:   Prepare,
		Type:    "normalize",
		Summary: "Subtracts a mean from each channel and divides by a standard deviation.",
		Doc: `As torchvision's ` + "`Normalize`" + `, in float32. It takes a tensor, or an image: then it does the work of ` + "`to_float`" + ` in the same pass, with the same
result as the two one after the other.`,
		New: func() any {
			return &Normalize{Mean: []float64{0.485, 0.456, 0.406}, Std: []float64{0.229, 0.224, 0.225}}
		},
	}
}

// Validate reports lists without a value and deviations that nothing can be divided by.
func (s *Normalize) Validate() []Problem {
	var problems []Problem
	report := func(attribute, summary, detail string) {
		problems = append(problems, Problem{Attribute: attribute, Summary: summary, Detail: detail})
	}
	if len(s.Mean) == 0 {
		report("mean", "No value", "Give a number, or a list with one for each channel.")
	}
	if len(s.Std) == 0 {
		report("std", "No value", "Give a number, or a list with one for each channel.")
	}
	for _, v := range s.Std {
		if float32(v) == 0 {
			report("std", "Division by zero", "A standard deviation can't be 0: give 1 for a channel that is only to be shifted.")
			break
		}
	}
	return problems
}

// Output returns a tensor's type.
func (s *Normalize) Output(in Type) (Type, error) {
	if err := accept(in, Tensor, Image); err != nil {
		return Type{}, err
	}
	out := in
	if in.Kind == Image {
		out = TensorType(3, in.Shape[0], in.Shape[1])
	}
	if out.Shape[0] > 0 {
		if err := s.check(out.Shape[0]); err != nil {
			return Type{}, errors.New("It gets " + in.String() + ", but " + err.Error() + ". Give one number, or one for each channel.")
		}
	}
	return out, nil
}

// check reports a list with more than one value, but not as many as there are channels.
func (s *Normalize) check(channels int) error {
	if n := len(s.Mean); n != 1 && n != channels {
		return fmt.Errorf("mean has %d values for %d channels", n, channels)
	}
	if n := len(s.Std); n != 1 && n != channels {
		return fmt.Errorf("std has %d values for %d channels", n, channels)
	}
	return nil
}

// of returns what channel c is shifted and divided by.
func (s *Normalize) of(c int) (mean, std float32) {
	return float32(s.Mean[c%len(s.Mean)]), float32(s.Std[c%len(s.Std)])
}

// New makes an instance for one worker.
func (s *Normalize) New() (Stage, error) {
	return &normalizer{spec: *s, image: s.imageNormalizer()}, nil
}

// imageNormalizer returns what does the work on images.
func (s *Normalize) imageNormalizer() *imageNormalizer {
	var mean, std [3]float32
	for c := range mean {
		mean[c], std[c] = s.of(c)
	}
	return newImageNormalizer(mean, std)
}

type normalizer struct {
	spec  Normalize
	image *imageNormalizer
}

func (n *normalizer) Process(c *Call, in, out *Element) error {
	if in.Type.Kind == Image {
		return n.image.Process(c, in, out)
	}
	channels, h, w := in.Type.Shape[0], in.Type.Shape[1], in.Type.Shape[2]
	if err := n.spec.check(channels); err != nil {
		return err
	}
	src, dst := in.F32, out.Tensor(channels, h, w)
	for c := range channels {
		mean, std := n.spec.of(c)
		n.image.kernels.standardize(dst[c*h*w:][:h*w], src[c*h*w:][:h*w], mean, std)
	}
	return nil
}

func (portable) standardize(dst, src []float32, mean, std float32) {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = (v - mean) / std
	}
}
