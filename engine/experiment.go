package engine

import (
	"time"

	"github.com/pipectl/pipectl/stages"
)

// The blocks of an experiment's stages that aren't operators.
const (
	BatchBlock    = "batch"
	TransferBlock = "transfer"
)

// BisectBlock is the block that says how to measure.
const BisectBlock = "bisect"

// Experiment is one experiment block, every value resolved. It is plain data.
type Experiment struct {
	Name        string
	Description string
	Seed        uint64
	Stages      []Stage // in the data's order: load first, several of them one after the other, train last
	Pools       []Pool
	Bisect      Bisect
	Expect      Expect
	// Settings lists every attribute with its effective value, defaults included, in the file's order: what compare
	// compares and the fingerprint is taken of.
	Settings []Setting
}

// Setting is the effective value of one attribute.
type Setting struct {
	Address   string // a stage's address, "checkpoint.raw", "pool.loader", "bisect", "expect" or "" for the experiment's own
	Attribute string // "" for the operator's type
	Value     string // as HCL
}

// Stage is one load, prepare, augment, batch, transfer or train block.
type Stage struct {
	Address string // "load.photos", "batch"
	Block   string // stages.Load …, BatchBlock or TransferBlock
	Type    string // operator type; "" for batch and transfer
	Name    string
	// Spec holds the operator's attributes, a *BatchSpec or a *TransferSpec. It is nil where the block is faulty: then
	// nothing after it can be checked either.
	Spec any
	// Workers is the number of workers, or Auto: the planner decides, and may fuse neighbours. For a batch block, Auto is
	// the default: the workers of the stage before it collate in place. Several load blocks have those of the first.
	Workers    int
	Weight     float64 // of a load block: how many of its items come, in proportion to those of the other load blocks
	Prefetch   int     // items (batch, transfer: batches) its output queue holds; 0: the default
	OnError    OnError
	MaxSkips   int         // items that may be skipped in a run; -1: any number
	Pool       string      // the pool block around it, or ""
	Device     bool        // the device does its work, on whole batches behind the transfer: workers and on_error say nothing then
	Checkpoint *Checkpoint // the one that stands at the boundary after it, or nil
}

// Loads returns the load blocks. Where there are several, their items come mixed, and the same workers read them.
func (e *Experiment) Loads() []Stage {
	n := 0
	for n < len(e.Stages) && e.Stages[n].Block == stages.Load {
		n++
	}
	return e.Stages[:n]
}

// Crew returns the index of the stage whose attributes say how many workers a stage has and how long their queue is: its own, or of
// several load blocks the first.
func (e *Experiment) Crew(stage int) int {
	if e.Stages[stage].Block == stages.Load {
		return 0
	}
	return stage
}

// Auto as a number of workers leaves the choice to the planner. None is no worker at all, for pools that can do without.
const (
	Auto = int(stages.Count(0))
	None = int(stages.None)
)

// OnError says what a stage's failure on an item does.
type OnError string

// The values of on_error.
const (
	Fail OnError = "fail"
	Skip OnError = "skip"
)

// BatchSpec holds the attributes of the batch block.
type BatchSpec struct {
	Size     int                // samples
	DropLast bool               // leave out an epoch's last batch if it is short; not done where it is the only one
	Mixing   stages.Mixing      // how samples are mixed with each other once the batch is whole
	Collate  stages.CollateSpec // what collates instead of the engine; nil where nothing can
}

// TransferSpec holds the attributes of the transfer block.
type TransferSpec struct {
	Pinned bool
	// Convert is ConvertOnDevice where the stage right above batch, which makes tensors of images, is to run behind the transfer, so
	// that batches cross in a quarter of the bytes.
	Convert string
}

// The values of Convert.
const (
	ConvertInPlace  = "none"
	ConvertOnDevice = "device"
)

// Pool is a pool block: its stages share workers.
type Pool struct {
	Name     string
	Workers  int
	Prefetch int
}

// Checkpoint is a named boundary between two stages.
type Checkpoint struct {
	Name     string
	Store    string // MemoryStore, DiskStore, PinnedStore or DeviceStore
	Limit    stages.Bytes
	Path     string // the folder of caches on disk
	Compress bool   // those that are kept, with zstd
	Mode     string // ProbeMode, KeepMode or OffMode
}

// What a checkpoint's cache is for.
const (
	ProbeMode = "probe" // it stands in for the stages above it in some of a search's probes
	KeepMode  = "keep"  // it is filled once, and stands in for them ever after; it is a probe point, too
	OffMode   = "off"   // nothing: the boundary is no probe point
)

// Address is where diagnostics about the checkpoint point.
func (c *Checkpoint) Address() string { return "checkpoint." + c.Name }

// Where a checkpoint's cache is kept. MemoryStore is the host's memory, and behind a transfer wherever that leaves batches.
const (
	MemoryStore = "memory"
	DiskStore   = "disk"
	PinnedStore = "pinned" // page-locked memory of the host, right behind batch
	DeviceStore = "device" // the device's memory, right before train
)

// Bisect holds the attributes of the bisect block.
type Bisect struct {
	Strategy     string // "bisect" or "ladder"
	Warmup       int    // steps dropped at the start of an interval
	Steps        int    // steps in an interval; 0: as many as fill about half a second
	Rounds       int    // intervals a probe
	Confidence   float64
	MinEffect    float64
	CacheBatches int           // batches in a probe's cache; 0: the engine decides; never more than an epoch
	Budget       time.Duration // of the whole session; 0: none
	Cold         bool          // the data set is dropped from the page cache before each interval that reads it
	Control      bool          // a control tells how much of the gain is that the step needn't share the CPU
}

// Expect holds the thresholds of the expect block; nil and "" where there is none.
type Expect struct {
	StepsPerSecond *float64
	MaxStarvation  *float64
	Bottleneck     string
}
