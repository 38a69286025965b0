package python

import (
	"context"
	"encoding/binary"

	"github.com/pipectl/pipectl/stages"
)

// Collate holds the attributes of the batch block that say how Python code collates.
type Collate struct {
	Collate string `hcl:"collate,optional" doc:"The Python function that makes a batch of a list of samples, as \"module:path\". If it is left out, samples of Python's are collated by the loader's own function, else as torch does by default; all others by pipectl."`

	in     Interpreter // the load block's
	loader reference   // that has a function of its own
}

// Apart returns a copy with processes of its own.
func (c *Collate) Apart(name string) any {
	own := *c
	own.in.apart = name
	return &own
}

// Inherit takes over from the load block what is left out.
func (c *Collate) Inherit(load any) {
	c.in.inherit(load)
	if l, ok := load.(*Load); ok {
		c.in.Timeout = l.Timeout
		if l.Loader != "" {
			c.loader = l.reference()
		}
	}
}

// Collates reports whether a function is given.
func (c *Collate) Collates() bool { return c.Collate != "" }

// Start starts the interpreter and finds the function.
func (c *Collate) Start(ctx context.Context) (stages.Processes, error) {
	h, err := c.in.resolved(ctx, reference{Role: "collate", Ref: c.Collate}, nil)
	if err != nil {
		return nil, err // and no nil *Hold, which would not be nil
	}
	return h, nil
}

// New makes an instance, which has a process of its own.
func (c *Collate) New() (stages.Collator, error) {
	h, err := c.in.start(context.Background())
	if err != nil {
		return nil, err
	}
	what := stageProcess{Stage: "collate", reference: reference{Role: "collate", Ref: c.Collate}, Shape: []int{}, Form: "array", Loader: c.loader.Ref}
	what.Args = c.loader.Args
	return &collator{newWorker(h, what, stages.Type{Kind: stages.Object}, c.in.timeout())}, nil
}

type collator struct{ *worker }

// Collate has the process make b.Object of the samples.
func (c *collator) Collate(ctx context.Context, b *stages.Batch) error {
	samples, err := c.room.samples(b)
	if err != nil {
		return err
	}
	c.begin(opCollate, 0, false)
	c.frame = binary.LittleEndian.AppendUint32(c.frame, uint32(b.Len))
	for i, s := range samples {
		c.entry(s.typ, b.Labels[i], s.data)
	}
	_, err = c.call(ctx, &b.Object)
	return err
}
