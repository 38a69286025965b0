package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/pipectl/pipectl/internal/suggest"
)

// environPrefix is how the environment names variables.
const environPrefix = "PIPECTL_VAR_"

// variable is a variable block and the value it got.
type variable struct {
	name     string
	syntax   *hclsyntax.Block
	typ      cty.Type // DynamicPseudoType: any
	defaults *typeexpr.Defaults
	value    cty.Value
	subject  hcl.Range // where the value was given
}

// source gives a variable its value: an expression in a file of values, or a text from the command line or environment.
type source struct {
	expr hclsyntax.Expression
	text hcl.Range // of the text in Config.Files; used where expr is nil
}

// declare collects the top-level blocks of all files.
func (l *loader) declare() {
	for _, body := range l.bodies {
		for _, a := range sortedAttributes(body) {
			l.fail(a.NameRange, "Attribute outside a block", fmt.Sprintf("%q stands at the top of the file, where only blocks can. "+
				"Values that several blocks share go into a locals block.", a.Name))
		}
		for _, b := range body.Blocks {
			switch b.Type {
			case "variable":
				l.declareVariable(b)
			case "locals":
				l.declareLocals(b)
			case "experiment":
				l.declareExperiment(b)
			default:
				detail := fmt.Sprintf("A file holds variable, locals and experiment blocks, not %q.%s", b.Type, suggest.Sentence(b.Type, topLevel()))
				if blockKinds[b.Type] != nil {
					detail = fmt.Sprintf("A %s block stands inside an experiment block.", b.Type)
				}
				l.fail(b.DefRange(), "Unknown block", detail)
			}
		}
	}
}

// topLevel returns the blocks that may stand at the top of a file.
func topLevel() []string { return []string{"variable", "locals", "experiment"} }

// label returns the only label of a block, a name, and reports where it hasn't one.
func (l *loader) label(b *hclsyntax.Block) (string, bool) {
	if len(b.Labels) != 1 {
		l.wrongLabels(b, 1)
		return "", false
	}
	return b.Labels[0], l.checkName(b.Labels[0], b.LabelRanges[0])
}

// wrongLabels says which labels a block should have.
func (l *loader) wrongLabels(b *hclsyntax.Block, want int) {
	detail := [...]string{
		"%s blocks have no label: %[1]s { … }",
		"%s blocks have one label, their name: %[1]s \"name\" { … }",
		"%s blocks have two labels, their type and their name: %[1]s \"type\" \"name\" { … }",
	}[want]
	l.fail(b.DefRange(), "Wrong labels", fmt.Sprintf(detail, b.Type))
}

func (l *loader) checkName(name string, r hcl.Range) bool {
	if hclsyntax.ValidIdentifier(name) {
		return true
	}
	l.fail(r, "Malformed name", fmt.Sprintf("%q can't be a name: use letters, digits, \"_\" and \"-\", and begin with a letter.", name))
	return false
}

func (l *loader) duplicate(r hcl.Range, what string, first hcl.Range) {
	l.fail(r, "Duplicate name", fmt.Sprintf("%s stands at %s already. Give one of them another name.", what, place(first)))
}

// place writes where a range starts.
func place(r hcl.Range) string {
	return fmt.Sprintf("%s:%d:%d", r.Filename, r.Start.Line, r.Start.Column)
}

func (l *loader) declareVariable(b *hclsyntax.Block) {
	name, ok := l.label(b)
	if !ok {
		return
	}
	if first := l.vars[name]; first != nil {
		l.duplicate(b.DefRange(), fmt.Sprintf("A variable %q", name), first.syntax.DefRange())
		return
	}
	v := &variable{name: name, syntax: b, typ: cty.DynamicPseudoType, value: faulty, subject: b.DefRange()}
	l.vars[name] = v
	known := []string{"type", "default", "description"}
	for _, a := range sortedAttributes(b.Body) {
		switch a.Name {
		case "type":
			t, defaults, diags := typeexpr.TypeConstraintWithDefaults(a.Expr)
			l.diags = append(l.diags, diags...)
			if !diags.HasErrors() {
				v.typ, v.defaults = t, defaults
			}
		case "description":
			if d, ok := l.constant(a.Expr); ok && (d.IsNull() || d.Type() != cty.String) {
				l.fail(a.Expr.Range(), "Wrong type", "description needs a string.")
			}
		case "default": // worked out where nothing else gives the value
		default:
			l.fail(a.NameRange, "Unknown attribute", fmt.Sprintf("A variable block has no attribute %q.%s", a.Name, suggest.Sentence(a.Name, known)))
		}
	}
	for _, inner := range b.Body.Blocks {
		if inner.Type != "validation" {
			l.fail(inner.DefRange(), "Unknown block", fmt.Sprintf("A variable block holds validation blocks, not %q.%s", inner.Type,
				suggest.Sentence(inner.Type, append(known, "validation"))))
		}
	}
}

