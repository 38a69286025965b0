package stages

import (
	"context"
	"io"
	"time"
)

// Values are named values as an HCL object holds them: strings, numbers (float64, or int64 where whole), bools, nil, []any and
// map[string]any.
type Values map[string]any

// Remote is implemented by a spec whose work is done by other processes.
type Remote interface {
	// Start starts the processes, where they don't run yet, and finds there what the spec names. They run until what it returns
	// is closed, and the instances made of the spec are.
	Start(ctx context.Context) (Processes, error)
}

// Processes does part of a pipeline's work outside this process.
type Processes interface {
	io.Closer
	// CPUTime returns how much CPU time the processes have used so far; false if that is unknown. Two Processes may be the same:
	// Key tells.
	CPUTime() (time.Duration, bool)
	Key() any
}

// Inheritor is implemented by a spec that has attributes of the load block's spec where it leaves them out.
type Inheritor interface{ Inherit(load any) }

// Shaper is implemented by a spec that only the file can tell the shape of what it makes: by its attribute shape.
type Shaper interface {
	// Shapeless reports whether the file leaves it out.
	Shapeless() bool
}

// CollateSpec is implemented by a pointer to what operators of the batch block add to its attributes.
type CollateSpec interface {
	Remote
	// Collates reports whether the attributes are set: otherwise batches are collated as ever.
	Collates() bool
	// New makes an instance for one worker.
	New() (Collator, error)
}

// Collator makes a batch of samples. An instance belongs to one worker.
type Collator interface {
	// Collate leaves in b.Object what becomes of b's samples, which stay as they are. The samples are those of b.Ragged, or of
	// the dense array, up to b.Len.
	Collate(ctx context.Context, b *Batch) error
	Close() error
}

// Separable is implemented by a spec whose work other processes do: Apart returns a copy of it with processes of its own, which it shares
// with the copies of other specs that are given the same name.
type Separable interface{ Apart(name string) any }
