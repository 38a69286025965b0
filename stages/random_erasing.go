package stages

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
)

// RandomErasing holds the attributes of `augment "random_erasing"`.
type RandomErasing struct {
	P     float64   `hcl:"p,optional" min:"0" max:"1" doc:"How likely an item has a part erased."`
	Scale []float64 `hcl:"scale,optional" min:"0" max:"1" doc:"The least and the greatest share of the tensor's area that is erased."`
	Ratio []float64 `hcl:"ratio,optional" moremin:"0" doc:"The least and the greatest ratio of the part's height to its width."`
	Value []float64 `hcl:"value,optional" doc:"What takes the part's place: a number, or one for each channel."`
	Noise bool      `hcl:"noise,optional" doc:"Puts normally distributed random numbers (mean 0, deviation 1) in its place instead, as torchvision does with \x60value='random'\x60."`
}

func randomErasingOperator() Operator {
	return Operator{
		Block:   Augment,
		Type:    "random_erasing",
		Summary: "Erases a random rectangle of a tensor, with a probability.",
		Doc: `As torchvision's ` + "`RandomErasing`" + ` (Zhong et al., "Random Erasing Data Augmentation", 2017): the area is drawn uniformly, the ratio of height to width so
that its logarithm is uniform, the place uniformly among all that fit. If 10 draws give no rectangle that is lower and narrower than the tensor, nothing
is erased. The result of a given rectangle is torchvision's (0.14); the draws have the same distributions, but come from pipectl's own random
numbers. It stands below the stage that makes the tensor. A tensor that nothing is erased of passes through without a copy.`,
		New: func() any {
			return &RandomErasing{P: 0.5, Scale: []float64{0.02, 0.33}, Ratio: []float64{0.3, 3.3}, Value: []float64{0}}
		},
	}
}

// Validate reports limits that aren't, and no value.
func (s *RandomErasing) Validate() []Problem {
	problems := append(rangeProblems("scale", s.Scale), rangeProblems("ratio", s.Ratio)...)
	if len(s.Value) == 0 {
		problems = append(problems, Problem{Attribute: "value", Summary: "No value", Detail: "Give a number, or a list with one for each channel."})
	}
	return problems
}

// Output returns in.
func (s *RandomErasing) Output(in Type) (Type, error) {
	if err := accept(in, Tensor); err != nil {
		return Type{}, err
	}
	if channels := in.Shape[0]; channels > 0 {
		if err := s.check(channels); err != nil {
			return Type{}, errors.New("It gets " + in.String() + ", but " + err.Error() + ". Give one number, or one for each channel.")
		}
	}
	return in, nil
}

// check reports a list of values with more than one, but not as many as there are channels.
func (s *RandomErasing) check(channels int) error {
	if n := len(s.Value); n != 1 && n != channels {
		return fmt.Errorf("value has %d values for %d channels", n, channels)
	}
	return nil
}

// New makes an instance for one worker.
func (s *RandomErasing) New() (Stage, error) { return &eraser{*s}, nil }

// draw returns the part of a tensor of h×w that is erased, if any is.
func (s *RandomErasing) draw(r *rand.Rand, h, w int) (part box, ok bool) {
	if r.Float64() >= s.P {
		return box{}, false
	}
	area := float64(h) * float64(w)
	logLow, logHigh := math.Log(s.Ratio[0]), math.Log(s.Ratio[1])
	for range 10 {
		target := area * uniform(r, s.Scale[0], s.Scale[1])
		ratio := math.Exp(uniform(r, logLow, logHigh))
		height := math.RoundToEven(math.Sqrt(target * ratio))
		width := math.RoundToEven(math.Sqrt(target / ratio))
		if height < float64(h) && width < float64(w) {
			b := box{Height: int(height), Width: int(width)}
			b.Top = r.IntN(h - b.Height + 1)
			b.Left = r.IntN(w - b.Width + 1)
			return b, true
		}
	}
	return box{}, false
}

type eraser struct{ spec RandomErasing }

func (e *eraser) Process(c *Call, in, out *Element) error {
	channels, h, w := in.Type.Shape[0], in.Type.Shape[1], in.Type.Shape[2]
	if err := e.spec.check(channels); err != nil {
		return err
	}
	part, ok := e.spec.draw(c.Rand, h, w)
	if !ok {
		out.Pass(in)
		return nil
	}
	dst := out.Tensor(channels, h, w)
	copy(dst, in.F32)
	for channel := range channels {
		value := float32(e.spec.Value[channel%len(e.spec.Value)])
		for y := range part.Height {
			row := dst[(channel*h+part.Top+y)*w+part.Left:][:part.Width]
			for x := range row {
				if e.spec.Noise {
					value = float32(c.Rand.NormFloat64())
				}
				row[x] = value
			}
		}
	}
	return nil
}