// assignVariables gives every variable its value, from the source that comes last in the order of precedence.
func (l *loader) assignVariables() {
	sources := map[string]source{}
	for _, name := range slices.Sorted(maps.Keys(l.vars)) {
		if text, ok := lookupEnv(l.Environ, environPrefix+name); ok {
			sources[name] = source{text: l.keep(environPrefix+name, text, 0)}
		}
	}
	for _, name := range l.autoVars() {
		l.readVars(name, sources)
	}
	for _, a := range l.Assignments {
		if a.File != "" {
			l.readVars(a.File, sources)
		} else {
			l.readVar(a.Var, sources)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.vars)) {
		v := l.vars[name]
		s, given := sources[name]
		def := v.syntax.Body.Attributes["default"]
		if def != nil {
			// A faulty default is a mistake even where another source overrides it.
			if value, ok := l.constant(def.Expr); ok {
				v.value = l.convert(v, value, def.Expr.Range())
			}
		}
		switch {
		case given && s.expr != nil:
			value, ok := l.constant(s.expr)
			v.value = faulty
			if ok {
				v.value = l.convert(v, value, s.expr.Range())
			}
		case given:
			v.value = l.parseText(v, s.text)
		case def == nil && !l.partial && !l.partialValues:
			l.fail(v.syntax.DefRange(), "No value for variable", fmt.Sprintf("Give %q a default, or a value with --var '%[1]s=…', "+
				"in a file of values (--var-file, %s or *%s), or in the environment as %s%[1]s.", name, varsFile, autoExtension, environPrefix))
		}
	}
}

// keep stores a text that isn't in a file, so that diagnostics can show it, and returns the range of what follows its
// first bytes.
func (l *loader) keep(name, text string, from int) hcl.Range {
	l.config.Files[name] = []byte(text)
	return hcl.Range{
		Filename: name,
		Start:    hcl.Pos{Line: 1, Column: from + 1, Byte: from},
		End:      hcl.Pos{Line: 1, Column: len(text) + 1, Byte: len(text)},
	}
}

// readVar reads one --var.
func (l *loader) readVar(assignment string, sources map[string]source) {
	name, _, ok := strings.Cut(assignment, "=")
	if !ok || !hclsyntax.ValidIdentifier(name) {
		l.fail(l.keep("--var", assignment, 0), "Malformed --var", "Write it as --var 'name=value'.")
		return
	}
	r := l.keep("--var "+name, assignment, len(name)+1)
	if l.vars[name] == nil {
		if !l.partial {
			r.Start, r.End.Byte, r.End.Column = hcl.InitialPos, len(name), len(name)+1
			l.fail(r, "Undeclared variable", l.undeclared(name))
		}
		return
	}
	sources[name] = source{text: r}
}

func (l *loader) undeclared(name string) string {
	return fmt.Sprintf("The experiment files declare no variable %q.%s", name, suggest.Sentence(name, slices.Sorted(maps.Keys(l.vars))))
}

// readVars reads a file of values.
func (l *loader) readVars(name string, sources map[string]source) {
	body, ok := l.parse(name)
	l.partialValues = l.partialValues || !ok
	for _, b := range body.Blocks {
		l.fail(b.DefRange(), "Block in a file of values", "A file of values holds no blocks. Write the values of variables as name = value.")
	}
	for _, a := range sortedAttributes(body) {
		if l.vars[a.Name] != nil {
			sources[a.Name] = source{expr: a.Expr}
		} else if !l.partial {
			l.report(&hcl.Diagnostic{
				Severity: hcl.DiagWarning,
				Summary:  "Undeclared variable",
				Detail:   l.undeclared(a.Name),
				Subject:  &a.NameRange,
			})
		}
	}
}

// parseText reads a variable's value from the command line or the environment: as it stands where the variable is
// a string, a number or a bool, else as HCL. For a variable without a type, brackets start HCL, and a default's type is
// taken if the text fits it.
func (l *loader) parseText(v *variable, r hcl.Range) cty.Value {
	text := string(l.config.Files[r.Filename][r.Start.Byte:r.End.Byte])
	start := strings.TrimSpace(text)
	if v.typ == cty.DynamicPseudoType && !strings.HasPrefix(start, "[") && !strings.HasPrefix(start, "{") {
		value := cty.StringVal(text)
		if fits, err := convert.Convert(value, v.value.Type()); err == nil {
			value = fits
		}
		return l.convert(v, value, r)
	}
	if v.typ.IsPrimitiveType() {
		return l.convert(v, cty.StringVal(text), r)
	}
	if d := excess([]byte(text), r.Filename); d != nil {
		l.report(d)
		return faulty
	}
	expr, diags := hclsyntax.ParseExpression([]byte(text), r.Filename, r.Start)
	l.diags = append(l.diags, diags...)
	if diags.HasErrors() {
		return faulty
	}
	value, ok := l.constant(expr)
	if !ok {
		return faulty
	}
	return l.convert(v, value, r)
}

