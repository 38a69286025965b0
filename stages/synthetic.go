package stages

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/jpeg"
	"math/rand/v2"
	"strings"
	"sync"
)

// Synthetic holds the attributes of `load "synthetic"`.
type Synthetic struct {
	Items   int    `hcl:"items,optional" min:"1" doc:"Items in an epoch."`
	Kind    string `hcl:"kind,optional" enum:"image,bytes" doc:"What an item is: a picture, or bytes without a structure."`
	Shape   []int  `hcl:"shape,optional" min:"1" max:"65500" doc:"A picture's \x60[height, width, 3]\x60."`
	Bytes   Bytes  `hcl:"bytes,optional" min:"1B" max:"2GiB" doc:"The size of an item where \x60kind = \"bytes\"\x60."`
	Encode  string `hcl:"encode,optional" enum:"none,jpeg" doc:"What a picture is given as: an image, or a JPEG file to be decoded."`
	Quality int    `hcl:"quality,optional" min:"1" max:"100" doc:"The JPEG files' quality."`
	Classes int    `hcl:"classes,optional" min:"1" max:"1000000" doc:"Item i has the label i mod \x60classes\x60."`
	Shuffle bool   `hcl:"shuffle,optional" doc:"Give each epoch's items in a new order, drawn from the experiment's seed."`
}

const (
	maxPayloads     = 64
	maxPayloadBytes = 256 << 20
)

func syntheticOperator() Operator {
	return Operator{
		Block:   Load,
		Type:    "synthetic",
		Summary: "Makes data up, for a pipeline without a data set or without the cost of reading one.",
		Doc: `Up to 64 different items are made, each when it is first needed, and fewer where 64 of them would take more than 256 MiB; they are given in
turn, without a copy, so that reading costs next to nothing. They depend on the experiment's seed and the item's index alone.

Pictures are smooth colours under noise: as JPEG files of the default quality they take about half a byte a pixel, as photos do.`,
		New: func() any {
			return &Synthetic{Items: 1000, Kind: "image", Shape: []int{224, 224, 3}, Bytes: 128 << 10, Encode: "none", Quality: 85, Classes: 10}
		},
	}
}

// Validate reports attributes that don't go together.
func (s *Synthetic) Validate() []Problem {
	var problems []Problem
	switch {
	case s.Kind == "bytes" && s.Encode != "none":
		problems = append(problems, Problem{Attribute: "encode", Summary: "Bytes can't be encoded",
			Detail: `Only pictures are encoded as JPEG. Use kind = "image", or leave out encode.`})
	case len(s.Shape) != 3 || s.Shape[2] != 3:
		problems = append(problems, Problem{Attribute: "shape", Summary: "Not an image's shape",
			Detail: fmt.Sprintf("A shape is [height, width, 3], for red, green and blue; this one is %s.", strings.ReplaceAll(fmt.Sprint(s.Shape), " ", ", "))})
	case s.Shape[0]*s.Shape[1] > maxDecoded:
		problems = append(problems, Problem{Attribute: "shape", Summary: "Picture too large",
			Detail: fmt.Sprintf("A picture has at most %d pixels, the most that decode stages take by default.", maxDecoded)})
	}
	return problems
}

// Output returns the type of an item.
func (s *Synthetic) Output() Type {
	switch {
	case s.Kind == "bytes":
		return Type{Opaque, Shape{int(s.Bytes)}}
	case s.Encode == "jpeg":
		return Type{Kind: Encoded}
	case len(s.Shape) != 3:
		return ImageType(0, 0)
	}
	return ImageType(s.Shape[0], s.Shape[1])
}

// Shuffled reports whether each epoch's items come in a new order.
func (s *Synthetic) Shuffled() bool { return s.Shuffle }

