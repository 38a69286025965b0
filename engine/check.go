package engine

import (
	"fmt"
	"slices"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

// Problem is what keeps an experiment from running, found before it runs.
type Problem struct {
	Address   string // the stage's; "" for the experiment as a whole
	Attribute string // "" for the block as a whole
	Summary   string
	Detail    string // what to do, in full sentences
	Warning   bool
}

// Check follows the elements from stage to stage, in the order in which the stages run, and returns every mismatch. types[k] is
// the type at boundary k of that order, which is Unknown behind a faulty stage: nothing is said of what can't be known.
func Check(e *Experiment) (types []stages.Type, problems []Problem) {
	_, types, problems = check(e)
	return types, problems
}

// check is Check that also returns the experiment in the order in which its stages run.
func check(e *Experiment) (arranged *Experiment, types []stages.Type, problems []Problem) {
	e, problems = arrange(e)
	problems = append(problems, unreachable(e)...)
	problems = append(problems, unkeepable(e)...)
	var pool *Pool // that is fused
	if len(e.Stages) > 0 && !slices.ContainsFunc(e.Stages, func(s Stage) bool { return s.Spec == nil }) {
		var p *Problem
		if pool, p = fused(e); p != nil {
			problems = append(problems, *p)
		}
	}
	types = make([]stages.Type, len(e.Stages))
	var t stages.Type
	var mixing stages.Mixing
	for i, s := range e.Stages {
		next := t
		switch spec := s.Spec.(type) {
		case nil:
			next = stages.Type{}
		case stages.SourceSpec:
			next = spec.Output()
			if i > 0 && t.Kind != stages.Unknown {
				given := next
				if next = interleavedType(t, given); next.Kind == stages.Unknown {
					problems = append(problems, Problem{Address: s.Address, Summary: fmt.Sprintf("%s gives something else than %s", s.Address, e.Stages[0].Address),
						Detail: fmt.Sprintf("It gives %s, and the load blocks above %s. The stages below take the items of all load blocks as they come, so these must be of one "+
							"kind. Let each give the same, or part them into experiments of their own.", given, t)})
				}
			}
		case *BatchSpec:
			mixing = spec.Mixing
			problems = append(problems, checkMixing(spec, t, pool != nil)...)
		case stages.StageSpec:
			if i > 0 && t.Kind == stages.Unknown {
				break
			}
			out, err := spec.Output(t)
			if err == nil && s.Device {
				err = stages.DeviceTakes(spec, t)
			}
			if err != nil {
				problems = append(problems, mismatch(s, t, err))
				out = stages.Type{}
			}
			next = out
		case gpu.TrainSpec:
			if _, remote := s.Spec.(stages.Remote); remote && mixing.On() && pool == nil {
				problems = append(problems, unmixed(mixing, "The training function gets samples of one label each, and pipectl mixes them here. Mix them in the function."))
			}
			problems = append(problems, uncached(e, spec)...)
			if t.Kind == stages.Unknown {
				break
			}
			if err := spec.Accepts(t); err != nil {
				problems = append(problems, mismatch(s, t, shapeAdvice(e, types[:i+1], err)))
			}
		}
		if i+1 < len(types) {
			types[i+1] = next
		}
		t = next
	}
	return e, types, append(problems, cramped(e, types)...)
}

// unkeepable reports checkpoints that can't keep what passes them.
func unkeepable(e *Experiment) (problems []Problem) {
	for _, s := range e.Stages {
		if c := s.Checkpoint; c != nil && c.Mode == KeepMode && len(e.Loads()) > 1 {
			problems = append(problems, Problem{
				Address: c.Address(), Attribute: "mode",
				Summary: "Nothing to keep of several load blocks",
				Detail: "A kept cache is filled in the first epoch, which has only a part of the items where several load blocks are mixed. Leave mode out: the " +
					"checkpoint is a probe point then.",
			})
		}
	}
	return problems
}

// uncached reports checkpoints whose caches need a GPU, where the step asks for the CPU.
func uncached(e *Experiment, train gpu.TrainSpec) (problems []Problem) {
	for _, s := range e.Stages {
		if c := s.Checkpoint; c != nil && c.Mode != OffMode && (c.Store == PinnedStore || c.Store == DeviceStore) && train.Want() == "cpu" {
			problems = append(problems, Problem{
				Address: c.Address(), Attribute: "store",
				Summary: "No CUDA device",
				Detail:  fmt.Sprintf("Caches in store = %q need a CUDA device, and the training step runs on the CPU. Leave store out.", c.Store),
			})
		}
	}
	return problems
}

// cramped reports checkpoints whose limit is known to leave no room for what is kept there at least: an item that stays, or a batch of those
// that the ceiling is measured from.
func cramped(e *Experiment, types []stages.Type) (problems []Problem) {
	samples := 0
	for i, s := range e.Stages {
		if b, ok := s.Spec.(*BatchSpec); ok {
			samples = b.Size
		}
		c := s.Checkpoint
		if c == nil || c.Limit == 0 || i+1 == len(types) {
			continue
		}
		what, need := "item", int64(types[i+1].Size())
		switch {
		case c.Mode == KeepMode && !c.Compress:
		case c.Mode != KeepMode && i+2 == len(types):
			what, need = "batch", need*int64(samples)
		default:
			continue
		}
		if int64(c.Limit) < need {
			problems = append(problems, Problem{
				Address: c.Address(), Attribute: "limit",
				Summary: "No room for one " + what,
				Detail:  fmt.Sprintf("The cache may take %s, and one %s takes %s. Set a higher limit, or leave it out.", c.Limit, what, stages.Bytes(need)),
			})
		}
	}
	return problems
}

// shapeAdvice returns err, the step's, with what may make an end to it where its pictures or tensors are of many sizes only because the
// file doesn't say what a stage gives. types[i] is the type that stage i gets, the last of them the step's.
func shapeAdvice(e *Experiment, types []stages.Type, err error) error {
	last := len(types) - 1
	if k := types[last].Kind; types[last].Fixed() || k != stages.Image && k != stages.Tensor {
		return err
	}
	for i := last - 1; i >= 0; i-- {
		in, out := types[i], types[i+1]
		shaper, ok := e.Stages[i].Spec.(stages.Shaper)
		if !ok && in.Fixed() || ok && !shaper.Shapeless() {
			break
		}
		if !ok {
			continue
		}
		shape := "[height, width, 3]"
		switch {
		case in.Fixed() && in.Kind == out.Kind:
			shape = fmt.Sprintf("[%d, %d, %d]", in.Shape[0], in.Shape[1], in.Shape[2])
		case out.Kind == stages.Tensor:
			shape = "[channels, height, width]"
		}
		return fmt.Errorf("%s doesn't say what shape it gives: if that is always the same, set shape = %s on its block. If it isn't: %w", e.Stages[i].Address, shape, err)
	}
	return err
}

// interleavedType returns the type of elements that are of either type, each from a load block of its own, or the zero Type where that can't
// be. What differs in shape differs from item to item.
func interleavedType(a, b stages.Type) stages.Type {
	if a.Kind != b.Kind {
		return stages.Type{}
	}
	for i := range a.Shape {
		if a.Shape[i] != b.Shape[i] {
			a.Shape[i] = 0
		}
	}
	return a
}

func mismatch(s Stage, in stages.Type, err error) Problem {
	return Problem{
		Address: s.Address,
		Summary: fmt.Sprintf("%s can't take %s", s.Address, in),
		Detail:  err.Error(),
	}
}
