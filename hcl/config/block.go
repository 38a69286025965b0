package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/hcl/diag"
	"github.com/pipectl/pipectl/internal/suggest"
	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/storage"
)

// block is one block of an experiment, or the experiment itself, with the attributes that it accepts.
type block struct {
	experiment *experiment
	syntax     *hclsyntax.Block
	kind       string
	typ, name  string
	address    string // as in engine.Setting
	pool       *block
	checkpoint *block // of a stage: the one after it
	unknown    bool   // its operator isn't known, so neither are its attributes
	malformed  bool   // its labels are wrong
	decoded    bool   // its values can be relied on
	outOfOrder bool   // of a stage: that it stands in the wrong place is reported
	shipped    bool   // of a prepare or augment block: it stands between transfer and train

	// The structs that its attributes are decoded into; nil where it has none of these.
	spec         any
	workers      *workerAttributes
	shared       *poolAttributes
	batchWorkers *batchWorkerAttributes
	collate      any // the batch's: what an operator adds to its attributes
	errors       *errorAttributes
	device       *deviceAttributes
	load         *loadAttributes

	fields []*field
	byName map[string]*field
}

// field is an attribute that a block accepts.
type field struct {
	node
	attribute stages.Attribute
	dst       reflect.Value        // the spec's field
	syntax    *hclsyntax.Attribute // nil where the file leaves it out
	faulty    bool
}

// header is how a block's author calls it: `prepare "resize" "small"`.
func (b *block) header() string {
	var s strings.Builder
	s.WriteString(b.syntax.Type)
	for _, l := range b.syntax.Labels {
		fmt.Fprintf(&s, " %q", l)
	}
	return s.String()
}

func (b *block) names() []string {
	var names []string
	for _, f := range b.fields {
		names = append(names, f.attribute.Name)
	}
	return names
}

// fail reports an error in block b, at r.
func (l *loader) failIn(b *block, r hcl.Range, summary, detail string) {
	l.report(&hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: &r, Extra: diag.Address(b.address),
	})
}

// accept finds the attributes that the block takes.
func (l *loader) accept(b *block) {
	b.byName = map[string]*field{}
	if lead := b.lead(); lead != nil {
		// What that sets holds for its stages, so they can be referred to for it.
		for _, name := range []string{"workers", "prefetch"} {
			b.byName[name] = lead.byName[name]
		}
	}
	if b.spec != nil {
		l.acceptSpec(b, b.spec)
	}
	if b.workers != nil {
		l.acceptSpec(b, b.workers)
	}
	if b.shared != nil {
		l.acceptSpec(b, b.shared)
	}
	if b.batchWorkers != nil {
		l.acceptSpec(b, b.batchWorkers)
	}
	if b.collate != nil {
		l.acceptSpec(b, b.collate)
	}
	if b.errors != nil {
		l.acceptSpec(b, b.errors)
	}
	if b.device != nil {
		l.acceptSpec(b, b.device)
	}
	if b.load != nil {
		l.acceptSpec(b, b.load)
	}
}

func (l *loader) acceptSpec(b *block, spec any) {
	for _, a := range stages.Attributes(spec) {
		f := &field{
			attribute: a,
			dst:       reflect.ValueOf(spec).Elem().FieldByIndex(a.Field.Index),
			syntax:    b.syntax.Body.Attributes[a.Name],
		}
		f.node = node{name: strings.TrimPrefix(b.address+"."+a.Name, "."), subject: b.syntax.DefRange()}
		if f.syntax != nil {
			f.subject = f.syntax.Expr.Range()
			l.config.ranges[position{b.experiment.name, b.address, a.Name}] = f.subject
		}
		f.compute = func() cty.Value { return l.decode(b, f) }
		b.fields = append(b.fields, f)
		b.byName[a.Name] = f
	}
}

