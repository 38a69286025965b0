package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/internal/suggest"
	"github.com/pipectl/pipectl/stages"
)

// allExperiments is what `-e` takes for all of them, so none can have that name.
const allExperiments = "all"

// experiment is an experiment block on its way to the engine's.
type experiment struct {
	name      string
	blocks    []*block // in the file's order: the experiment itself, then all blocks in it, those in pools too
	stages    []*block // in the data's order
	byAddress map[string]*block
	single    map[string]*block // by kind, those that there can be only one of, and the first load block
	// disordered is set where the stages don't make up a pipeline. Then what the engine says of it has no worth.
	disordered bool
}

// declareExperiment reads the structure of an experiment: which blocks it has, in which order.
func (l *loader) declareExperiment(syntax *hclsyntax.Block) {
	name, ok := l.label(syntax)
	e := &experiment{name: name, byAddress: map[string]*block{}, single: map[string]*block{}, disordered: !ok}
	if ok && name == allExperiments {
		l.fail(syntax.LabelRanges[0], "Reserved name", "-e all stands for all experiments. Give this one another name.")
	}
	for _, other := range l.experiments {
		if ok && other.name == name {
			l.duplicate(syntax.DefRange(), fmt.Sprintf("An experiment %q", name), other.blocks[0].syntax.DefRange())
			e.disordered = true
		}
	}
	l.experiments = append(l.experiments, e)
	own := &block{experiment: e, syntax: syntax, kind: experimentBlock, spec: new(experimentAttributes)}
	l.addBlock(own)
	l.declareBlocks(e, syntax.Body, nil)
	if e.single[bisectBlock] == nil {
		// Its defaults hold without it. They are found at the experiment's header.
		absent := &hclsyntax.Block{Type: bisectBlock, Body: new(hclsyntax.Body), TypeRange: syntax.DefRange()}
		l.addBlock(&block{experiment: e, syntax: absent, kind: bisectBlock, address: bisectBlock, spec: newBisectAttributes()})
	}
	l.checkOrder(e)
}

// declareBlocks reads the blocks of an experiment, or of a pool in it.
func (l *loader) declareBlocks(e *experiment, body *hclsyntax.Body, pool *block) {
	for _, syntax := range body.Blocks {
		kind := blockKinds[syntax.Type]
		if kind == nil {
			detail := fmt.Sprintf("An experiment has no %q blocks.%s", syntax.Type, suggest.Sentence(syntax.Type, experimentBlocks()))
			if slices.Contains(topLevel(), syntax.Type) {
				detail = fmt.Sprintf("%s blocks stand at the top of a file, outside experiments.", syntax.Type)
			}
			l.fail(syntax.DefRange(), "Unknown block", detail)
			continue
		}
		b := l.newBlock(e, syntax, pool)
		if pool != nil && (kind.rank > blockKinds[engine.BatchBlock].rank || kind.rank == 0 && b.kind != checkpointBlock) {
			l.failIn(b, syntax.DefRange(), "Misplaced block", fmt.Sprintf("A pool stands around load, prepare, augment and checkpoint "+
				"blocks and the batch. Move the %s block out of it.", b.kind))
			e.disordered = true
		}
		l.addBlock(b)
		switch {
		case kind.rank > 0:
			e.stages = append(e.stages, b)
		case b.kind == checkpointBlock:
			l.placeCheckpoint(e, b)
		case b.kind == poolBlock:
			before := len(e.stages)
			l.declareBlocks(e, syntax.Body, b)
			if len(e.stages) == before && !l.partial {
				l.failIn(b, syntax.DefRange(), "Empty pool", "A pool stands around the stages that its workers run. Move stages into it, "+
					"or remove it.")
			}
		}
	}
}

// newBlock reads the header of a block and makes the structs of its attributes.
func (l *loader) newBlock(e *experiment, syntax *hclsyntax.Block, pool *block) *block {
	b := &block{experiment: e, syntax: syntax, kind: syntax.Type, address: syntax.Type, pool: pool}
	if want := blockKinds[b.kind].labels; len(syntax.Labels) != want {
		l.wrongLabels(syntax, want)
		e.disordered, b.malformed = true, true
		b.unknown = want == 2
	} else if want > 0 {
		b.name = syntax.Labels[want-1]
		b.address += "." + b.name
		l.checkName(b.name, syntax.LabelRanges[want-1])
	}
	switch b.kind {
	case engine.BatchBlock:
		b.spec = newBatchAttributes()
		b.collate = l.collate()
		if pool == nil {
			b.batchWorkers = new(batchWorkerAttributes)
		}
	case engine.TransferBlock:
		b.spec = newTransferAttributes()
	case poolBlock:
		b.shared = newPoolAttributes()
	case checkpointBlock:
		b.spec = newCheckpointAttributes()
	case bisectBlock:
		b.spec = newBisectAttributes()
	case expectBlock:
		b.spec = new(expectAttributes)
	case stages.Train:
		b.spec = l.operator(b)
	default:
		b.spec = l.operator(b)
		b.errors = newErrorAttributes()
		if b.lead() == nil {
			b.workers = newWorkerAttributes()
		}
		if b.kind == stages.Load {
			b.load = new(loadAttributes)
		} else {
			b.device = new(deviceAttributes)
		}
	}
	return b
}

