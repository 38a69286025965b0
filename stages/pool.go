package stages

import (
	"context"
	"time"
)

// PoolSource is implemented by a SourceSpec that can run a whole pool of its own kind: the load stage, those after it, and the
// batch, in processes that make batch after batch as a PyTorch DataLoader's workers do.
type PoolSource interface {
	SourceSpec
	// Fuses returns nil if it can run these stages, specs of prepare and augment blocks, in one pool; an error that says, in full
	// sentences for the file's author, which of them it can't and what to do.
	Fuses(stages []PoolStage) error
	// OpenPool starts the pool's processes and finds the items. It fails with a *PoolError where a stage is at fault.
	OpenPool(ctx context.Context, setup PoolSetup) (Pool, error)
}

// Rester is implemented by a Pool whose workers go on between its calls, making batches ahead.
type Rester interface {
	// Rest stops the workers where they are, until the next Start.
	Rest(ctx context.Context) error
}

// PoolSetup describes a pool to PoolSource.OpenPool.
type PoolSetup struct {
	Stages   []PoolStage // in the data's order: load first, batch last
	Workers  int         // worker processes; 0: the main process does the work
	Prefetch int         // batches a worker; 0: as many as it does by itself
	Batch    int         // samples
	DropLast bool
	Seed     uint64
}

// PoolStage is one stage of a pool.
type PoolStage struct {
	Address string
	Block   string
	Spec    any  // the batch's: a CollateSpec, or nil
	Skip    bool // an item on which it fails is left out; otherwise it ends the run
}

// Pool is a fused pool at work. Its methods but Close are called by one goroutine at a time.
type Pool interface {
	// Items returns the number of items in an epoch, 0 where that is unknown; Steps that of batches.
	Items() int
	Steps() int
	Classes() int
	Name(i int) string
	// Start makes the pool go on in another mode. Batches that were under way in the mode before are dropped.
	Start(ctx context.Context, mode PoolMode) error
	// Next returns the next batch, waiting for it. It returns io.EOF after the last, and a *PoolError where a stage failed.
	Next(ctx context.Context) (*PoolBatch, error)
	// Kept returns, after a filling, how many bytes the caches at boundary k hold, summed over the workers; 0 where a worker's
	// couldn't hold a batch within the limit.
	Kept(k int) int64
	// Notes returns remarks on the pool's processes that bear on the measurements, such as libraries' own threads.
	Notes() []PoolNote
	Close() error
}

// PoolMode is what a pool does from one Start to the next. Boundary k lies after the first k stages of the pool. The zero mode
// makes batches without an end, epoch after epoch, with nothing cached.
type PoolMode struct {
	// From and To say which stages are made free, as in a probe: none where both are 0. With From 0 samples are replayed from the
	// workers' caches at boundary To. Otherwise the stages before From run, and what they make is dropped in exchange for what the
	// cache at boundary To holds; where To is the number of stages, nothing is: the batches are empty.
	From, To int
	// Fill, if it isn't 0, makes the workers keep what passes each boundary up to the batch, for so many batches in all, at least
	// one a worker. Limits are the bytes that may be kept at each boundary, in all workers together; 0: nothing is kept there.
	Fill   int
	Limits []int64
	// Epochs, if it isn't 0, ends the batches after so many epochs, from the start of the data set, each as a loop over the
	// user's loader runs it.
	Epochs int
}

// PoolBatch is a batch that a pool has made. It stays with the pool until it is released.
type PoolBatch struct {
	Number int64 // in the mode's order, from 0
	Epoch  int
	Last   bool  // of its epoch
	Len    int   // samples
	Bytes  int64 // of the samples' data
	// Handle is how the pool's own training step knows the batch.
	Handle any
	// Copy copies the samples and labels into b, whose array is dense, for a training step of another kind. It is nil where their
	// type isn't declared.
	Copy    func(b *Batch) error
	Release func()
	Work    PoolWork
	Skipped []PoolError
}

// PoolWork is what a worker did for a batch.
type PoolWork struct {
	Worker int             // from 0
	Busy   []time.Duration // each stage's
	Items  []int64         // that each stage was done with
	Wait   time.Duration   // that the worker waited before it, since it handed over the one before
}

// PoolError is a failure of a stage of a pool.
type PoolError struct {
	Stage int // index in the pool
	Item  int // of the data set; -1 where it isn't about one
	Err   error
}

func (e *PoolError) Error() string { return e.Err.Error() }

func (e *PoolError) Unwrap() error { return e.Err }

// PoolNote is a remark on a pool's processes.
type PoolNote struct {
	Code   string // "threads"
	Text   string
	Stages []string // addresses that it is about
}