// decode sets a field from the file and returns its effective value.
func (l *loader) decode(b *block, f *field) cty.Value {
	if f.syntax == nil {
		if !f.attribute.Required {
			return valueOf(f.dst)
		}
		f.faulty = true
		if !l.partial {
			l.failIn(b, b.syntax.DefRange(), "Missing attribute", fmt.Sprintf("%s needs the attribute %q: a %s%s. %s", b.header(),
				f.attribute.Name, f.attribute.Type, prefix(" ", f.attribute.Limits()), f.attribute.Doc))
		}
		return faulty
	}
	v, ok := l.eval(f.syntax.Expr, b)
	if !ok {
		f.faulty = true
		return faulty
	}
	if fault := assign(f.dst, f.attribute, v); fault != nil {
		f.faulty = true
		name, r := f.attribute.Name, f.subject
		if fault.index >= 0 {
			name = fmt.Sprintf("%s[%d]", name, fault.index)
			if list, ok := f.syntax.Expr.(*hclsyntax.TupleConsExpr); ok && fault.index < len(list.Exprs) {
				r = list.Exprs[fault.index].Range()
			}
		}
		detail := name + " " + fault.detail
		if !strings.HasSuffix(detail, ".") && !strings.HasSuffix(detail, "?") {
			detail += "."
		}
		l.failIn(b, r, fault.summary, detail)
		return faulty
	}
	effective := valueOf(f.dst)
	if f.dst.Kind() == reflect.Slice && v.Type() != cty.Number && effective.Type() == cty.Number {
		return cty.TupleVal([]cty.Value{effective}) // who writes a list can refer to its elements
	}
	return effective
}

func prefix(p, s string) string {
	if s == "" {
		return ""
	}
	return p + s
}

// decodeAll decodes every attribute of the block and reports those that it doesn't accept. It returns false where the
// block's values can't be relied on.
func (l *loader) decodeAll(b *block) bool {
	ok := !b.unknown
	for _, f := range b.fields {
		l.get(&f.node)
		ok = ok && !f.faulty
	}
	for _, a := range sortedAttributes(b.syntax.Body) {
		if slices.Contains(b.names(), a.Name) {
			continue
		}
		if why := b.misplaced(a.Name); why != "" {
			l.failIn(b, a.NameRange, "Misplaced attribute", why)
		} else if !b.unknown {
			hint := suggest.Sentence(a.Name, b.names())
			if hint == "" && len(b.fields) > 0 {
				hint = " It has " + strings.Join(b.names(), ", ") + "."
			}
			l.failIn(b, a.NameRange, "Unknown attribute", fmt.Sprintf("%s has no attribute %q.%s", b.header(), a.Name, hint))
		}
		l.eval(a.Expr, b) // for the mistakes in its value
	}
	if b.kind != poolBlock && b.kind != experimentBlock {
		for _, inner := range b.syntax.Body.Blocks {
			l.failIn(b, inner.DefRange(), "Unknown block", fmt.Sprintf("A %s block holds attributes, such as name = value, and no "+
				"blocks.", b.kind))
		}
	}
	return ok
}

// lead returns the block that sets the workers of a stage which shares those of others: its pool, or the first load block. It is nil where
// the stage has its own.
func (b *block) lead() *block {
	first := b.experiment.single[stages.Load]
	switch {
	case b.pool != nil:
		return b.pool
	case b.kind == stages.Load && first != nil && first != b:
		return first
	}
	return nil
}

// misplaced says where a common attribute belongs that the block doesn't accept, or "".
func (b *block) misplaced(name string) string {
	if !stages.Common(b.kind, name) {
		return ""
	}
	parallel := name == "workers" || name == "prefetch"
	switch {
	case parallel && b.pool != nil:
		return fmt.Sprintf("The stages in a pool share its workers and its queue. Set %s at %s, or move the stage out of it.", name,
			b.pool.header())
	case parallel && b.kind == stages.Load:
		return fmt.Sprintf("The same workers read for all load blocks. Set %s at %s.", name, b.lead().header())
	case b.kind == stages.Train:
		return fmt.Sprintf("The training step takes one batch after the other, so it has no %s.", name)
	case b.kind == engine.TransferBlock:
		return fmt.Sprintf("The transfer copies one batch after the other, so it has no %s.", name)
	case b.kind == engine.BatchBlock, b.kind == poolBlock:
		return fmt.Sprintf("%s stands at the load, prepare and augment stages, whose items can fail.", name)
	}
	return ""
}

