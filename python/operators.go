package python

import "github.com/pipectl/pipectl/stages"

// Add adds the operators to r. What runs of them shares its processes.
func Add(r *stages.Registry) {
	m := new(manager)
	r.Add(
		stages.Operator{
			Block:   stages.Load,
			Type:    "python",
			Summary: "Reads items with a dataset, or a DataLoader's, of one's own Python code.",
			Doc:     loadDoc,
			New:     func() any { return &Load{Kind: "object", Interpreter: m.interpreter()} },
		},
		stages.Operator{
			Block:   stages.Prepare,
			Type:    "python",
			Summary: "Calls a function of one's own Python code on each item.",
			Doc:     callableDoc,
			New:     func() any { return &Callable{As: "array", Kind: "object", Interpreter: m.interpreter()} },
		},
		stages.Operator{
			Block:   stages.Augment,
			Type:    "python",
			Summary: "Calls a function of one's own Python code, that draws random numbers, on each item.",
			Doc:     callableDoc + augmentDoc,
			New:     func() any { return &Callable{As: "array", Kind: "object", Interpreter: m.interpreter()} },
		},
		stages.Operator{
			Block:   stages.Collate,
			Type:    "python",
			Summary: "Makes batches with a function of one's own Python code.",
			Doc:     collateDoc,
			New:     func() any { return &Collate{in: m.interpreter()} },
		},
		stages.Operator{
			Block:   stages.Train,
			Type:    "python",
			Summary: "Calls a training step of one's own Python code on each batch.",
			Doc:     trainDoc,
			New:     func() any { return &Train{Interpreter: m.interpreter()} },
		},
	)
}

const loadDoc = `The data set is that of ` + "`loader`" + `, a PyTorch DataLoader, or ` + "`dataset`" + `, which any map-style data set can be; both are named as
` + "`module:path`" + `, such as ` + "`train:loader`" + ` or ` + "`train:get_loaders()[0]`" + `: a module that can be imported, then a name in it, and what follows of attributes,
` + "`[0]`, `[\"key\"]`" + ` and calls without arguments. The code runs as it is, in its own interpreter, and nothing is installed there.

In a pool block around all stages from here to the batch, the user's DataLoader runs in its own way, with its own workers. Elsewhere each worker
is a process that reads single items, in an order of pipectl's; before each, Python's, numpy's and torch's random numbers are seeded from the
experiment's seed, the epoch and the item. An iterable data set needs the pool block.

With ` + "`lift`" + ` the data set's transforms are taken out of it, and done by the stages below, one by one.

What the items are is Python's alone, unless ` + "`output`" + ` says otherwise: then they can be given to pipectl's own stages, without the label where an
item is a pair of the data and a whole number.`

const callableDoc = `The callable gets one item and returns what it makes of it. Below a load block that lifts transforms it does the work of one of them, ` + "`part`" + `;
otherwise it gets the whole item, as the data set made it, or what pipectl's own stage made.

Each worker is a process of its own, forked after the code was imported.`

const augmentDoc = `

Before each call Python's, numpy's and torch's random numbers are seeded from the experiment's seed, the epoch, the item and the stage.`

const collateDoc = `The function gets a list of samples and returns the batch, as the ` + "`collate_fn`" + ` of a DataLoader does.`

const trainDoc = `The callable gets one batch, as a training loop over the user's DataLoader would: what collate returned, or a pair of data and labels for batches of
pipectl's own stages. It does one training step; what it returns isn't looked at. It runs in the interpreter's main process.

Where torch has used CUDA in a step, steps are timed by CUDA events, so that work that goes on when the callable returns is counted.`
