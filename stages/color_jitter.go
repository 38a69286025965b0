package stages

import (
	"fmt"
	"math/rand/v2"
)

// ColorJitter holds the attributes of `augment "color_jitter"`.
type ColorJitter struct {
	Brightness []float64 `hcl:"brightness,optional" min:"0" doc:"The factor for brightness is drawn from \x60[max(0, 1 - x), 1 + x]\x60, or from \x60[least, greatest]\x60."`
	Contrast   []float64 `hcl:"contrast,optional" min:"0" doc:"The same for contrast."`
	Saturation []float64 `hcl:"saturation,optional" min:"0" doc:"The same for saturation."`
	Hue        []float64 `hcl:"hue,optional" min:"-0.5" max:"0.5" doc:"The turn of the hues is drawn from \x60[-x, x]\x60, or from \x60[least, greatest]\x60; 0.5 is half the colour wheel."`
}

func colorJitterOperator() Operator {
	return Operator{
		Block:   Augment,
		Type:    "color_jitter",
		Summary: "Changes an image's brightness, contrast, saturation and hue at random.",
		Doc: `As torchvision's ` + "`ColorJitter`" + ` on a PIL image: those of the four that are given are done in random order, each with a factor drawn uniformly. The
result of given factors is torchvision's bit for bit (0.14, with Pillow 9.4); the draws have the same distributions, but come from pipectl's own
random numbers.

- Brightness mixes the image with black, contrast with the mean of its greys, saturation with its greys: 0 gives black or grey, 1 the image itself,
  more goes further the other way. Results are cut off at 0 and 255, and rounded down.
- Hue goes through 8-bit hue, saturation and value, so it rounds colours even where the turn is 0, and turns in steps of 1/256 of the wheel.
- With none given the image passes through without a copy.`,
		New: func() any { return &ColorJitter{[]float64{0}, []float64{0}, []float64{0}, []float64{0}} },
	}
}

// Validate reports limits that aren't.
func (s *ColorJitter) Validate() []Problem {
	var problems []Problem
	for i, values := range s.values() {
		if attribute := adjustment(i).String(); len(values) != 1 {
			problems = append(problems, rangeProblems(attribute, values)...)
		} else if adjustment(i) == hue && values[0] < 0 {
			problems = append(problems, Problem{
				Attribute: attribute,
				Summary:   "Negative number",
				Detail:    fmt.Sprintf("A single number x stands for the range [-x, x]: write %v, or give a list of two.", -values[0]),
			})
		}
	}
	return problems
}

// values returns the attributes in the order of the adjustments.
func (s *ColorJitter) values() [4][]float64 {
	return [4][]float64{s.Brightness, s.Contrast, s.Saturation, s.Hue}
}

// Output returns in.
func (s *ColorJitter) Output(in Type) (Type, error) { return in, accept(in, Image) }

// adjustment is one of the four things that jitter.
type adjustment int

const (
	brightness adjustment = iota
	contrast
	saturation
	hue
)

func (a adjustment) String() string {
	return [...]string{"brightness", "contrast", "saturation", "hue"}[a]
}

// limits is what an adjustment's factor is drawn from.
type limits struct {
	low, high float64
	off       bool // always the factor that changes nothing
}

// colorLimits holds those of each adjustment.
type colorLimits [4]limits

// limits returns those that the attributes stand for.
func (s *ColorJitter) limits() (l colorLimits) {
	for i, values := range s.values() {
		neutral := 1.0
		if adjustment(i) == hue {
			neutral = 0
		}
		if len(values) == 2 {
			l[i] = limits{low: values[0], high: values[1]}
		} else {
			l[i] = limits{low: neutral - values[0], high: neutral + values[0]}
			if adjustment(i) != hue {
				l[i].low = max(l[i].low, 0)
			}
		}
		l[i].off = l[i].low == neutral && l[i].high == neutral
	}
	return l
}

// off reports whether no adjustment changes anything.
func (l *colorLimits) off() bool {
	for _, a := range l {
		if !a.off {
			return false
		}
	}
	return true
}

// colorChange says how one image is changed.
type colorChange struct {
	order  [4]adjustment
	factor [4]float64 // of each adjustment that isn't off
}

func (l *colorLimits) draw(r *rand.Rand) colorChange {
	c := colorChange{order: [4]adjustment{brightness, contrast, saturation, hue}}
	r.Shuffle(len(c.order), func(i, j int) { c.order[i], c.order[j] = c.order[j], c.order[i] })
	for a := range l {
		if !l[a].off {
			c.factor[a] = uniform(r, l[a].low, l[a].high)
		}
	}
	return c
}

// New makes an instance for one worker.
func (s *ColorJitter) New() (Stage, error) {
	return &colorJitterer{limits: s.limits(), kernels: fastKernels()}, nil
}

type colorJitterer struct {
	limits  colorLimits
	kernels kernels
	hues    hueTable
}

func (c *colorJitterer) Process(call *Call, in, out *Element) error {
	if c.limits.off() {
		out.Pass(in)
		return nil
	}
	c.apply(c.limits.draw(call.Rand), out.Image(in.Type.Shape[0], in.Type.Shape[1]), in.U8)
	return nil
}

// apply fills dst with src, changed.
func (c *colorJitterer) apply(change colorChange, dst, src []byte) {
	for _, a := range change.order {
		if c.limits[a].off {
			continue
		}
		switch factor := float32(change.factor[a]); a {
		case brightness:
			c.kernels.mixGrey(dst, src, 0, factor)
		case contrast:
			c.kernels.mixGrey(dst, src, meanGrey(c.kernels, src), factor)
		case saturation:
			c.kernels.saturate(dst, src, factor)
		case hue:
			c.hues.turn(byte(int(change.factor[a] * 255)))
			c.kernels.turnHues(&c.hues, dst, src)
		}
		src = dst // what follows works in place
	}
}

// mix returns what lies at factor on the line from a (0) to b (1), in float32, cut off and rounded down as Pillow's
// Image.blend does.
func mix(a, b int32, factor float32) byte {
	v := float32(a) + product(factor, float32(b-a))
	if v >= 255 {
		return 255
	}
	if v > 0 {
		return byte(v)
	}
	return 0
}

func (portable) mixGrey(dst, src []byte, grey int32, factor float32) {
	var table [256]byte
	for v := range table {
		table[v] = mix(grey, int32(v), factor)
	}
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = table[v]
	}
}

func (portable) saturate(dst, src []byte, factor float32) {
	for len(src) >= 3 && len(dst) >= 3 {
		r, g, b := int32(src[0]), int32(src[1]), int32(src[2])
		y := grey(r, g, b)
		dst[0], dst[1], dst[2] = mix(y, r, factor), mix(y, g, factor), mix(y, b, factor)
		src, dst = src[3:], dst[3:]
	}
}

// grey returns the luma of a colour (ITU-R BT.601, with Pillow's 16-bit weights).
func grey(r, g, b int32) int32 { return (19595*r + 38470*g + 7471*b + 1<<15) >> 16 }

func (portable) sumGreys(src []byte) int {
	sum := 0
	for len(src) >= 3 {
		sum += int(grey(int32(src[0]), int32(src[1]), int32(src[2])))
		src = src[3:]
	}
	return sum
}

// meanGrey returns the mean luma of an image, rounded.
func meanGrey(k kernels, src []byte) int32 {
	return int32(float64(k.sumGreys(src))/float64(len(src)/3) + 0.5)
}
