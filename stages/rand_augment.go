package stages

import (
	"fmt"
	"math/rand/v2"
)

// RandAugment holds the attributes of `augment "rand_augment"`.
type RandAugment struct {
	NumOps           int    `hcl:"num_ops,optional" min:"1" max:"100" doc:"How many changes are made, one after the other."`
	Magnitude        int    `hcl:"magnitude,optional" min:"0" doc:"How far all changes go, from 0 to less than \x60num_magnitude_bins\x60."`
	NumMagnitudeBins int    `hcl:"num_magnitude_bins,optional" min:"2" max:"1000" doc:"How many magnitudes there are."`
	Interpolation    string `hcl:"interpolation,optional" enum:"nearest,bilinear,bicubic" doc:"How pixels of a turned, sheared or moved image are made of their neighbours."`
	Fill             []int  `hcl:"fill,optional" min:"0" max:"255" doc:"The colour of what comes from outside of the image: a number, or one for each channel."`
}

func randAugmentOperator() Operator {
	return Operator{
		Block:   Augment,
		Type:    "rand_augment",
		Summary: "Changes an image in random ways out of 14, with one magnitude.",
		Doc: `As torchvision's ` + "`RandAugment`" + ` on a PIL image (Cubuk et al., "RandAugment: Practical Automated Data Augmentation with a Reduced Search Space", 2019):
` + "`num_ops`" + ` times one of the changes that ` + "`trivial_augment`" + ` makes, all as likely, with a sign where it can have one. They go less far than there at
the greatest magnitude: shears 0.3, translations 150/331 of the image, rotations 30 degrees, the factors of brightness, colour, contrast and sharpness 0.1
and 1.9, posterize 4 bits.

The result of given changes is torchvision's bit for bit (0.14, with Pillow 9.4), interpolated rotations as ` + "`random_rotation`" + ` has them; the draws
have the same distributions, but come from pipectl's own random numbers. Magnitudes are torch's to the last but one bit, as in ` + "`trivial_augment`" + `.`,
		New: func() any {
			return &RandAugment{NumOps: 2, Magnitude: 9, NumMagnitudeBins: 31, Interpolation: "nearest", Fill: []int{0}}
		},
	}
}

// Validate reports a magnitude that there is none of, and a colour that isn't.
func (s *RandAugment) Validate() []Problem {
	var problems []Problem
	if s.Magnitude >= s.NumMagnitudeBins {
		problems = append(problems, Problem{
			Attribute: "magnitude",
			Summary:   "Magnitude too large",
			Detail:    fmt.Sprintf("With num_magnitude_bins = %d it is at most %d.", s.NumMagnitudeBins, s.NumMagnitudeBins-1),
		})
	}
	return append(problems, fillProblems(s.Fill)...)
}

// Output returns in.
func (s *RandAugment) Output(in Type) (Type, error) { return in, accept(in, Image) }

// New makes an instance for one worker.
func (s *RandAugment) New() (Stage, error) {
	return &randAugmenter{spec: *s, augmenter: augmenter{kernels: fastKernels(), interpolation: s.Interpolation, fill: colour(s.Fill)}}, nil
}

type randAugmenter struct {
	spec      RandAugment
	augmenter augmenter
}

// randMagnitudes returns how far the changes of an image of h×w go.
func randMagnitudes(h, w int) magnitudes {
	return magnitudes{shear: 0.3, translateX: 150. / 331 * float64(w), translateY: 150. / 331 * float64(h), rotate: 30, colour: 0.9, bits: 4}
}

func (r *randAugmenter) Process(c *Call, in, out *Element) error {
	r.draw(c.Rand, in.Type.Shape[0], in.Type.Shape[1])
	r.augmenter.run(in, out)
	return nil
}

// draw draws the steps of an item of h×w.
func (r *randAugmenter) draw(random *rand.Rand, h, w int) {
	m := randMagnitudes(h, w)
	for range r.spec.NumOps {
		r.augmenter.add(random, &m, r.spec.NumMagnitudeBins, func() int { return r.spec.Magnitude })
	}
}
