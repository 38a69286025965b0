package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/pipectl/pipectl/hcl/diag"
	"github.com/pipectl/pipectl/internal/suggest"
)

// node is a value that expressions can refer to: a local or an attribute of a block. It is worked out when it is first
// asked for, so the order in the files doesn't matter.
type node struct {
	name    string // as references write it: "local.x", "prepare.decode.workers"
	subject hcl.Range
	compute func() cty.Value
	state   state
	value   cty.Value
}

type state uint8

const (
	fresh state = iota
	running
	done
)

// faulty stands for a value that can't be worked out for a reason already reported. It is unknown, and so is all that
// depends on it; nothing else makes a value unknown.
var faulty = cty.DynamicVal

// get works out a node's value.
func (l *loader) get(n *node) cty.Value {
	switch n.state {
	case running:
		names := []string{}
		for _, r := range l.running[slices.Index(l.running, n):] {
			names = append(names, r.name)
		}
		l.fail(n.subject, "Circular reference", fmt.Sprintf("%s depends on itself: %s. Break the circle with a value that "+
			"depends on none of these.", n.name, strings.Join(append(names, n.name), " → ")))
		return faulty
	case fresh:
		n.state = running
		l.running = append(l.running, n)
		n.value = n.compute()
		l.running = l.running[:len(l.running)-1]
		n.state = done
	}
	return n.value
}

// eval works out an expression that stands in block b, or at the top of a file where b is nil. What is wrong with it is
// reported; then the value is faulty, and ok false.
func (l *loader) eval(expr hclsyntax.Expression, b *block) (value cty.Value, ok bool) {
	var e *experiment
	var extra any
	if b != nil {
		e, extra = b.experiment, diag.Address(b.address)
	}
	ok = true
	names := tree{}
	for _, t := range expr.Variables() {
		path, v, d := l.resolve(t, e)
		if d != nil {
			d.Extra = extra
			l.report(d)
			ok = false
			continue
		}
		names.put(path, v)
	}
	if !ok {
		return faulty, false
	}
	return l.evalWith(expr, names, extra)
}

// constant works out an expression that can call functions, but refer to nothing.
func (l *loader) constant(expr hclsyntax.Expression) (value cty.Value, ok bool) {
	references := expr.Variables()
	for _, t := range references {
		l.fail(t.SourceRange(), "Reference in a constant", "A value can't refer to others here. What is worked out from variables goes "+
			"into a locals block.")
	}
	if len(references) > 0 {
		return faulty, false
	}
	return l.evalWith(expr, nil, nil)
}

// evalWith works out an expression that refers to nothing but names. Its diagnostics get extra.
func (l *loader) evalWith(expr hclsyntax.Expression, names tree, extra any) (value cty.Value, ok bool) {
	v, diags := expr.Value(&hcl.EvalContext{
		Variables: names.objects(),
		Functions: l.functions(folderOf(expr.Range())),
	})
	for _, d := range diags {
		d.Extra = extra
		d.Detail = withoutStack(d.Detail)
		l.report(d)
	}
	if diags.HasErrors() || !v.IsWhollyKnown() {
		return faulty, false
	}
	if infinite(v) {
		r := expr.Range()
		l.report(&hcl.Diagnostic{
			Severity: hcl.DiagError,
			Summary:  "Infinite number",
			Detail:   "This isn't a finite number, as what comes of a division by 0.",
			Subject:  &r,
			Extra:    extra,
		})
		return faulty, false
	}
	return v, true
}

// withoutStack words a detail for an author where a function or an operator of the library panicked on its arguments, as
// pow(-1, 0.5) does: the library tells of it with the stack of its goroutine.
func withoutStack(detail string) string {
	before, _, panicked := strings.Cut(detail, "panic in function implementation: ")
	if !panicked {
		return detail
	}
	return before + "there is no result for these values."
}

// infinite reports whether v is an infinite number or holds one.
func infinite(v cty.Value) bool {
	found := false
	// The callback's error is the only one that Walk returns.
	_ = cty.Walk(v, func(_ cty.Path, v cty.Value) (bool, error) {
		found = found || v.RawEquals(cty.PositiveInfinity) || v.RawEquals(cty.NegativeInfinity)
		return !found, nil
	})
	return found
}

