package stages

import "math/rand/v2"

// RandomGrayscale holds the attributes of `augment "random_grayscale"`.
type RandomGrayscale struct {
	P float64 `hcl:"p,optional" min:"0" max:"1" doc:"How likely an item becomes grey."`
}

func randomGrayscaleOperator() Operator {
	return Operator{
		Block:   Augment,
		Type:    "random_grayscale",
		Summary: "Takes the colour out of an image, with a probability.",
		Doc: `As torchvision's ` + "`RandomGrayscale`" + ` on a PIL image, bit for bit (0.14, with Pillow 9.4): all three channels become the luma. An image that stays as it
is passes through without a copy.`,
		New: func() any { return &RandomGrayscale{P: 0.1} },
	}
}

// Output returns in.
func (s *RandomGrayscale) Output(in Type) (Type, error) { return in, accept(in, Image) }

// New makes an instance for one worker.
func (s *RandomGrayscale) New() (Stage, error) { return &greyer{*s}, nil }

// draw reports whether an item becomes grey.
func (s *RandomGrayscale) draw(r *rand.Rand) bool { return r.Float64() < s.P }

type greyer struct{ spec RandomGrayscale }

func (g *greyer) Process(c *Call, in, out *Element) error {
	if !g.spec.draw(c.Rand) {
		out.Pass(in)
		return nil
	}
	src, dst := in.U8, out.Image(in.Type.Shape[0], in.Type.Shape[1])
	for len(src) >= 3 && len(dst) >= 3 {
		y := byte(grey(int32(src[0]), int32(src[1]), int32(src[2])))
		dst[0], dst[1], dst[2] = y, y, y
		src, dst = src[3:], dst[3:]
	}
	return nil
}
