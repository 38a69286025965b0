package stages

import (
	"context"
	"iter"
	"math/rand/v2"
)

// Item says which item of the data set an element belongs to.
type Item struct {
	Seq   int64 // place in the run's order, from 0
	Epoch int   // from 0
	Index int   // place in the Source, from 0
	Label int32
}

// Call is what one call of a Stage is told besides its element.
type Call struct {
	Context context.Context
	Item    Item
	// Rand is seeded from (seed, epoch, item, stage address) before each call of an augment stage, so that what it draws
	// depends on nothing else. It is nil for other blocks.
	Rand *rand.Rand
}

// Stage does one step of the work on one item. An instance belongs to one worker: its calls never overlap, and it may
// keep scratch memory. A Stage that also has Close() error is closed when its worker ends.
type Stage interface {
	// Process leaves in out what it makes of in, or passes in on with out.Pass(in). It never writes to in's memory: a
	// cache may own it. An error skips the item or ends the run, as the stage's on_error says; the engine adds the stage's
	// address and the item's name to it.
	Process(c *Call, in, out *Element) error
}

// Source lists a data set's items and reads them. Read is called from several workers at a time.
type Source interface {
	// Len returns the number of items in an epoch, at least 1.
	Len() int
	// Name returns the path or description by which messages call item i.
	Name(i int) string
	// Classes returns the number of classes its labels count, 0 where items have no labels.
	Classes() int
	// Read leaves item i's data in out (or passes on an element that nobody writes to again) and returns its label, 0 where
	// there are none.
	Read(c *Call, i int, out *Element) (label int32, err error)
	// Close frees what the source holds.
	Close() error
}

// Orderer is implemented by a Source that draws its shuffled order itself, because in some orders its items are read far faster than in
// others.
type Orderer interface {
	// Order fills order with the places of all items, in the order of an epoch, which follows from r alone.
	Order(r *rand.Rand, order []int32)
}

// Versioner is implemented by a Source that knows by what the contents of its files are told apart, wherever they lie.
type Versioner interface {
	// Versions yields the path of each file that items are read from, with what tells its content from what was there before, such as the
	// server's tag. It is nil where that isn't known.
	Versions() iter.Seq2[string, string]
}

// Inspected is implemented by a Source that knows since it was opened what is wrong with its data.
type Inspected interface {
	// Faults yields the items that Read will fail on, in their order, with its errors.
	Faults() iter.Seq2[int, error]
	// Warning says in full sentences what else the author should know; "" if nothing.
	Warning() string
}

// ClassNamer is implemented by a Source that knows what its labels mean.
type ClassNamer interface {
	// ClassNames returns the names of the classes, in the order of the labels; nil where they have none.
	ClassNames() []string
}

// FileLister is implemented by a Source, or a Pool, that reads its items from files while the pipeline runs.
type FileLister interface {
	// Files yields the paths of all files that items are read from. It is nil where they aren't known.
	Files() iter.Seq[string]
}

// SourceSpec is implemented by a pointer to the attributes of a load operator.
type SourceSpec interface {
	// Output returns the type of the elements it reads.
	Output() Type
	// Shuffled reports whether each epoch's items come in a new order drawn from the seed.
	Shuffled() bool
	// Open finds the items. seed is the experiment's, for sources that make up their data.
	Open(ctx context.Context, seed uint64) (Source, error)
}

// StageSpec is implemented by a pointer to the attributes of a prepare or augment operator.
type StageSpec interface {
	// Output returns the type of what the stage makes of an element of type in, or an error that says, in full sentences
	// for the file's author, why it can't take it and what to do.
	Output(in Type) (Type, error)
	// New makes an instance for one worker.
	New() (Stage, error)
}

// Validator is implemented by a spec whose attributes have rules that tags can't state, such as a folder that must
// exist. Relative paths are resolved before it is called.
type Validator interface{ Validate() []Problem }

// Problem is what is wrong with an attribute's value.
type Problem struct {
	Attribute string // "" for the block as a whole
	Summary   string // a short statement: "Folder not found"
	Detail    string // what to do about it, in full sentences
	Warning   bool
}
