package engine

import (
	"fmt"
	"strings"
	"time"

	"github.com/pipectl/pipectl/stages"
)

// Probe is a variant of a pipeline to measure. Boundary k lies after the first k stages; a cache at boundary To takes
// the place of the stages From … To-1, which then cost nothing.
//
//   - {0, 0} is the pipeline as it is: the baseline.
//   - {0, k} is a checkpoint at boundary k: the stages above don't run at all. {0, n}, with n the index of the train
//     stage, is the ceiling: the step alone, fed from memory.
//   - {j, k} with j > 0 isolates a range: the stages above j run as ever, and what they make is dropped in exchange
//     for the cached outputs of boundary k. The difference to the baseline is what making them free is worth, with
//     everything else as it is.
type Probe struct {
	From, To int
	// Burn is the CPU time that is burned beside each step, by as many threads as the stages that are made free have workers: a
	// control, which shows what these stages' need of CPU does to the others. 0 in all other probes.
	Burn time.Duration
}

// Baseline reports whether nothing is cached.
func (p Probe) Baseline() bool { return p.From == p.To }

// Suffix reports whether the probe replays a checkpoint with nothing running above it.
func (p Probe) Suffix() bool { return p.From == 0 && p.To > 0 }

// replays returns the boundary whose cache the items come from, 0 for the source.
func (p Probe) replays() int {
	if p.Suffix() {
		return p.To
	}
	return 0
}

// String names the probe in logs: "baseline", "cached at 2", "without 1…3".
func (p Probe) String() string {
	switch {
	case p.Burn > 0:
		return fmt.Sprintf("%v, with %v of CPU time a step burned", Probe{From: p.From, To: p.To}, p.Burn)
	case p.Baseline():
		return "baseline"
	case p.Suffix():
		return fmt.Sprintf("cached at %d", p.To)
	}
	return fmt.Sprintf("without %d…%d", p.From, p.To-1)
}

// Interval is one measured stretch of a run of a Probe: the steps after the warm-up.
type Interval struct {
	Start      time.Time
	Steps      int
	Samples    int64
	Elapsed    time.Duration // from the end of the last warm-up step to the end of the last step
	FirstBatch time.Duration // from the start until the first batch reached the step
	Starved    time.Duration // the part of Elapsed for which the step waited for data
	Stages     []Account     // one for each stage of the plan, in its order; a stage that didn't run has no items
	Skipped    int64         // items skipped, warm-up included
	CPU        float64       // cores that this process, and those that work for it, kept busy on average; -1 if unknown
	// What disturbed the interval.
	Others    float64       // cores that others kept busy on average, of those that this process may use; -1 if unknown
	Throttled time.Duration // for which this process's threads had to wait because its CPU quota was used up; -1 if unknown
	Swapped   int64         // bytes to and from swap, by anyone; -1 if unknown
	// Resident is the share of the data set's pages, as a sample of its files has it, that the page cache held when the interval
	// began; -1 if unknown, and where the probe doesn't read the data set.
	Resident  float64
	Frequency float64 // of the CPU's clock when the interval ended, in Hz; -1 if unknown
	Overheats int64   // times that the CPU was slowed down for its heat since the interval before; -1 if unknown
}

// Rate returns steps per second.
func (iv Interval) Rate() float64 { return float64(iv.Steps) / iv.Elapsed.Seconds() }

// Passed returns how many items went past a stage: those that it worked on or, of several load blocks, that one of them did.
func (iv Interval) Passed(stage int) int64 {
	load := func(a Account) bool { return strings.HasPrefix(a.Address, stages.Load+".") }
	if !load(iv.Stages[stage]) {
		return iv.Stages[stage].Items
	}
	var n int64
	for _, a := range iv.Stages {
		if load(a) {
			n += a.Items
		}
	}
	return n
}

// Account is what the workers of one stage did in an interval, summed over them. The stages of one segment share
// their workers: there, waiting for input is counted at the segment's first stage, waiting for output at its last.
type Account struct {
	Address string
	Workers int
	Items   int64 // samples; batches for transfer, stages on the device and train
	Busy    time.Duration
	WaitIn  time.Duration
	WaitOut time.Duration
	// Queue is the mean occupancy of the queue after the stage, from 0 to 1, or -1 where it has none.
	Queue float64
}

// SkippedItem is an item that was left out because a stage failed on it.
type SkippedItem struct {
	Address string
	Index   int    // item in the source
	Item    string // its path or description
	Reason  string
}

// StageError is a failure of a stage while the pipeline ran.
type StageError struct {
	Address string
	Item    string // the item's path or description; "" if it isn't about an item
	Err     error
}

func (e *StageError) Error() string {
	if e.Item == "" {
		return fmt.Sprintf("%s: %v", e.Address, e.Err)
	}
	return fmt.Sprintf("%s: %s: %v", e.Address, e.Item, e.Err)
}

func (e *StageError) Unwrap() error { return e.Err }
