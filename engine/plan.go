package engine

import (
	"fmt"
	"runtime"

	"github.com/pipectl/pipectl/stages"
)

// Plan says how an experiment runs. It is plain data.
type Plan struct {
	Experiment *Experiment   // its stages in the order in which they run
	Items      int           // in the data set; 0 if that is unknown, as it can be in a fused pool
	Classes    int           // of its labels; 0 if it has none
	Epoch      int           // steps an epoch; 0 if that is unknown
	Types      []stages.Type // Types[k] is the element type at boundary k, k from 1 to the train stage's index
	Segments   []Segment
	Points     []bool // Points[k]: boundary k may be probed; Points[0] is false
	// CacheBatches is how many batches a probe's cache holds, where its limit allows.
	CacheBatches int
	CacheLimit   []int64 // bytes, of the cache at each boundary
	Memory       Memory
	// Fused says that the first segment is a pool that runs in processes of its own.
	Fused bool

	layout   layout
	batch    int // index of the batch stage
	transfer int // index of the transfer stage, or -1
	train    int // index of the train stage
	frozen   int // the deepest boundary whose elements are kept: augment stages above it draw as in the first epoch, always
}

// Segment is a run of consecutive stages that the same workers execute, with the queue behind it.
type Segment struct {
	First, Last int    // indices of stages
	Workers     int    // 0 for a fused pool whose work the main process does
	Prefetch    int    // what the queue behind it holds: items, or batches behind batch and transfer; 0 for train
	Pool        string // the pool block it stands for, or ""
}

// Memory estimates what a plan needs, in bytes.
type Memory struct {
	InFlight int64 // elements in queues and at work, and batches, while the pipeline runs
	Caches   int64 // the probes' caches while it is bisected, at most
	// Assumed says that some elements' sizes aren't known before they exist: an encoded file was taken as 128 KiB, an image
	// as 1 MiB.
	Assumed bool
}

// Unlimited is the limit in bytes of a cache that has none: more than a disk holds.
const Unlimited int64 = 1 << 50

const (
	defaultPrefetch       = 16 // items
	defaultBatches        = 2  // batches ready for the step or the transfer
	defaultUploads        = 1  // batches on the device, ready for the step
	assumedEncoded  int64 = 128 << 10
	assumedElement  int64 = 1 << 20
	leastCache      int64 = 256 << 20 // a cached set should be far larger than the CPU's last-level cache
	fewestCached          = 8         // batches
	typicalSamples        = 256       // a cached set should cost what the whole data set does on average
)

// Dataset is what is known about a data set once it is open.
type Dataset struct {
	Items   int  // 0 if that is unknown
	Steps   int  // an epoch, where a fused pool has its own say; 0 if that is unknown
	Classes int  // 0 if items have no labels
	Listed  bool // the files are known that items are read from while the pipeline runs
}

// Compile plans an experiment whose stages have no problem, for a data set and a machine with memory bytes to spare, 0 if that isn't
// known.
func Compile(e *Experiment, data Dataset, memory int64) (*Plan, []Problem) {
	e, types, problems := check(e)
	if len(problems) > 0 {
		return nil, problems
	}
	p := &Plan{Experiment: e, Items: data.Items, Classes: data.Classes, Types: types, transfer: -1}
	pool, _ := fused(e)
	p.Fused = pool != nil
	for i, s := range e.Stages {
		switch s.Block {
		case BatchBlock:
			p.batch = i
		case TransferBlock:
			p.transfer = i
		case stages.Train:
			p.train = i
		}
	}
	batch := e.Stages[p.batch].Spec.(*BatchSpec)
	if p.Fused { // which lays out its batches itself
		p.layout, p.Epoch = layout{epoch: batch.Size, size: batch.Size}, data.Steps
	} else {
		p.layout = newLayout(data.Items, batch)
		p.Epoch = p.layout.batches()
	}
	p.Segments = segments(e, p.batch)
	p.Points = make([]bool, p.train+1)
	for k := 1; k <= p.train; k++ {
		c := e.Stages[k-1].Checkpoint
		// Without the end there is no ceiling. From the transfer on a batch goes through the device's stages in one go.
		if c != nil && c.Mode == KeepMode {
			p.frozen = k
		}
		// What a load block among several reads has not been through those below it.
		p.Points[k] = k == p.train || (c == nil || c.Mode != "off") && !e.Stages[k].Device && e.Stages[k].Block != stages.Load
	}
	p.estimate(memory)
	guessed := p.Fused && p.Memory.Assumed // Python objects can be of any size
	if need := p.Memory.InFlight; memory > 0 && need > memory && !guessed {
		problems = append(problems, Problem{
			Address: BatchBlock, Attribute: "size",
			Summary: "Not enough memory",
			Detail: fmt.Sprintf("The pipeline would hold about %s in flight, and the machine has %s to spare. Make the batch, prefetch or the number of workers smaller.",
				stages.Bytes(need), stages.Bytes(memory)),
		})
	}
	if e.Bisect.Cold && !data.Listed {
		problems = append(problems, Problem{
			Address: BisectBlock, Attribute: "cold",
			Summary: "No files to drop",
			Detail: fmt.Sprintf("cold drops the files that items are read from, and of %s none are known: its items are made up or held in memory, "+
				"or a Python dataset reads them that doesn't list its files (in samples or imgs). Remove cold.", e.Stages[0].Address),
		})
	}
	return p, problems
}

