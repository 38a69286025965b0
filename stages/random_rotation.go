package stages

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// RandomRotation holds the attributes of `augment "random_rotation"`.
type RandomRotation struct {
	Degrees       []float64 `hcl:"degrees" min:"-1e6" max:"1e6" doc:"The angle is drawn from \x60[-x, x]\x60, or from \x60[least, greatest]\x60. Positive angles turn counter-clockwise."`
	Interpolation string    `hcl:"interpolation,optional" enum:"nearest,bilinear,bicubic" doc:"How pixels are made of their neighbours."`
	Expand        bool      `hcl:"expand,optional" doc:"Makes the result so large that it holds the whole turned image. Images then differ in size."`
	Center        []float64 `hcl:"center,optional" min:"-1e6" max:"1e6" doc:"The point that the image turns around, \x60[x, y]\x60 in pixels from its upper left corner. Default: its middle."`
	Fill          []int     `hcl:"fill,optional" min:"0" max:"255" doc:"The colour of what comes from outside of the image: a number, or one for each channel."`
}

func randomRotationOperator() Operator {
	return Operator{
		Block:   Augment,
		Type:    "random_rotation",
		Summary: "Turns an image by a random angle.",
		Doc: `As torchvision's ` + "`RandomRotation`" + ` on a PIL image: the angle is drawn uniformly. The result of a given angle is torchvision's (0.14, with Pillow 9.4) bit for
bit, but for one value in a million or so that is one level off where pixels are interpolated, because of the last digits of sines; the draws have the
same distribution, but come from pipectl's own random numbers. An image that is turned by 0 degrees passes through without a copy.`,
		New: func() any { return &RandomRotation{Interpolation: "nearest", Fill: []int{0}} },
	}
}

// Validate reports lists of a wrong length and limits that aren't.
func (s *RandomRotation) Validate() []Problem {
	var problems []Problem
	if len(s.Degrees) != 1 {
		problems = rangeProblems("degrees", s.Degrees)
	} else if s.Degrees[0] < 0 {
		problems = append(problems, Problem{
			Attribute: "degrees",
			Summary:   "Negative number",
			Detail:    fmt.Sprintf("A single number x stands for the range [-x, x]: write %v, or give a list of two.", -s.Degrees[0]),
		})
	}
	if n := len(s.Center); n != 0 && n != 2 {
		problems = append(problems, Problem{
			Attribute: "center",
			Summary:   "Not a point",
			Detail:    fmt.Sprintf("A point is a list of two numbers, [x, y]. This list has %d.", n),
		})
	}
	return append(problems, fillProblems(s.Fill)...)
}

// fillProblems reports a colour that has neither one number nor three.
func fillProblems(fill []int) []Problem {
	if len(fill) == 1 || len(fill) == 3 {
		return nil
	}
	return []Problem{{
		Attribute: "fill",
		Summary:   "Not a colour",
		Detail:    fmt.Sprintf("A colour is one number for all channels, or a list of three, [red, green, blue]. This list has %d.", len(fill)),
	}}
}

// colour returns the RGB that an attribute fill stands for.
func colour(fill []int) (rgb [3]byte) {
	for c := range rgb {
		rgb[c] = byte(fill[c%len(fill)])
	}
	return rgb
}

// Output returns an image's type.
func (s *RandomRotation) Output(in Type) (Type, error) {
	if err := accept(in, Image); err != nil {
		return Type{}, err
	}
	if s.Expand {
		return ImageType(0, 0), nil
	}
	return in, nil
}

// New makes an instance for one worker.
func (s *RandomRotation) New() (Stage, error) { return &rotator{*s, colour(s.Fill)}, nil }

// draw returns the angle that an image is turned by.
func (s *RandomRotation) draw(r *rand.Rand) float64 {
	if len(s.Degrees) == 1 {
		return uniform(r, -s.Degrees[0], s.Degrees[0])
	}
	return uniform(r, s.Degrees[0], s.Degrees[1])
}

type rotator struct {
	spec RandomRotation
	fill [3]byte
}

func (r *rotator) Process(c *Call, in, out *Element) error {
	angle := r.spec.draw(c.Rand)
	if math.Mod(angle, 360) == 0 {
		out.Pass(in)
		return nil
	}
	src := pixelsOf(in)
	a, h, w := rotation(angle, src.h, src.w, r.spec.Center, r.spec.Expand)
	out.Image(h, w)
	a.warp(pixelsOf(out), src, r.spec.Interpolation, r.fill)
	return nil
}

// rotation returns where the pixels of an image of h×w come from that is turned by degrees around a centre, [x, y] or none
// for its middle, and the size of the result, as Pillow's Image.rotate has them.
func rotation(degrees float64, h, w int, centre []float64, expand bool) (a affine, height, width int) {
	degrees = math.Mod(degrees, 360)
	if degrees < 0 {
		degrees += 360
	}
	middleX, middleY := float64(w)/2, float64(h)/2
	aroundX, aroundY := middleX, middleY
	if len(centre) == 2 {
		aroundX, aroundY = centre[0], centre[1]
	}
	sin, cos := math.Sincos(-degrees * (math.Pi / 180))
	sin, cos = decimals15(sin), decimals15(cos)
	a = affine{cos, sin, 0, -sin, cos, 0}
	a[2], a[5] = a.at(-aroundX, -aroundY)
	a[2] += aroundX
	a[5] += aroundY
	if !expand {
		return a, h, w
	}
	if len(centre) == 0 && math.Mod(degrees, 180) == 90 {
		height, width = w, h
	} else {
		left, right, top, bottom := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
		for _, corner := range [4][2]float64{{0, 0}, {float64(w), 0}, {float64(w), float64(h)}, {0, float64(h)}} {
			x, y := a.at(corner[0], corner[1])
			left, right, top, bottom = min(left, x), max(right, x), min(top, y), max(bottom, y)
		}
		width, height = int(math.Ceil(right)-math.Floor(left)), int(math.Ceil(bottom)-math.Floor(top))
	}
	a[2], a[5] = a.at(-float64(width-w)/2, -float64(height-h)/2)
	return a, height, width
}

// decimals15 rounds a number from -1 to 1 to 15 decimals, halves to the even neighbour, as Python's round does.
func decimals15(v float64) float64 {
	const scale = 1e15
	scaled := product(v, scale)
	lost := math.FMA(v, scale, -scaled)
	whole := math.Floor(scaled)
	switch over := scaled - whole - 0.5 + lost; {
	case over > 0:
		whole++
	case over == 0:
		whole = math.RoundToEven(scaled)
	}
	return whole / scale
}
