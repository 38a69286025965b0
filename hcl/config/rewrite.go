package config

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Edit is a change of an experiment's text: the attribute of a block gets another value.
type Edit struct {
	Address   string // as in engine.Setting
	Attribute string // "": the block is taken out
	Value     string // as HCL
}

// Obstacle says why an edit can't be made, and where it would have to be.
type Obstacle struct {
	Edit
	Range hcl.Range
	Why   string // goes on after the attribute's name: "is var.workers, which other places may use"
}

// Rewrite returns the files that edits of an experiment change, with their new contents. Comments stay, and so does the layout, but that
// of a file in the canonical layout is canonical again. An attribute that a variable, a function or another expression gives isn't
// overwritten: it is returned as an obstacle.
func (c *Config) Rewrite(experiment string, edits []Edit) (map[string][]byte, []Obstacle) {
	r := &rewriter{splices: map[string][]splice{}}
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		f, diags := hclsyntax.ParseConfig(c.Files[name], name, hcl.InitialPos)
		if diags.HasErrors() {
			continue // it isn't one that the experiment could be loaded from
		}
		for _, b := range f.Body.(*hclsyntax.Body).Blocks {
			if b.Type == experimentBlock && slices.Equal(b.Labels, []string{experiment}) {
				r.src = c.Files[name]
				r.edit(b.Body, edits)
			}
		}
	}
	changed := map[string][]byte{}
	for name, list := range r.splices {
		changed[name] = apply(c.Files[name], list)
	}
	return changed, r.obstacles
}

// rewriter collects what is to be replaced in files.
type rewriter struct {
	src       []byte // of the file under way
	splices   map[string][]splice
	obstacles []Obstacle
}

// splice puts text in the place of some bytes.
type splice struct {
	from, to int
	text     string
}

// apply makes splices, which don't overlap.
func apply(src []byte, list []splice) []byte {
	canonical := bytes.Equal(hclwrite.Format(src), src)
	// Those at one place are to stay in their order.
	slices.SortStableFunc(list, func(a, b splice) int { return cmp.Compare(a.from, b.from) })
	var out []byte
	at := 0
	for _, s := range list {
		out = append(append(out, src[at:s.from]...), s.text...)
		at = s.to
	}
	out = append(out, src[at:]...)
	if canonical {
		out = hclwrite.Format(out)
	}
	return out
}

// edit makes the edits of the blocks in a body, and of those in its pools.
func (r *rewriter) edit(body *hclsyntax.Body, edits []Edit) {
	for _, b := range body.Blocks {
		address := b.Type
		if n := len(b.Labels); n > 0 {
			address += "." + b.Labels[n-1]
		}
		var present, missing []Edit
		for _, e := range edits {
			if e.Address != address {
				continue
			}
			a := b.Body.Attributes[e.Attribute]
			switch {
			case e.Attribute == "":
				r.remove(b)
			case a == nil:
				missing = append(missing, e)
			case !literally(a.Expr):
				text := strings.Join(strings.Fields(string(a.Expr.Range().SliceBytes(r.src))), " ")
				r.obstacles = append(r.obstacles, Obstacle{e, a.Expr.Range(), "is given by " + text})
			default:
				present = append(present, e)
			}
		}
		if len(missing) > 0 && b.OpenBraceRange.Start.Line == b.CloseBraceRange.Start.Line {
			r.unfold(b, present, missing)
		} else {
			for _, e := range present {
				r.replace(b.Body.Attributes[e.Attribute].Expr.Range(), e.Value)
			}
			r.insert(b, missing)
		}
		if b.Type == poolBlock {
			r.edit(b.Body, edits)
		}
	}
}

// literally reports whether an expression is a value that is written out, so that nothing else is meant by it.
func literally(e hclsyntax.Expression) bool {
	switch e := e.(type) {
	case *hclsyntax.LiteralValueExpr:
		return true
	case *hclsyntax.TemplateExpr:
		return e.IsStringLiteral()
	}
	return false
}

func (r *rewriter) replace(at hcl.Range, text string) {
	r.splices[at.Filename] = append(r.splices[at.Filename], splice{at.Start.Byte, at.End.Byte, text})
}

// remove takes a block out, with the line that it ends on if nothing else stands there.
func (r *rewriter) remove(b *hclsyntax.Block) {
	from, to := b.Range().Start.Byte, b.CloseBraceRange.End.Byte
	start := bytes.LastIndexByte(r.src[:from], '\n') + 1
	if end := bytes.IndexByte(r.src[to:], '\n'); end >= 0 && len(bytes.TrimSpace(r.src[start:from])) == 0 && len(bytes.TrimSpace(r.src[to:to+end])) == 0 {
		from, to = start, to+end+1
	}
	name := b.Range().Filename
	r.splices[name] = append(r.splices[name], splice{from, to, ""})
}

// indent returns the white space at the beginning of the line that a byte is on.
func (r *rewriter) indent(at int) string {
	line := r.src[bytes.LastIndexByte(r.src[:at], '\n')+1 : at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// unfold gives a block that stands on one line, which has one attribute at most, a line for each attribute.
func (r *rewriter) unfold(b *hclsyntax.Block, present, missing []Edit) {
	var lines strings.Builder
	for name, a := range b.Body.Attributes {
		value := string(a.Expr.Range().SliceBytes(r.src))
		for _, e := range present {
			if e.Attribute == name {
				value = e.Value
			}
		}
		fmt.Fprintf(&lines, "%s = %s\n", name, value)
	}
	for _, e := range missing {
		fmt.Fprintf(&lines, "%s = %s\n", e.Attribute, e.Value)
	}
	indent := r.indent(b.Range().Start.Byte)
	text := "\n"
	for line := range strings.Lines(string(hclwrite.Format([]byte(lines.String())))) {
		text += indent + "  " + line
	}
	name := b.Range().Filename
	r.splices[name] = append(r.splices[name], splice{b.OpenBraceRange.End.Byte, b.CloseBraceRange.Start.Byte, text + indent})
}

// insert adds attributes to a block of several lines: behind its last one, indented as that is, or else at its beginning.
func (r *rewriter) insert(b *hclsyntax.Block, edits []Edit) {
	if len(edits) == 0 {
		return
	}
	at, inside := b.OpenBraceRange.End.Byte, r.indent(b.Range().Start.Byte)+"  "
	for _, a := range b.Body.Attributes {
		if end := a.Expr.Range().End.Byte; end > at {
			at, inside = end, r.indent(a.NameRange.Start.Byte)
		}
	}
	if r.src[at-1] != '\n' { // as it is behind a heredoc
		at += bytes.IndexByte(r.src[at:], '\n') + 1
	}
	var lines strings.Builder
	for _, e := range edits {
		fmt.Fprintf(&lines, "%s%s = %s\n", inside, e.Attribute, e.Value)
	}
	name := b.Range().Filename
	r.splices[name] = append(r.splices[name], splice{at, at, lines.String()})
}