// Open prepares for the items to be made.
func (s *Synthetic) Open(_ context.Context, seed uint64) (Source, error) {
	size := int(s.Bytes)
	if s.Kind == "image" {
		size = s.Shape[0] * s.Shape[1] * s.Shape[2]
	}
	n := max(1, min(maxPayloads, maxPayloadBytes/size, s.Items))
	return &syntheticSource{spec: *s, seed: seed, payloads: make([]payload, n)}, nil
}

// payload is one of the different items, made when it is first needed.
type payload struct {
	once    sync.Once
	element Element
	err     error
}

// syntheticSource gives made-up items.
type syntheticSource struct {
	spec     Synthetic
	seed     uint64
	payloads []payload
}

func (s *syntheticSource) Len() int          { return s.spec.Items }
func (s *syntheticSource) Name(i int) string { return fmt.Sprintf("synthetic item %d", i) }
func (s *syntheticSource) Classes() int      { return s.spec.Classes }
func (s *syntheticSource) Close() error      { return nil }

// Read passes on one of the payloads.
func (s *syntheticSource) Read(_ *Call, i int, out *Element) (int32, error) {
	k := i % len(s.payloads)
	p := &s.payloads[k]
	p.once.Do(func() { p.err = s.fill(&p.element, k) })
	if p.err != nil {
		return 0, p.err
	}
	out.Pass(&p.element)
	return int32(i % s.spec.Classes), nil
}

// fill makes e the payload k.
func (s *syntheticSource) fill(e *Element, k int) error {
	g := rand.NewPCG(s.seed, uint64(k))
	if s.spec.Kind == "bytes" {
		noise(g, e.Bytes(s.spec.Output(), int(s.spec.Bytes)))
		return nil
	}
	h, w := s.spec.Shape[0], s.spec.Shape[1]
	pix := e.Image(h, w)
	paint(g, pix, h, w)
	if s.spec.Encode == "none" {
		return nil
	}
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range h * w {
		copy(img.Pix[4*i:], pix[3*i:][:3])
		img.Pix[4*i+3] = 255
	}
	var file bytes.Buffer
	if err := jpeg.Encode(&file, img, &jpeg.Options{Quality: s.spec.Quality}); err != nil {
		return fmt.Errorf("encoding a picture of %d×%d: %w", h, w, err)
	}
	*e = Element{Type: Type{Kind: Encoded}, U8: file.Bytes()}
	return nil
}

// noise fills b with random bytes.
func noise(g *rand.PCG, b []byte) {
	for len(b) > 0 {
		v := g.Uint64()
		for i := range min(8, len(b)) {
			b[i] = byte(v >> (8 * i))
		}
		b = b[min(8, len(b)):]
	}
}

// paint fills pix, of h×w RGB pixels, with colours that run smoothly between those of a coarse grid, and noise over them.
// It calculates in integers, so that the picture is the same on every CPU.
func paint(g *rand.PCG, pix []byte, h, w int) {
	const cells, one = 5, 1 << 8 // grid cells an edge, steps within a cell
	const amplitude = 64         // of the noise, from its least to its greatest value
	var grid [cells + 1][cells + 1][3]int
	for y := range grid {
		for x := range grid[y] {
			for c := range grid[y][x] {
				grid[y][x][c] = int(g.Uint64() >> 56)
			}
		}
	}
	for y := range h {
		gy, fy := y*cells/h, y*cells*one/h%one
		for x := range w {
			gx, fx := x*cells/w, x*cells*one/w%one
			light := int(g.Uint64()>>56)*amplitude/256 - amplitude/2 // the same for all channels, as JPEG drops fine colours
			for c := range 3 {
				top := grid[gy][gx][c]*(one-fx) + grid[gy][gx+1][c]*fx
				bottom := grid[gy+1][gx][c]*(one-fx) + grid[gy+1][gx+1][c]*fx
				smooth := (top*(one-fy) + bottom*fy) / (one * one)
				pix[0] = byte(max(0, min(255, smooth+light)))
				pix = pix[1:]
			}
		}
	}
}
