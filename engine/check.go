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
	var pool *Pool // that is fused
	if len(e.Stages) > 0 && !slices.ContainsFunc(e.Stages, func(s Stage) bool { return s.Spec == nil }) {
		var p *Problem
		if pool, p = fused(e); p != nil {
			problems = append(problems, *p)
		}
	}
	types = make([]stages.Type, len(e.Stages))
	var t stages.Type
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
	return e, types, problems
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
