package results

import (
	"slices"
	"strings"

	"github.com/pipectl/pipectl/engine"
)

// SettingChange is an attribute whose effective value differs.
type SettingChange struct {
	Address, Attribute string
	A, B               *string // as HCL; nil where a run doesn't have it
}

func settingChanges(a, b []engine.Setting) []SettingChange {
	var out []SettingChange
	for _, p := range pairs(a, b, func(s engine.Setting) string { return s.Address + " " + s.Attribute }) {
		if p.a != nil && p.b != nil && p.a.Value == p.b.Value {
			continue
		}
		change := SettingChange{Address: p.either().Address, Attribute: p.either().Attribute}
		if p.a != nil {
			change.A = &p.a.Value
		}
		if p.b != nil {
			change.B = &p.b.Value
		}
		out = append(out, change)
	}
	return out
}

// orderChange tells where the stages that both runs have stand in another order. Stages that only one has show as
// settings, and stages that stand alike at both ends are left out.
func orderChange(a, b []Stage) []SettingChange {
	var inA, inB []string
	for _, p := range pairs(a, b, func(s Stage) string { return s.Address }) {
		if p.a != nil && p.b != nil {
			inA, inB = append(inA, p.a.Address), append(inB, p.a.Address)
		}
	}
	place := func(stages []Stage) func(x, y string) int {
		at := func(address string) int {
			return slices.IndexFunc(stages, func(s Stage) bool { return s.Address == address })
		}
		return func(x, y string) int { return at(x) - at(y) }
	}
	slices.SortFunc(inA, place(a))
	slices.SortFunc(inB, place(b))
	if slices.Equal(inA, inB) {
		return nil
	}
	for inA[0] == inB[0] {
		inA, inB = inA[1:], inB[1:]
	}
	for n := len(inA) - 1; inA[n] == inB[n]; n-- {
		inA, inB = inA[:n], inB[:n]
	}
	before, after := strings.Join(inA, ", "), strings.Join(inB, ", ")
	return []SettingChange{{Attribute: "order", A: &before, B: &after}}
}
