package stages

import "math"

// CenterCrop holds the attributes of `prepare "center_crop"`.
type CenterCrop struct {
	Size []int `hcl:"size" min:"1" max:"16384" doc:"Pixels of both edges, or \x60[height, width]\x60."`
}

func centerCropOperator() Operator {
	return Operator{
		Block:   Prepare,
		Type:    "center_crop",
		Summary: "Cuts out the middle of an image.",
		Doc: `As torchvision's ` + "`CenterCrop`" + `: where the image is smaller than the crop it is padded with black, and where an edge can't be divided evenly
the same side gets the odd pixel. An image that has the size already passes through without a copy.`,
		New: func() any { return new(CenterCrop) },
	}
}

// Validate reports a size that is neither one number nor two.
func (s *CenterCrop) Validate() []Problem { return sizeProblems(s.Size) }

// Output returns an image's type.
func (s *CenterCrop) Output(in Type) (Type, error) {
	if err := accept(in, Image); err != nil {
		return Type{}, err
	}
	return ImageType(square(s.Size)), nil
}

// New makes an instance for one worker.
func (s *CenterCrop) New() (Stage, error) {
	h, w := square(s.Size)
	return &centerCropper{h, w}, nil
}

type centerCropper struct{ h, w int }

func (c *centerCropper) Process(_ *Call, in, out *Element) error {
	src := pixelsOf(in)
	if c.h == src.h && c.w == src.w {
		out.Pass(in)
		return nil
	}
	out.Image(c.h, c.w)
	dst := pixelsOf(out)
	top, fromTop, rows := centre(src.h, dst.h)
	left, fromLeft, columns := centre(src.w, dst.w)
	if rows < dst.h || columns < dst.w {
		clear(dst.pix)
	}
	src = src.crop(box{fromTop, fromLeft, rows, columns})
	dst = dst.crop(box{top, left, rows, columns})
	for y := range rows {
		copy(dst.row(y), src.row(y))
	}
	return nil
}

// centre returns which n pixels of an edge of in go where on one of out: those after the first from, after the first to.
func centre(in, out int) (to, from, n int) {
	if out > in {
		return (out - in) / 2, 0, in
	}
	return 0, int(math.RoundToEven(float64(in-out) / 2)), out
}
