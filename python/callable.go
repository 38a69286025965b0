package python

import (
	"context"
	"errors"

	"github.com/pipectl/pipectl/stages"
)

// Callable holds the attributes of `prepare "python"` and `augment "python"`.
type Callable struct {
	Callable string        `hcl:"callable" doc:"The callable on one item, as \"module:path\"."`
	Args     stages.Values `hcl:"args,optional" doc:"Keyword arguments for the class or function that the callable is then made by."`
	Part     string        `hcl:"part,optional" doc:"Which of the load block's lifted attributes the callable belongs to: the first, if it is left out."`
	As       string        `hcl:"as,optional" enum:"array,pil,tensor" doc:"What an image or a tensor of pipectl's own stages becomes: a numpy array, a PIL image, or a torch tensor (an image's with the channels first)."`
	Kind     string        `hcl:"output,optional" enum:"object,image,tensor,tokens,encoded" doc:"What the callable returns, as for load \"python\"."`
	Shape    []int         `hcl:"shape,optional" min:"1" doc:"The shape of what it returns, if that is always the same."`
	Interpreter
}

// Apart returns a copy with processes of its own.
func (c *Callable) Apart(name string) any {
	own := *c
	own.apart = name
	return &own
}

// Inherit takes over from the load block what is left out.
func (c *Callable) Inherit(load any) {
	c.inherit(load)
	if l, ok := load.(*Load); ok && c.Part == "" && len(l.Lift) > 0 {
		c.Part = l.Lift[0]
	}
}

// Validate reports what the attributes say against each other.
func (c *Callable) Validate() []stages.Problem {
	return append(c.validate(), shapeProblems(c.Kind, c.Shape)...)
}

// Output returns the type of what the callable returns.
func (c *Callable) Output(in stages.Type) (stages.Type, error) {
	if c.As == "pil" && in.Kind == stages.Tensor {
		return stages.Type{}, errors.New(`It gets ` + in.String() + `, which is no PIL image. Set as = "array" or as = "tensor".`)
	}
	return outputType(c.Kind, c.Shape), nil
}

// Shapeless reports whether the file leaves shape out where what the callable returns has one.
func (c *Callable) Shapeless() bool { return shapeless(c.Kind, c.Shape) }

func (c *Callable) reference() reference {
	role := "callable"
	if c.Part != "" {
		role = "part" // it is called as the data set calls what was lifted, perhaps with keywords
	}
	return reference{role, c.Callable, c.Args}
}

// Start starts the interpreter and finds the callable.
func (c *Callable) Start(ctx context.Context) (stages.Processes, error) {
	h, err := c.resolved(ctx, c.reference(), nil)
	if err != nil {
		return nil, err // and no nil *Hold, which would not be nil
	}
	return h, nil
}

// New makes an instance, which has a process of its own.
func (c *Callable) New() (stages.Stage, error) {
	h, err := c.start(context.Background())
	if err != nil {
		return nil, err
	}
	what := stageProcess{Stage: "transform", reference: c.reference(), Shape: c.Shape, Part: c.Part, Form: c.As}
	return &caller{newWorker(h, what, outputType(c.Kind, c.Shape), c.timeout())}, nil
}

// caller calls a callable on items.
type caller struct{ *worker }

// Process has the process call the callable.
func (s *caller) Process(c *stages.Call, in, out *stages.Element) error {
	seed := uint64(0)
	if c.Rand != nil {
		seed = c.Rand.Uint64()
	}
	shared, err := s.room.shared(data(in))
	if err != nil {
		return err
	}
	s.begin(opTransform, seed, c.Rand != nil)
	s.entry(in.Type, c.Item.Label, shared)
	_, err = s.call(c.Context, out)
	return err
}
