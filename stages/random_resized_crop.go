package stages

import (
	"math"
	"math/rand/v2"
)

// RandomResizedCrop holds the attributes of `augment "random_resized_crop"`.
type RandomResizedCrop struct {
	Size          []int     `hcl:"size" min:"1" max:"16384" doc:"Pixels of both edges of the result, or \x60[height, width]\x60."`
	Scale         []float64 `hcl:"scale,optional" moremin:"0" max:"1" doc:"The least and the greatest share of the image's area that the crop has."`
	Ratio         []float64 `hcl:"ratio,optional" moremin:"0" doc:"The least and the greatest ratio of the crop's width to its height."`
	Interpolation string    `hcl:"interpolation,optional" enum:"bilinear,bicubic,nearest" doc:"How pixels are made of their neighbours."`
}

func randomResizedCropOperator() Operator {
	return Operator{
		Block:   Augment,
		Type:    "random_resized_crop",
		Summary: "Cuts out a random part of an image and resizes it.",
		Doc: `As torchvision's ` + "`RandomResizedCrop`" + ` on a PIL image: the area is drawn uniformly, the aspect ratio so that its logarithm is uniform, the place
uniformly among all that fit. If 10 draws give a crop that is larger than the image, it is the largest one in the middle whose ratio is within the
limits. The result of a given crop is torchvision's bit for bit (0.14, with Pillow 9.4); the draws have the same distributions, but come from
pipectl's own random numbers.`,
		New: func() any {
			return &RandomResizedCrop{
				Scale:         []float64{0.08, 1},
				Ratio:         []float64{3. / 4, 4. / 3},
				Interpolation: "bilinear",
			}
		},
	}
}

// Validate reports a size or limits that aren't.
func (s *RandomResizedCrop) Validate() []Problem {
	problems := sizeProblems(s.Size)
	problems = append(problems, rangeProblems("scale", s.Scale)...)
	return append(problems, rangeProblems("ratio", s.Ratio)...)
}

// Output returns an image's type.
func (s *RandomResizedCrop) Output(in Type) (Type, error) {
	if err := accept(in, Image); err != nil {
		return Type{}, err
	}
	return ImageType(square(s.Size)), nil
}

// New makes an instance for one worker.
func (s *RandomResizedCrop) New() (Stage, error) {
	return &randomResizedCropper{spec: *s, resampler: newResampler(s.Interpolation)}, nil
}

// draw returns the part of an image of h×w that is cut out.
func (s *RandomResizedCrop) draw(r *rand.Rand, h, w int) box {
	area := float64(h) * float64(w)
	logLow, logHigh := math.Log(s.Ratio[0]), math.Log(s.Ratio[1])
	for range 10 {
		target := area * uniform(r, s.Scale[0], s.Scale[1])
		ratio := math.Exp(uniform(r, logLow, logHigh))
		width := math.RoundToEven(math.Sqrt(target * ratio))
		height := math.RoundToEven(math.Sqrt(target / ratio))
		if width >= 1 && width <= float64(w) && height >= 1 && height <= float64(h) {
			b := box{Height: int(height), Width: int(width)}
			b.Top = r.IntN(h - b.Height + 1)
			b.Left = r.IntN(w - b.Width + 1)
			return b
		}
	}
	b := box{Height: h, Width: w}
	if ratio := float64(w) / float64(h); ratio < s.Ratio[0] {
		b.Height = max(int(math.RoundToEven(float64(w)/s.Ratio[0])), 1)
	} else if ratio > s.Ratio[1] {
		b.Width = max(int(math.RoundToEven(float64(h)*s.Ratio[1])), 1)
	}
	b.Top, b.Left = (h-b.Height)/2, (w-b.Width)/2
	return b
}

type randomResizedCropper struct {
	spec      RandomResizedCrop
	resampler *resampler
}

func (c *randomResizedCropper) Process(call *Call, in, out *Element) error {
	src := pixelsOf(in)
	crop := c.spec.draw(call.Rand, src.h, src.w)
	out.Image(square(c.spec.Size))
	c.resampler.resize(pixelsOf(out), src.crop(crop))
	return nil
}
