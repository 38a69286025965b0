package improve

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pipectl/pipectl/engine"
)

// The attributes that a Change sets.
const (
	workers  = "workers"
	prefetch = "prefetch"
	pinned   = "pinned"
)

// auto is the value that leaves workers to the planner, as HCL.
const auto = `"auto"`

// poolAddress is what the addresses of pool blocks begin with.
const poolAddress = "pool."

// Change is a difference of an experiment file: a block's attribute gets another value, or a block is taken out.
type Change struct {
	Address   string // of the block: a stage's, or "pool." and a name
	Attribute string // "": the block is taken out
	Value     string // as HCL
	Was       string // its effective value until now
	Into      string // of a block that is taken out: the address of the stage that does its work too
}

// String says what changes, as the file has it.
func (c Change) String() string {
	if c.Attribute == "" {
		return fmt.Sprintf("%s left to %s", c.Address, c.Into)
	}
	return fmt.Sprintf("%s.%s = %s", c.Address, c.Attribute, c.Value)
}

// Text joins changes that are made together.
func Text(changes []Change) string {
	if len(changes) > 2 && !slices.ContainsFunc(changes, func(c Change) bool { return c.Attribute != changes[0].Attribute || c.Value != changes[0].Value }) {
		return fmt.Sprintf("%s = %s for all of %s … %s", changes[0].Attribute, changes[0].Value, changes[0].Address, changes[len(changes)-1].Address)
	}
	var list []string
	for _, c := range changes {
		list = append(list, c.String())
	}
	return strings.Join(list, ", ")
}

// Apply returns the experiment with changes made; e stays as it is. The changes must be of blocks and attributes that it has.
func Apply(e *engine.Experiment, changes ...Change) *engine.Experiment {
	out := *e
	out.Stages, out.Pools, out.Settings = slices.Clone(e.Stages), slices.Clone(e.Pools), slices.Clone(e.Settings)
	for _, c := range changes {
		switch name, pool := strings.CutPrefix(c.Address, poolAddress); {
		case c.Attribute == "":
			out.Stages = slices.DeleteFunc(out.Stages, func(s engine.Stage) bool { return s.Address == c.Address })
			out.Settings = slices.DeleteFunc(out.Settings, func(s engine.Setting) bool { return s.Address == c.Address })
		case pool:
			for i := range out.Pools {
				if out.Pools[i].Name == name {
					c.count(&out.Pools[i].Workers, &out.Pools[i].Prefetch)
				}
			}
			for i := range out.Stages {
				if out.Stages[i].Pool == name {
					c.count(&out.Stages[i].Workers, &out.Stages[i].Prefetch)
				}
			}
		default:
			i := slices.IndexFunc(out.Stages, func(s engine.Stage) bool { return s.Address == c.Address })
			st := &out.Stages[i]
			if spec, ok := st.Spec.(*engine.TransferSpec); ok && c.Attribute == pinned {
				own := *spec
				own.Pinned = c.Value == "true"
				st.Spec = &own
			}
			c.count(&st.Workers, &st.Prefetch)
		}
		for i := range out.Settings {
			if s := &out.Settings[i]; c.Attribute != "" && s.Address == c.Address && s.Attribute == c.Attribute {
				s.Value = c.Value
			}
		}
	}
	return &out
}

// count sets workers or prefetch, if the change is about them.
func (c Change) count(w, p *int) {
	n := engine.Auto
	if c.Value != auto {
		n, _ = strconv.Atoi(c.Value) // where it is about something else, it isn't used
	}
	switch c.Attribute {
	case workers:
		*w = n
	case prefetch:
		*p = n
	}
}

// Merge returns changes as one set: of changes of the same attribute, the last, as a change of what was there at first. Those that
// lead back to that are left out, and so are those of blocks that are taken out.
func Merge(changes []Change) []Change {
	var merged []Change
	for _, c := range changes {
		i := slices.IndexFunc(merged, func(m Change) bool { return m.Address == c.Address && m.Attribute == c.Attribute })
		switch {
		case c.Attribute == "":
			merged = append(slices.DeleteFunc(merged, func(m Change) bool { return m.Address == c.Address }), c)
		case i < 0:
			merged = append(merged, c)
		default:
			merged[i].Value = c.Value
		}
	}
	return slices.DeleteFunc(merged, func(m Change) bool { return m.Attribute != "" && m.Value == m.Was })
}
