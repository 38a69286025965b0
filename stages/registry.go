package stages

import (
	"fmt"
	"slices"
	"time"
)

// The blocks that operators stand in.
const (
	Load    = "load"
	Prepare = "prepare"
	Augment = "augment"
	Train   = "train"
	Collate = "batch" // its operators' attributes stand beside the batch block's own, which has no type label
)

// Operator is one type of load, prepare, augment or train block. Its spec drives decoding, validation, `pipectl stages`
// and docs/stages.md.
//
// The fields of a spec struct that are attributes carry these tags:
//
//	hcl:"size"           the attribute's name; hcl:"p,optional" where it may be left out
//	doc:"…"              one sentence or more, in Markdown
//	min:"0" max:"1"      inclusive limits for numbers, for each number of a list, and for sizes and durations in their text
//	                     form; moremin:"0" and lessmax:"1" for exclusive limits
//	enum:"auto,cuda,cpu" the values a string may have
//
// Their types: string, bool, int, uint64, float64, Count, Path, Bytes, Jitter, time.Duration, []string, []Path, and []int
// or []float64, which also accept a single number; Values, and map[string]string. The value that New sets in an optional field is its default; a
// pointer to one of the types stands for an optional attribute that has none.
type Operator struct {
	Block   string // Load, Prepare, Augment, Train or Collate
	Type    string
	Summary string // one line, without the type's name
	Doc     string // Markdown paragraphs: semantics, source, differences from torchvision; may be empty
	New     func() any
}

// Path is a file or folder. In a spec it is relative to the file it stands in until it is resolved, before Validate.
type Path string

// Bytes is an amount of memory, written "512KiB" or "2GiB".
type Bytes int64

// String returns the size for people, in binary units and with three digits or more: "68.9 MiB". What files take is Text.
func (b Bytes) String() string {
	if b < 1024 {
		return fmt.Sprintf("%d B", int64(b))
	}
	units := []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	v, u := float64(b)/1024, 0
	for v >= 1023.5 && u < len(units)-1 {
		v /= 1024
		u++
	}
	decimals := 0
	for _, limit := range []float64{99.95, 9.995} {
		if v < limit {
			decimals++
		}
	}
	return fmt.Sprintf("%.*f %s", decimals, v, units[u])
}

// Jitter says how far a duration varies around its middle, uniformly: by an absolute time, written "2ms", or by a
// fraction of the duration, written as a number from 0 to 1.
type Jitter struct {
	Time     time.Duration
	Fraction float64
}

// Registry lists operators. The zero Registry is empty and ready for use.
type Registry struct {
	ops []Operator
}

// Add appends operators. It panics where one has no name or spec, is listed already, or has an attribute that can't be one
// or has the name of a common one: that is a programmer's mistake.
func (r *Registry) Add(ops ...Operator) {
	for _, op := range ops {
		switch {
		case !slices.Contains([]string{Load, Prepare, Augment, Train, Collate}, op.Block) || op.Type == "" || op.New == nil:
			panic(fmt.Sprintf("stages: operator %q %q is incomplete", op.Block, op.Type))
		default:
			if _, dup := r.Lookup(op.Block, op.Type); dup {
				panic(fmt.Sprintf("stages: operator %s %q is registered twice", op.Block, op.Type))
			}
		}
		for _, a := range Attributes(op.New()) {
			if Common(op.Block, a.Name) {
				panic(fmt.Sprintf("stages: operator %s %q has an attribute %s, which the language gives to stages itself", op.Block, op.Type, a.Name))
			}
		}
		r.ops = append(r.ops, op)
	}
}

// Lookup finds the operator of a block's type.
func (r *Registry) Lookup(block, typ string) (Operator, bool) {
	for _, op := range r.ops {
		if op.Block == block && op.Type == typ {
			return op, true
		}
	}
	return Operator{}, false
}

// Operators returns all operators in the order in which they were added.
func (r *Registry) Operators() []Operator { return slices.Clone(r.ops) }

// Types returns the types of one block, in the order in which they were added.
func (r *Registry) Types(block string) []string {
	var types []string
	for _, op := range r.ops {
		if op.Block == block {
			types = append(types, op.Type)
		}
	}
	return types
}