// convert makes a value given at r the variable's type.
func (l *loader) convert(v *variable, value cty.Value, r hcl.Range) cty.Value {
	v.subject = r
	if value.IsNull() {
		l.fail(r, "Null value", fmt.Sprintf("The variable %q can't be null.", v.name))
		return faulty
	}
	if v.defaults != nil {
		value = v.defaults.Apply(value)
	}
	converted, err := convert.Convert(value, v.typ)
	if err != nil {
		l.fail(r, "Wrong type", fmt.Sprintf("The variable %q is a %s, which this value doesn't fit: %v.", v.name,
			typeexpr.TypeString(v.typ), err))
		return faulty
	}
	return converted
}

// checkVariables works out the validation blocks.
func (l *loader) checkVariables() {
	for _, name := range slices.Sorted(maps.Keys(l.vars)) {
		for _, b := range l.vars[name].syntax.Body.Blocks {
			if b.Type == "validation" {
				l.validate(l.vars[name], b)
			}
		}
	}
}

func (l *loader) validate(v *variable, b *hclsyntax.Block) {
	known := []string{"condition", "error_message"}
	for _, a := range sortedAttributes(b.Body) {
		if !slices.Contains(known, a.Name) {
			l.fail(a.NameRange, "Unknown attribute", fmt.Sprintf("A validation block has no attribute %q.%s", a.Name, suggest.Sentence(a.Name, known)))
		}
	}
	for _, name := range known {
		if b.Body.Attributes[name] == nil && !l.partial {
			l.fail(b.DefRange(), "Missing attribute", fmt.Sprintf("A validation block needs %s and %s.", known[0], known[1]))
			return
		}
	}
	condition, message := b.Body.Attributes[known[0]], b.Body.Attributes[known[1]]
	if condition == nil || message == nil {
		return
	}
	c, ok := l.eval(condition.Expr, nil)
	if !ok {
		return
	}
	m, ok := l.eval(message.Expr, nil)
	if !ok {
		return
	}
	c, err := convert.Convert(c, cty.Bool)
	if err != nil || c.IsNull() {
		l.fail(condition.Expr.Range(), "Wrong type", "condition must be true or false.")
		return
	}
	m, err = convert.Convert(m, cty.String)
	if err != nil || m.IsNull() {
		l.fail(message.Expr.Range(), "Wrong type", "error_message needs a string.")
		return
	}
	if c.False() {
		l.fail(v.subject, "Invalid value for variable", fmt.Sprintf("%s (The rule at %s.)", m.AsString(), place(b.DefRange())))
	}
}

// declareLocals adds the values of a locals block.
func (l *loader) declareLocals(b *hclsyntax.Block) {
	if len(b.Labels) > 0 {
		l.wrongLabels(b, 0)
	}
	for _, inner := range b.Body.Blocks {
		l.fail(inner.DefRange(), "Unknown block", "A locals block holds no blocks. Write its values as name = value.")
	}
	for _, a := range sortedAttributes(b.Body) {
		if first := l.locals[a.Name]; first != nil {
			l.duplicate(a.NameRange, fmt.Sprintf("A local %q", a.Name), first.subject)
			continue
		}
		l.locals[a.Name] = &node{name: "local." + a.Name, subject: a.NameRange, compute: func() cty.Value {
			v, _ := l.eval(a.Expr, nil)
			return v
		}}
	}
}

// evaluateLocals works out all locals, so that the mistakes in those that nothing refers to are found too.
func (l *loader) evaluateLocals() {
	for _, name := range slices.Sorted(maps.Keys(l.locals)) {
		l.get(l.locals[name])
	}
}

// sortedAttributes returns the attributes of a body in the order of the file.
func sortedAttributes(b *hclsyntax.Body) []*hclsyntax.Attribute {
	return slices.SortedFunc(maps.Values(b.Attributes), func(a, b *hclsyntax.Attribute) int {
		return a.SrcRange.Start.Byte - b.SrcRange.Start.Byte
	})
}

// folderOf returns the folder at which relative paths start in the file of r.
func folderOf(r hcl.Range) string { return filepath.Dir(r.Filename) }