// operator returns a new spec of the block's type, or nil where there is no such type.
func (l *loader) operator(b *block) any {
	if b.malformed {
		return nil
	}
	b.typ = b.syntax.Labels[0]
	if op, ok := l.Registry.Lookup(b.kind, b.typ); ok {
		return op.New()
	}
	b.unknown = true
	types := l.Registry.Types(b.kind)
	detail := fmt.Sprintf("There is no %s %q.%s The types are %s.", b.kind, b.typ, suggest.Sentence(b.typ, types), strings.Join(types, ", "))
	for _, op := range l.Registry.Operators() {
		if op.Type == b.typ {
			detail = fmt.Sprintf("%q is a type of %s, not of %s. Write: %[2]s %[1]q %[4]q", b.typ, op.Block, b.kind, b.name)
		}
	}
	l.failIn(b, b.syntax.LabelRanges[0], "Unknown type", detail)
	return nil
}

// collate returns a new spec of the operator that stands in batch blocks, nil where there is none.
func (l *loader) collate() any {
	for _, op := range l.Registry.Operators() {
		if op.Block == stages.Collate {
			return op.New()
		}
	}
	return nil
}

// addBlock puts a block under its address, with its attributes.
func (l *loader) addBlock(b *block) {
	e := b.experiment
	e.blocks = append(e.blocks, b)
	l.accept(b)
	if b.kind == stages.Load && e.single[b.kind] == nil {
		e.single[b.kind] = b // whose workers the others share
	}
	if one := slices.Contains([]string{engine.BatchBlock, engine.TransferBlock, stages.Train, bisectBlock, expectBlock}, b.kind); one {
		if first := e.single[b.kind]; first != nil {
			l.failIn(b, b.syntax.DefRange(), fmt.Sprintf("Second %s block", b.kind), fmt.Sprintf("An experiment has one %s block; the "+
				"first stands at %s. Remove one of them.", b.kind, place(first.syntax.DefRange())))
			e.disordered = true
			return
		}
		e.single[b.kind] = b
	} else if b.malformed {
		return
	} else if first := e.byAddress[b.address]; first != nil {
		l.duplicate(b.syntax.DefRange(), b.address, first.syntax.DefRange())
		e.disordered = true
		return
	}
	e.byAddress[b.address] = b
	l.config.ranges[position{e.name, b.address, ""}] = b.syntax.DefRange()
}

// placeCheckpoint puts a checkpoint at the boundary after the last stage so far.
func (l *loader) placeCheckpoint(e *experiment, b *block) {
	r := b.syntax.DefRange()
	if len(e.stages) == 0 {
		l.failIn(b, r, "Checkpoint before the data", "A checkpoint keeps what the stage above it makes. Move it below the load block.")
		return
	}
	last := e.stages[len(e.stages)-1]
	switch {
	case last.kind == stages.Train:
		l.failIn(b, r, "Checkpoint after the training step", "The training step makes nothing to keep. Move the checkpoint above it.")
	case last.checkpoint != nil:
		l.failIn(b, r, "Second checkpoint at a boundary", fmt.Sprintf("%s has a checkpoint after it already, %s at %s. Remove one of them.",
			last.address, last.checkpoint.address, place(last.checkpoint.syntax.DefRange())))
	default:
		last.checkpoint = b
	}
}

