// The whole pipectl command line with one operator more: augment "posterize", which keeps a few bits of each colour.
package main

import (
	"fmt"
	"os"

	"github.com/pipectl/pipectl"
	"github.com/pipectl/pipectl/stages"
)

// Posterize holds the attributes of `augment "posterize"`.
type Posterize struct {
	Bits int     `hcl:"bits,optional" min:"1" max:"8" doc:"How many bits of each colour stay."`
	P    float64 `hcl:"p,optional" min:"0" max:"1" doc:"The probability that an item is changed."`
}

// Output says what comes out: an image like the one that goes in.
func (s *Posterize) Output(in stages.Type) (stages.Type, error) {
	if in.Kind != stages.Image {
		return in, fmt.Errorf("posterize takes an image, not %s: put a decode stage above it", in)
	}
	return in, nil
}

// New makes an instance for one worker. This one needs no memory of its own.
func (s *Posterize) New() (stages.Stage, error) { return s, nil }

// Process changes one image. c.Rand is seeded for the item, so the result doesn't depend on which worker gets it.
func (s *Posterize) Process(c *stages.Call, in, out *stages.Element) error {
	if c.Rand.Float64() >= s.P {
		out.Pass(in)
		return nil
	}
	mask := byte(0xff << (8 - s.Bits))
	to := out.Image(in.Type.Shape[0], in.Type.Shape[1])
	for i, v := range in.U8 {
		to[i] = v & mask
	}
	return nil
}

func main() {
	os.Exit(pipectl.Main(stages.Operator{
		Block:   stages.Augment,
		Type:    "posterize",
		Summary: "Keeps a few bits of each colour.",
		New:     func() any { return &Posterize{Bits: 4, P: 0.5} },
	}))
}