// resolvePaths makes the block's relative paths start at the folder of its file; URLs stay as they are. References and Settings keep
// them all as they are written.
func (b *block) resolvePaths() {
	folder := folderOf(b.syntax.TypeRange)
	resolve := func(v reflect.Value) {
		if p := v.String(); p != "" && !filepath.IsAbs(p) && !storage.Remote(p) {
			v.SetString(filepath.Join(folder, p))
		}
	}
	for _, f := range b.fields {
		switch f.dst.Interface().(type) {
		case stages.Path:
			resolve(f.dst)
		case *stages.Path:
			if !f.dst.IsNil() {
				resolve(f.dst.Elem())
			}
		case []stages.Path:
			for i := range f.dst.Len() {
				resolve(f.dst.Index(i))
			}
		}
	}
}

func (b *block) isPath(attribute string) bool {
	f := b.byName[attribute]
	return f != nil && (f.dst.Type() == reflect.TypeFor[stages.Path]() || f.dst.Type() == reflect.TypeFor[[]stages.Path]())
}

// settings returns the effective values of the block's attributes, without what is secret in URLs, as they are shown and stored.
func (b *block) settings() []engine.Setting {
	var all []engine.Setting
	if b.typ != "" {
		all = append(all, engine.Setting{Address: b.address, Value: literal(cty.StringVal(b.typ))})
	}
	for _, f := range b.fields {
		if f.state == done && !f.faulty && !f.value.IsNull() && !(b.onDevice() && slices.Contains(hostAttributes(), f.attribute.Name)) {
			all = append(all, engine.Setting{Address: b.address, Attribute: f.attribute.Name, Value: storage.RedactedText(literal(f.value))})
		}
	}
	return all
}

// inherit gives the block's spec the attributes of the load block's that hold for it too.
func (b *block) inherit(load any) {
	for _, spec := range []any{b.spec, b.collate} {
		if s, ok := spec.(stages.Inheritor); ok {
			s.Inherit(load)
		}
	}
}

// stage makes the engine's stage of the block.
func (b *block) stage() engine.Stage {
	s := engine.Stage{
		Address:  b.address,
		Block:    b.kind,
		Type:     b.typ,
		Name:     b.name,
		Workers:  1,
		OnError:  engine.Fail,
		MaxSkips: -1,
	}
	if b.pool != nil {
		s.Pool = b.pool.name
		s.Workers, s.Prefetch = int(b.pool.shared.Workers), int(b.pool.shared.Prefetch)
	}
	if w := b.workers; w != nil {
		s.Workers, s.Prefetch = int(w.Workers), int(w.Prefetch)
	}
	if w := b.batchWorkers; w != nil {
		s.Workers, s.Prefetch = int(w.Workers), int(w.Prefetch)
	}
	if b.load != nil {
		s.Weight = 1
		if b.load.Weight != nil {
			s.Weight = *b.load.Weight
		}
	}
	if e := b.errors; e != nil {
		s.OnError = engine.OnError(e.OnError)
		if e.MaxSkips != nil {
			s.MaxSkips = *e.MaxSkips
		}
	}
	s.Device = b.onDevice()
	switch spec := b.spec.(type) {
	case *transferAttributes:
		s.Prefetch = int(spec.Prefetch)
		s.Spec = &engine.TransferSpec{Pinned: spec.Pinned, Convert: spec.Convert}
	case *batchAttributes:
		batch := &engine.BatchSpec{Size: spec.Size, DropLast: spec.DropLast}
		if spec.Mixup != nil {
			batch.Mixing.Mixup = *spec.Mixup
		}
		if spec.Cutmix != nil {
			batch.Mixing.Cutmix = *spec.Cutmix
		}
		batch.Collate, _ = b.collate.(stages.CollateSpec)
		s.Spec = batch
	default:
		s.Spec = spec
	}
	if !b.decoded {
		s.Spec = nil
	}
	if c := b.checkpoint; c != nil {
		spec := c.spec.(*checkpointAttributes)
		s.Checkpoint = spec.engine(c.name, folderOf(c.syntax.TypeRange))
	}
	return s
}