// tree holds values by the steps of their names.
type tree map[string]any // tree or cty.Value

func (t tree) put(path []string, v cty.Value) {
	if len(path) == 1 {
		t[path[0]] = v
		return
	}
	if t[path[0]] == nil {
		t[path[0]] = tree{}
	}
	t[path[0]].(tree).put(path[1:], v)
}

func (t tree) objects() map[string]cty.Value {
	out := make(map[string]cty.Value, len(t))
	for k, v := range t {
		switch v := v.(type) {
		case tree:
			out[k] = cty.ObjectVal(v.objects())
		case cty.Value:
			out[k] = v
		}
	}
	return out
}

// resolve finds what a traversal refers to: the part of it that names a value, and the value.
func (l *loader) resolve(t hcl.Traversal, e *experiment) (path []string, v cty.Value, d *hcl.Diagnostic) {
	fail := func(summary, detail string) ([]string, cty.Value, *hcl.Diagnostic) {
		r := t.SourceRange()
		return nil, faulty, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: &r}
	}
	path = steps(t)
	root := path[0]
	need, form := 2, root+".NAME"
	switch k := blockKinds[root]; {
	case k == nil && root != "var" && root != "local":
		if e != nil {
			return fail("Unknown name", fmt.Sprintf("There is no %q to refer to. Text stands in quotes: %q. Values are var.NAME, local.NAME "+
				"and other blocks' attributes, such as batch.size.", root, root))
		}
		return fail("Unknown name", fmt.Sprintf("There is no %q to refer to. Text stands in quotes: %q. Values are var.NAME and local.NAME.",
			root, root))
	case k == nil:
	case e == nil:
		return fail("Reference outside an experiment", fmt.Sprintf("The attributes of %s blocks can be referred to only within "+
			"their experiment. Move this expression there.", root))
	case k.labels == 0:
		form = root + ".ATTRIBUTE"
	default:
		need, form = 3, root+".NAME.ATTRIBUTE"
	}
	if len(path) < need {
		return fail("Incomplete reference", fmt.Sprintf("%q isn't a value. Refer to one as %s.", strings.Join(path, "."), form))
	}
	path = path[:need]
	name := path[1]
	switch root {
	case "var":
		if v := l.vars[name]; v != nil {
			return path, v.value, nil
		}
		if l.partial {
			return path, faulty, nil
		}
		return fail("Undeclared variable", fmt.Sprintf("There is no variable %q.%s Declare it with: variable %q {}", name,
			suggest.Sentence(name, slices.Sorted(maps.Keys(l.vars))), name))
	case "local":
		if n := l.locals[name]; n != nil {
			return path, l.get(n), nil
		}
		if l.partial {
			return path, faulty, nil
		}
		return fail("Undeclared local", fmt.Sprintf("There is no local %q.%s Locals are declared in a locals block.", name,
			suggest.Sentence(name, slices.Sorted(maps.Keys(l.locals)))))
	}
	address, attribute := strings.Join(path[:need-1], "."), path[need-1]
	b := e.byAddress[address]
	if b == nil {
		if l.partial {
			return path, faulty, nil
		}
		return fail("Reference to a missing block", fmt.Sprintf("The experiment has no %s.%s", address,
			suggest.Sentence(address, slices.Sorted(maps.Keys(e.byAddress)))))
	}
	f := b.byName[attribute]
	switch {
	case f != nil:
		return path, l.get(&f.node), nil
	case b.unknown:
		return path, faulty, nil // its attributes can't be known, and that is reported
	}
	return fail("Reference to a missing attribute", fmt.Sprintf("%s has no attribute %q.%s", address, attribute,
		suggest.Sentence(attribute, b.names())))
}

// steps returns the names at the start of a traversal.
func steps(t hcl.Traversal) []string {
	names := []string{t.RootName()}
	for _, s := range t[1:] {
		switch s := s.(type) {
		case hcl.TraverseAttr:
			names = append(names, s.Name)
		case hcl.TraverseIndex:
			if s.Key.Type() != cty.String {
				return names
			}
			names = append(names, s.Key.AsString())
		default:
			return names
		}
	}
	return names
}