// segments groups the stages by the workers that execute them.
func segments(e *Experiment, batch int) []Segment {
	var segs []Segment
	for i, s := range e.Stages {
		if i > 0 && (s.Block == stages.Load || joins(s, e.Stages[e.Crew(i-1)], i == batch)) {
			g := &segs[len(segs)-1]
			g.Last = i
			if s.Pool == "" && !s.Device && s.Block != stages.Load {
				g.Prefetch = s.Prefetch
			}
			continue
		}
		g := Segment{First: i, Last: i, Workers: s.Workers, Prefetch: s.Prefetch, Pool: s.Pool}
		for _, p := range e.Pools {
			if p.Name == s.Pool {
				g.Workers, g.Prefetch = p.Workers, p.Prefetch
			}
		}
		switch {
		case i > batch:
			g.Workers = 1
		case g.Workers == Auto:
			g.Workers = autoWorkers()
		case g.Workers == None:
			g.Workers = 0
		}
		segs = append(segs, g)
	}
	for i := range segs {
		g := &segs[i]
		switch {
		case g.Last == len(e.Stages)-1:
			g.Prefetch = 0
		case g.Prefetch > 0:
		case g.Last < batch:
			g.Prefetch = defaultPrefetch
		case g.Last == batch:
			g.Prefetch = defaultBatches
		default:
			g.Prefetch = defaultUploads
		}
	}
	return segs
}

// autoWorkers returns how many workers a segment has whose author leaves that open.
func autoWorkers() int { return runtime.GOMAXPROCS(0) }

// joins reports whether the workers of the stage before also execute s.
func joins(s, before Stage, batch bool) bool {
	switch {
	case s.Device:
		return true // the transfer's goroutine
	case s.Pool != "" || before.Pool != "":
		return s.Pool == before.Pool || batch && s.Pool == "" && s.Workers == Auto
	case batch:
		return s.Workers == Auto
	case s.Block == TransferBlock || s.Block == stages.Train:
		return false
	}
	return s.Workers == Auto && before.Workers == Auto
}

// Quantum returns how many batches come at a time where a segment's workers begin and end theirs together: an interval should hold
// whole multiples of them.
func (p *Plan) Quantum() int {
	q := 1
	for i, g := range p.Segments {
		switch {
		case i == 0 && p.Fused || g.First == p.batch:
			q = max(q, g.Workers) // each makes a batch
		case g.Last <= p.batch:
			q = max(q, (g.Workers+p.layout.size-1)/p.layout.size)
		}
	}
	return q
}

// Workers returns how many workers there are in this process, the step's goroutine included.
func (p *Plan) Workers() int {
	n := 0
	for i, g := range p.Segments {
		if i > 0 || !p.Fused {
			n += g.Workers
		}
	}
	return n
}

// size returns the bytes of an element at boundary k, assuming a size where it isn't known.
func (p *Plan) size(k int) int64 {
	if n := p.Types[k].Size(); n > 0 {
		return int64(n)
	}
	p.Memory.Assumed = true
	if p.Types[k].Kind == stages.Encoded {
		return assumedEncoded
	}
	return assumedElement
}

// batchSize returns the bytes of a batch's samples at boundary k. Behind the transfer that is what the batch holds on the device: as
// it was copied, and what each stage there makes of it.
func (p *Plan) batchSize(k int) int64 {
	n := p.size(k)
	if p.transfer >= 0 {
		for j := p.transfer + 1; j < k; j++ {
			n += p.size(j)
		}
	}
	return n * int64(p.layout.size)
}

// window returns how many batches may be under way: enough that the queues can fill, whatever the batch size.
func (p *Plan) window() int {
	items, batches := 0, 3
	for _, g := range p.Segments {
		if g.Last < p.batch {
			items += g.Prefetch + g.Workers*maxChunk
		} else {
			batches += g.Prefetch + 1
			if g.First <= p.batch {
				items += g.Workers * maxChunk
			}
		}
	}
	return batches + (items+p.layout.size-1)/p.layout.size
}

func (p *Plan) estimate(memory int64) {
	sample := p.size(p.batch)
	batch := sample * int64(p.layout.size)
	for i, g := range p.Segments {
		if g.Last < p.batch {
			n := g.Prefetch + g.Workers + p.Segments[i+1].Workers
			p.Memory.InFlight += int64(n) * p.size(g.Last+1)
		} else if g.Last < p.train {
			n := g.Prefetch
			if i == 0 && p.Fused {
				n *= max(g.Workers, 1)
			}
			p.Memory.InFlight += int64(n+1) * p.batchSize(g.Last+1)
		}
	}
	p.Memory.InFlight += batch + p.batchSize(p.train) // one being filled, one with the step

	p.CacheBatches = p.Experiment.Bisect.CacheBatches
	if p.CacheBatches == 0 {
		p.CacheBatches = max(fewestCached, (typicalSamples+p.layout.size-1)/p.layout.size)
		if n := (leastCache + batch - 1) / batch; n <= 32 {
			p.CacheBatches = max(p.CacheBatches, int(n))
		}
	}
	if p.Epoch > 0 {
		p.CacheBatches = min(p.CacheBatches, p.Epoch)
	}
	points := int64(0)
	for _, on := range p.Points {
		if on {
			points++
		}
	}
	share := int64(1 << 30)
	if memory > 0 && points > 0 {
		share = memory / 2 / points
	}
	p.CacheLimit = make([]int64, p.train+1)
	for k := 1; k <= p.train; k++ {
		if !p.Points[k] {
			continue
		}
		p.CacheLimit[k] = share
		if c := p.Experiment.Stages[k-1].Checkpoint; c != nil && c.Mode != KeepMode {
			onDisk := c.Store == DiskStore
			switch {
			case c.Limit > 0:
				p.CacheLimit[k] = int64(c.Limit)
			case onDisk:
				p.CacheLimit[k] = Unlimited
			}
			if onDisk {
				continue
			}
		}
		p.Memory.Caches += min(p.CacheLimit[k], int64(p.CacheBatches)*p.batchSize(k))
	}
}