// checkOrder reports stages that stand in the wrong order or are missing.
func (l *loader) checkOrder(e *experiment) {
	var highest *block
	for _, b := range e.stages {
		if highest != nil && blockKinds[b.kind].rank < blockKinds[highest.kind].rank {
			if b.device != nil && highest.kind == engine.TransferBlock {
				b.shipped = true // checkDevice knows whether it may be
				continue
			}
			e.disordered, b.outOfOrder = true, true
			if e.single[b.kind] == nil || e.single[b.kind] == b || b.kind == stages.Load { // else it is reported already
				detail := fmt.Sprintf("The data flows from top to bottom: load, prepare and augment, batch, transfer, train. Move this block "+
					"above %s.", highest.header())
				if b.device != nil && highest.kind == engine.BatchBlock {
					detail += " With device = true it can also stand between transfer and train."
				}
				l.failIn(b, b.syntax.DefRange(), fmt.Sprintf("%s after %s", title(b.kind), highest.kind), detail)
			}
			continue
		}
		highest = b
	}
	for i, b := range e.stages {
		if i == 0 || b.kind != stages.Load || e.stages[i-1].kind != stages.Load {
			continue
		}
		first := e.stages[0]
		if c := e.stages[i-1].checkpoint; c != nil {
			l.failIn(c, c.syntax.DefRange(), "Checkpoint between load blocks", "The items of all load blocks come mixed, so there is no boundary between them. Move the "+
				"checkpoint below the last.")
		}
		if b.pool != first.pool {
			e.disordered = true
			l.failIn(b, b.syntax.DefRange(), "Load blocks apart", fmt.Sprintf("The same workers read for all load blocks, so these stand in one pool or in none. Move %s "+
				"to %s.", b.header(), first.header()))
		}
	}
	for _, kind := range []string{stages.Load, engine.BatchBlock, stages.Train} {
		if e.single[kind] == nil {
			e.disordered = true
			if !l.partial {
				role := map[string]string{
					stages.Load:       "lists the items and reads them",
					engine.BatchBlock: "collates samples: batch { size = 64 }",
					stages.Train:      "is the training step that eats the batches",
				}[kind]
				l.failIn(e.blocks[0], e.blocks[0].syntax.DefRange(), fmt.Sprintf("Missing %s block", kind),
					fmt.Sprintf("%s needs a %s block, which %s.", e.blocks[0].header(), kind, role))
			}
		}
	}
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// decodeExperiments works out the values of all experiments and adds them to the Config.
func (l *loader) decodeExperiments() {
	misspelt := slices.ContainsFunc(l.bodies, func(b *hclsyntax.Body) bool {
		return slices.ContainsFunc(b.Blocks, func(b *hclsyntax.Block) bool { return !slices.Contains(topLevel(), b.Type) })
	})
	if len(l.experiments) == 0 && !l.partial && !misspelt {
		l.report(&hcl.Diagnostic{
			Severity: hcl.DiagError,
			Summary:  "No experiment",
			Detail:   fmt.Sprintf("%s has no experiment block. Write one with `pipectl init`, or give another path.", l.Path),
		})
	}
	for _, e := range l.experiments {
		for _, b := range e.blocks {
			l.decodeBlock(b)
		}
		l.checkDevice(e)
		if !e.disordered {
			l.config.Experiments = append(l.config.Experiments, e.build())
		}
	}
}

// decodeBlock works out a block's values and checks the rules that tags can't state.
func (l *loader) decodeBlock(b *block) {
	b.decoded = l.decodeAll(b)
	l.checkRules(b)
	if !b.decoded {
		return
	}
	b.resolvePaths()
	v, ok := b.spec.(stages.Validator)
	if !ok {
		return
	}
	for _, p := range v.Validate() {
		l.problem(b, p)
		// A folder that isn't there changes nothing in what the stage makes, so the stages after it can still be checked.
		b.decoded = b.decoded && (p.Warning || b.isPath(p.Attribute))
	}
}

// build makes the engine's experiment.
func (e *experiment) build() *engine.Experiment {
	own, expect := e.blocks[0].spec.(*experimentAttributes), new(expectAttributes)
	if b := e.single[expectBlock]; b != nil {
		expect = b.spec.(*expectAttributes)
	}
	out := &engine.Experiment{
		Name:        e.name,
		Description: own.Description,
		Seed:        own.Seed,
		Bisect:      e.byAddress[bisectBlock].spec.(*bisectAttributes).engine(),
		Expect:      expect.engine(),
	}
	for _, b := range e.blocks {
		out.Settings = append(out.Settings, b.settings()...)
		if b.kind == poolBlock {
			out.Pools = append(out.Pools, engine.Pool{Name: b.name, Workers: int(b.shared.Workers), Prefetch: int(b.shared.Prefetch)})
		}
	}
	for _, b := range e.stages {
		if e.stages[0].decoded {
			b.inherit(e.stages[0].spec)
		}
		out.Stages = append(out.Stages, b.stage())
	}
	return out
}
