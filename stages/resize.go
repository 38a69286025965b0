package stages

import "fmt"

// Resize holds the attributes of `prepare "resize"`.
type Resize struct {
	Size          []int  `hcl:"size" min:"1" max:"16384" doc:"Pixels of the shorter edge, the aspect ratio being kept; or \x60[height, width]\x60."`
	Interpolation string `hcl:"interpolation,optional" enum:"bilinear,bicubic,nearest" doc:"How pixels are made of their neighbours."`
}

func resizeOperator() Operator {
	return Operator{
		Block:   Prepare,
		Type:    "resize",
		Summary: "Resizes an image.",
		Doc: `As torchvision's ` + "`Resize`" + ` on a PIL image, bit for bit (torchvision 0.14, Pillow 9.4): "bilinear" and "bicubic" are antialiased, which means
that they average over an area that grows with the reduction. With one number the longer edge is rounded down to whole pixels. An
image that has the size already passes through without a copy.

An item fails if its longer edge would grow so far that the result has more than 2²⁸ pixels.`,
		New: func() any { return &Resize{Interpolation: "bilinear"} },
	}
}

// Validate reports a size that is neither one number nor two.
func (s *Resize) Validate() []Problem { return sizeProblems(s.Size) }

// Output returns an image's type.
func (s *Resize) Output(in Type) (Type, error) {
	if err := accept(in, Image); err != nil {
		return Type{}, err
	}
	h, w := in.Shape[0], in.Shape[1]
	if len(s.Size) == 1 && (h == 0 || w == 0) {
		return ImageType(0, 0), nil
	}
	return ImageType(s.of(h, w)), nil
}

// of returns the height and width of what becomes of an image of h×w.
func (s *Resize) of(h, w int) (int, int) {
	switch {
	case len(s.Size) == 2:
		return s.Size[0], s.Size[1]
	case w <= h:
		return s.Size[0] * h / w, s.Size[0]
	}
	return s.Size[0], s.Size[0] * w / h
}

// New makes an instance for one worker.
func (s *Resize) New() (Stage, error) {
	return &resizer{spec: *s, resampler: newResampler(s.Interpolation)}, nil
}

type resizer struct {
	spec      Resize
	resampler *resampler
}

func (r *resizer) Process(_ *Call, in, out *Element) error {
	src := pixelsOf(in)
	h, w := r.spec.of(src.h, src.w)
	switch {
	case h == src.h && w == src.w:
		out.Pass(in)
		return nil
	case h > maxResized/w:
		return fmt.Errorf("resizing the image of %d×%d to %d×%d: that is over %d pixels", src.h, src.w, h, w, maxResized)
	}
	out.Image(h, w)
	r.resampler.resize(pixelsOf(out), src)
	return nil
}
