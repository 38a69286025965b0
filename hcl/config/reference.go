package config

import (
	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/stages"
)

// BlockReference describes a block of the language for the documents.
type BlockReference struct {
	Name       string
	Header     string // how it is written: `pool "NAME"`
	Count      string // how many an experiment has
	Doc        string
	Attributes []stages.Attribute // besides an operator's own
}

// Reference describes the experiment block and the blocks in it, in the order of the documents.
func Reference() []BlockReference {
	attributes := func(specs ...any) []stages.Attribute {
		var all []stages.Attribute
		for _, s := range specs {
			all = append(all, stages.Attributes(s)...)
		}
		return all
	}
	return []BlockReference{
		{experimentBlock, `experiment "NAME"`, "any number in a file", "One pipeline, with how to measure it.", attributes(new(experimentAttributes))},
		{stages.Load, `load "TYPE" "NAME"`, "one or several, above all other stages",
			"Lists the items, and reads their bytes. Of several, one below the other, the items come mixed, by `weight`; they must give the same kind of " +
				"element and count the same classes. The same workers read for all of them: `workers` and `prefetch` stand at the first.",
			attributes(newWorkerAttributes(), newErrorAttributes(), new(loadAttributes))},
		{stages.Prepare, `prepare "TYPE" "NAME"`, "any number, between load and batch, or on the device between transfer and train",
			"A deterministic step: the same item always gives the same output. It takes the attributes of load but `weight`, and `device`.",
			attributes(new(deviceAttributes))},
		{stages.Augment, `augment "TYPE" "NAME"`, "any number, between load and batch, or on the device between transfer and train",
			"A random step: what it draws depends on the seed, the epoch, the item and the stage's address alone, on the device too. It takes " +
				"the attributes of prepare.", nil},
		{engine.BatchBlock, engine.BatchBlock, "one, below the stages of single items", "Collates samples into one contiguous batch on the host.",
			attributes(newBatchAttributes(), new(batchWorkerAttributes))},
		{engine.TransferBlock, engine.TransferBlock, "one or none, below batch", "Copies batches from the host to the device.", attributes(newTransferAttributes())},
		{stages.Train, `train "TYPE" "NAME"`, "one, below all other stages",
			"The training step, which eats the batches one after the other. It has the attributes of its type only.", nil},
		{checkpointBlock, `checkpoint "NAME"`, "at most one between two stages",
			"Names the boundary where it stands, and says how a cache of what the stage above it makes is kept. Boundaries without a " +
				"checkpoint are probe points too.", attributes(newCheckpointAttributes())},
		{poolBlock, `pool "NAME"`, "any number", "Stands around consecutive stages, up to and with batch: the same workers run them one " +
			"after the other on each item, as a PyTorch DataLoader's workers do. `workers` and `prefetch` are then the pool's, and its " +
			"stages can't set them. Pools can't be nested.", attributes(newPoolAttributes())},
		{bisectBlock, bisectBlock, "one or none", "How to measure. Without the block its defaults hold.", attributes(newBisectAttributes())},
		{expectBlock, expectBlock, "one or none", "Thresholds for continuous integration: a run that doesn't meet them ends with exit code 4.",
			attributes(new(expectAttributes))},
	}
}
