package stages

import "math/rand/v2"

// TrivialAugment holds the attributes of `augment "trivial_augment"`.
type TrivialAugment struct {
	NumMagnitudeBins int    `hcl:"num_magnitude_bins,optional" min:"2" max:"1000" doc:"How many magnitudes there are to draw from."`
	Interpolation    string `hcl:"interpolation,optional" enum:"nearest,bilinear,bicubic" doc:"How pixels of a turned, sheared or moved image are made of their neighbours."`
	Fill             []int  `hcl:"fill,optional" min:"0" max:"255" doc:"The colour of what comes from outside of the image: a number, or one for each channel."`
}

func trivialAugmentOperator() Operator {
	return Operator{
		Block:   Augment,
		Type:    "trivial_augment",
		Summary: "Changes an image in one way out of 14, with a random magnitude.",
		Doc: `As torchvision's ` + "`TrivialAugmentWide`" + ` on a PIL image (Müller and Hutter, "TrivialAugment: Tuning-free Yet State-of-the-Art Data Augmentation", 2021).
Each item gets one of these, all as likely, with a magnitude drawn from ` + "`num_magnitude_bins`" + `, and a sign where it can have one: nothing, shear (along x or
y), translation (along x or y), rotation, brightness, colour, contrast, sharpness, posterize, solarize, autocontrast, equalize.

The result of a given change is torchvision's bit for bit (0.14, with Pillow 9.4), interpolated rotations as ` + "`random_rotation`" + ` has them; the
draws have the same distributions, but come from pipectl's own random numbers. Magnitudes are torch's to the last but one bit of a float32: how torch
rounds those in between depends on the CPU.`,
		New: func() any {
			return &TrivialAugment{NumMagnitudeBins: 31, Interpolation: "nearest", Fill: []int{0}}
		},
	}
}

// Validate reports a colour that isn't.
func (s *TrivialAugment) Validate() []Problem { return fillProblems(s.Fill) }

// Output returns in.
func (s *TrivialAugment) Output(in Type) (Type, error) { return in, accept(in, Image) }

// New makes an instance for one worker.
func (s *TrivialAugment) New() (Stage, error) {
	return &trivialAugmenter{
		augmenter:  augmenter{kernels: fastKernels(), interpolation: s.Interpolation, fill: colour(s.Fill)},
		bins:       s.NumMagnitudeBins,
		magnitudes: magnitudes{shear: 0.99, translateX: 32, translateY: 32, rotate: 135, colour: 0.99, bits: 6},
	}, nil
}

type trivialAugmenter struct {
	augmenter  augmenter
	bins       int
	magnitudes magnitudes
}

func (t *trivialAugmenter) Process(c *Call, in, out *Element) error {
	t.draw(c.Rand)
	t.augmenter.run(in, out)
	return nil
}

// draw draws the item's step.
func (t *trivialAugmenter) draw(r *rand.Rand) {
	t.augmenter.add(r, &t.magnitudes, t.bins, func() int { return r.IntN(t.bins) })
}
