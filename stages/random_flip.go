package stages

import (
	"math/rand/v2"
	"slices"
)

// RandomFlip holds the attributes of `augment "random_flip"`.
type RandomFlip struct {
	P float64 `hcl:"p,optional" min:"0" max:"1" doc:"How likely an item is flipped."`
}

func randomFlipOperator() Operator {
	return Operator{
		Block:   Augment,
		Type:    "random_flip",
		Summary: "Mirrors an image or a tensor, left to right, with a probability.",
		Doc:     `As torchvision's ` + "`RandomHorizontalFlip`" + `. An item that isn't flipped passes through without a copy.`,
		New:     func() any { return &RandomFlip{P: 0.5} },
	}
}

// Output returns in.
func (s *RandomFlip) Output(in Type) (Type, error) { return in, accept(in, Image, Tensor) }

// New makes an instance for one worker.
func (s *RandomFlip) New() (Stage, error) { return &flipper{*s, fastKernels()}, nil }

// draw reports whether an item is flipped.
func (s *RandomFlip) draw(r *rand.Rand) bool { return r.Float64() < s.P }

type flipper struct {
	spec    RandomFlip
	kernels kernels
}

func (f *flipper) Process(c *Call, in, out *Element) error {
	switch {
	case !f.spec.draw(c.Rand):
		out.Pass(in)
	case in.Type.Kind == Tensor:
		flipTensor(out, in)
	default:
		out.Image(in.Type.Shape[0], in.Type.Shape[1])
		f.kernels.mirror(pixelsOf(out), pixelsOf(in))
	}
	return nil
}

func flipTensor(out, in *Element) {
	c, h, w := in.Type.Shape[0], in.Type.Shape[1], in.Type.Shape[2]
	dst := out.Tensor(c, h, w)
	copy(dst, in.F32)
	for row := range slices.Chunk(dst, w) {
		slices.Reverse(row)
	}
}

func (portable) mirror(dst, src pixels) {
	for y := range src.h {
		from, to := src.row(y), dst.row(y)
		for len(from) >= 3 && len(to) >= 3 {
			p, q := from[:3], to[len(to)-3:]
			q[0], q[1], q[2] = p[0], p[1], p[2]
			from, to = from[3:], to[:len(to)-3]
		}
	}
}
