package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pipectl/pipectl/engine/cache"
	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/internal/machine"
	"github.com/pipectl/pipectl/stages"
)

// Options are what a pipeline needs besides its experiment.
type Options struct {
	// OpenDevice opens the device that a train block asks for.
	OpenDevice func(want string) (gpu.Device, error)
	// Memory is what the machine has to spare, in bytes; 0 if unknown.
	Memory int64
	// Cores is how many the pipeline may use; 0 if unknown.
	Cores int
	// CPUTime returns the CPU time that was spent on the pipeline in this process, negative if unknown; nil: the process's own.
	CPUTime func() time.Duration
	// ReadUsage reads what may disturb measurements; nil: that isn't known.
	ReadUsage func() machine.Usage
	// ReadClocks reads the CPU's clocks; nil: they aren't known.
	ReadClocks func() machine.Clocks
	// PageCache is where the data set's files may be; nil: that isn't known.
	PageCache PageCache
	// OnSkip is told of every item that is skipped for the first time. It may be called from several goroutines.
	OnSkip func(SkippedItem)
	// OnWarning is told of what a run goes on without, at a block's address. It may be called from several goroutines.
	OnWarning func(address, text string)
}

// Pipeline is an experiment ready to run: its data set is open, and so is its device. It keeps workers' scratch memory,
// batches and caches from one interval to the next. Its methods but Live are for one goroutine.
type Pipeline struct {
	Plan *Plan

	opts        Options
	source      stages.Source      // nil where a pool is fused
	interleaved *interleaved       // the source, where several load blocks make it up; else nil
	pool        stages.Pool        // the fused one, or nil
	processes   []stages.Processes // that do part of the work
	device      gpu.Device
	step        gpu.Step
	batches     *batchPool
	buffers     []*freeList       // by segment
	instances   [][]stages.Stage  // by stage and worker
	collators   []stages.Collator // by worker
	next        []int64           // the batch that the next interval starts with, from the source and from each boundary's cache
	gaps        *rand.Rand        // what is left out between two intervals

	files     []string // that items are read from, as far as they are known
	throttles int64    // what ReadClocks counted last

	pace     float64       // batches a second in the last interval of the baseline; 0 before
	fillTime time.Duration // that filling the caches may take, where their size is left to the engine
	filled   bool
	caches   []*cache.Memory // by boundary, up to the batch stage's
	hosts    []*hostBatch    // the cache behind batch
	copies   []*gpu.Batch    // the cache behind transfer

	keepers []*keeper // the deepest first

	live atomic.Pointer[run]

	mu      sync.Mutex
	skipped []map[int]bool // items, by stage
}

// Describe opens an experiment just to plan it: what `pipectl plan` shows. It finds all that Open would. Without opts.OpenDevice it looks at the
// data set alone.
func Describe(ctx context.Context, e *Experiment, opts Options) (*Plan, []Problem, error) {
	p, problems, err := open(ctx, e, opts)
	if p == nil {
		return nil, problems, err
	}
	return p.Plan, problems, errors.Join(err, p.Close())
}

// open starts the processes that an experiment needs, opens its data set, plans it, and opens its device and step. The pipeline is to be
// closed where it isn't nil, whatever else is wrong.
func open(ctx context.Context, e *Experiment, opts Options) (*Pipeline, []Problem, error) {
	if _, problems := Check(e); len(problems) > 0 {
		return nil, problems, nil
	}
	for _, s := range e.Stages {
		if s.Spec == nil {
			return nil, nil, &StageError{Address: s.Address, Err: errors.New("the block is faulty")}
		}
	}
	p := &Pipeline{opts: opts}
	if err := p.startProcesses(ctx, e); err != nil {
		return p, nil, err
	}
	data, err := p.openData(ctx, e)
	if err != nil {
		return p, nil, err
	}
	var problems []Problem
	if p.Plan, problems = Compile(e, data, opts.Memory); len(problems) > 0 {
		return p, problems, nil
	}
	p.skipped = make([]map[int]bool, len(p.Plan.Experiment.Stages))
	if err := p.tellFaults(); err != nil {
		return p, nil, err
	}
	if err := p.setKeepers(ctx); err != nil || opts.OpenDevice == nil {
		return p, nil, err
	}
	problems, err = p.openDevice()
	return p, problems, err
}

// startProcesses starts the processes that do a stage's work elsewhere.
func (p *Pipeline) startProcesses(ctx context.Context, e *Experiment) error {
	for _, s := range e.Stages {
		spec := s.Spec
		if b, ok := spec.(*BatchSpec); ok {
			if b.Collate == nil || !b.Collate.Collates() {
				continue
			}
			spec = b.Collate
		}
		if remote, ok := spec.(stages.Remote); ok {
			started, err := remote.Start(ctx)
			if err != nil {
				return &StageError{Address: s.Address, Err: err}
			}
			p.processes = append(p.processes, started)
		}
	}
	return nil
}

// openData opens the source, or the fused pool.
func (p *Pipeline) openData(ctx context.Context, e *Experiment) (Dataset, error) {
	load := e.Stages[0]
	spec := load.Spec.(stages.SourceSpec)
	if pool, _ := fused(e); pool != nil {
		opened, err := spec.(stages.PoolSource).OpenPool(ctx, e.poolSetup(pool))
		if err != nil {
			return Dataset{}, (&Plan{Experiment: e}).poolError(err, func(i int) string { return fmt.Sprintf("item %d", i) })
		}
		p.pool = opened
		return Dataset{Items: opened.Items(), Steps: opened.Steps(), Classes: opened.Classes(), Listed: p.listFiles()}, nil
	}
	if loads := e.Loads(); len(loads) > 1 {
		m, err := openInterleaved(ctx, e, loads)
		if err != nil {
			return Dataset{}, err
		}
		p.source, p.interleaved = m, m
		return Dataset{Items: m.epoch(), Classes: m.Classes(), Listed: p.listFiles()}, nil
	}
	src, err := openSource(ctx, e, load)
	if err != nil {
		return Dataset{}, err
	}
	p.source = src
	return Dataset{Items: src.Len(), Classes: src.Classes(), Listed: p.listFiles()}, nil
}

// openSource opens the source of a load block.
func openSource(ctx context.Context, e *Experiment, load Stage) (stages.Source, error) {
	spec := load.Spec.(stages.SourceSpec)
	src, err := spec.Open(ctx, e.Seed)
	if err != nil {
		return nil, &StageError{Address: load.Address, Err: err}
	}
	switch n := src.Len(); {
	case n < 1:
		err = errors.New("the data set has no items")
	case spec.Shuffled() && n > mostShuffled:
		err = fmt.Errorf("%d items are too many to shuffle: their order is kept in memory, for %d at most; set shuffle = false", n, mostShuffled)
	}
	if err != nil {
		return nil, &StageError{Address: load.Address, Err: errors.Join(err, src.Close())}
	}
	return src, nil
}

// itemName returns the name by which messages call an item.
func (p *Pipeline) itemName(i int) string {
	if p.pool != nil {
		return p.pool.Name(i)
	}
	return p.source.Name(i)
}

// Open opens the data set, plans the experiment, opens its device and step, and the caches that it keeps. Problems are the author's to mend; err
// is a failure of the machine. Where there are either, the pipeline is nil.
func Open(ctx context.Context, e *Experiment, opts Options) (*Pipeline, []Problem, error) {
	p, problems, err := open(ctx, e, opts)
	if p == nil {
		return nil, problems, err
	}
	if err != nil || len(problems) > 0 {
		return nil, problems, errors.Join(err, p.Close())
	}
	p.throttles = p.clocks().Throttles
	e = p.Plan.Experiment
	p.next = make([]int64, len(e.Stages))
	p.gaps = rand.New(rand.NewPCG(e.Seed, hash("gaps")))
	p.fillTime = fillTime
	p.instances = make([][]stages.Stage, len(e.Stages))
	for range p.Plan.Segments {
		p.buffers = append(p.buffers, new(freeList))
	}
	for _, k := range p.keepers {
		k.open()
	}
	return p, nil, nil
}

// openDevice opens the device and the step, and makes sure that caches can be kept where checkpoints say.
func (p *Pipeline) openDevice() ([]Problem, error) {
	plan, e := p.Plan, p.Plan.Experiment
	train := e.Stages[plan.train]
	spec := train.Spec.(gpu.TrainSpec)
	device, err := p.opts.OpenDevice(spec.Want())
	if err != nil {
		return nil, &StageError{Address: train.Address, Err: err}
	}
	p.device = device
	sample, size := plan.Types[plan.batch], plan.layout.size
	pinned := true
	if plan.transfer >= 0 {
		pinned = e.Stages[plan.transfer].Spec.(*TransferSpec).Pinned
	}
	uncached := exceedsCache(sample, size)
	p.batches = &batchPool{make: func() (*hostBatch, error) { return newHostBatch(p.device, sample, size, pinned, uncached) }}
	step, err := spec.NewStep(p.device, gpu.Input{Sample: plan.Types[plan.train], Batch: size, Classes: plan.Classes, Seed: e.Seed, Mixed: plan.mixing().On()})
	if err != nil {
		return nil, &StageError{Address: train.Address, Err: err}
	}
	p.step = step
	problems, err := plan.placeCaches(p.device, p.opts.Memory)
	if err != nil {
		return nil, &StageError{Address: train.Address, Err: err}
	}
	return problems, nil
}

// warn tells of what a run goes on without.
func (p *Pipeline) warn(address, text string) {
	if p.opts.OnWarning != nil {
		p.opts.OnWarning(address, text)
	}
}

// Device describes the device that the steps run on.
func (p *Pipeline) Device() gpu.Info { return p.device.Info() }

// Step returns the training step, for those who ask it for more than to run.
func (p *Pipeline) Step() gpu.Step { return p.step }

// stepClock is the code of the note that says what a training step is timed by.
const stepClock = "step_clock"

// Notes returns remarks on what was seen of the work that other processes do, and on what checkpoints keep.
func (p *Pipeline) Notes() []stages.PoolNote {
	var notes []stages.PoolNote
	if p.pool != nil {
		notes = p.pool.Notes()
	}
	notes = append(notes, p.Kept()...)
	if s, ok := p.step.(gpu.Timed); ok {
		switch device, cuda := strings.CutPrefix(s.Timed(), "cuda"); {
		case cuda:
			notes = append(notes, stages.PoolNote{Code: stepClock, Text: "The training step is timed by events on " + strings.TrimSpace(device) + "."})
		case device != "":
			notes = append(notes, stages.PoolNote{Code: stepClock, Text: "The training step is timed by the host's clock: it works on the CPU, or waits for the device itself."})
		}
	}
	return notes
}

// Close frees all that the pipeline holds.
func (p *Pipeline) Close() error {
	var errs []error
	if p.source != nil {
		errs = append(errs, p.source.Close())
	}
	for _, workers := range p.instances {
		for _, s := range workers {
			errs = append(errs, closeStage(s))
		}
	}
	for _, c := range p.collators {
		errs = append(errs, c.Close())
	}
	for _, c := range p.copies {
		if c != nil && c.Free != nil {
			c.Free()
		}
	}
	for _, h := range p.hosts {
		h.free()
	}
	if p.pool != nil {
		errs = append(errs, p.pool.Close())
	}
	if p.batches != nil {
		p.batches.close()
	}
	if p.step != nil {
		errs = append(errs, p.step.Close())
	}
	if p.device != nil {
		errs = append(errs, p.device.Close())
	}
	for _, s := range p.processes {
		errs = append(errs, s.Close())
	}
	for _, c := range p.caches {
		if c != nil {
			c.Close()
		}
	}
	for _, k := range p.keepers {
		errs = append(errs, k.close())
	}
	return errors.Join(errs...)
}

// instance returns the Stage of a worker, making it at its first use.
func (p *Pipeline) instance(stage, worker int) (stages.Stage, error) {
	for len(p.instances[stage]) <= worker {
		s, err := p.Plan.Experiment.Stages[stage].Spec.(stages.StageSpec).New()
		if err != nil {
			return nil, &StageError{Address: p.Plan.Experiment.Stages[stage].Address, Err: err}
		}
		p.instances[stage] = append(p.instances[stage], s)
	}
	return p.instances[stage][worker], nil
}

// collator returns what collates for a worker, making it at its first use; nil where the engine itself does.
func (p *Pipeline) collator(worker int) (stages.Collator, error) {
	spec := p.Plan.Experiment.Stages[p.Plan.batch].Spec.(*BatchSpec).Collate
	if spec == nil || !spec.Collates() && p.Plan.Types[p.Plan.batch].Kind != stages.Object {
		return nil, nil
	}
	for len(p.collators) <= worker {
		c, err := spec.New()
		if err != nil {
			return nil, &StageError{Address: BatchBlock, Err: err}
		}
		p.collators = append(p.collators, c)
	}
	return p.collators[worker], nil
}

// cpuTime returns how much CPU time was spent on the pipeline: this process's, and that of those that work for it. It is negative if
// unknown.
func (p *Pipeline) cpuTime() time.Duration {
	read := p.opts.CPUTime
	if read == nil {
		read = cpuTime
	}
	total := read()
	counted := make(map[any]bool)
	for _, s := range p.processes {
		if counted[s.Key()] || total < 0 {
			continue
		}
		counted[s.Key()] = true
		d, ok := s.CPUTime()
		if !ok {
			return -1
		}
		total += d
	}
	return total
}

// usage reads what may disturb measurements.
func (p *Pipeline) usage() machine.Usage {
	if p.opts.ReadUsage == nil {
		return machine.Usage{Busy: -1, Throttled: -1, Swapped: -1}
	}
	return p.opts.ReadUsage()
}

// clocks reads the CPU's clocks.
func (p *Pipeline) clocks() machine.Clocks {
	if p.opts.ReadClocks == nil {
		return machine.Clocks{Frequency: -1, Throttles: -1}
	}
	return p.opts.ReadClocks()
}

// skip notes that a stage failed on an item. It returns the error that ends the run where that isn't allowed, or not
// so often.
func (p *Pipeline) skip(stage int, index int, err error) error {
	s := p.Plan.Experiment.Stages[stage]
	name := p.itemName(index)
	failure := &StageError{Address: s.Address, Item: name, Err: err}
	if s.OnError != Skip {
		return failure
	}
	p.mu.Lock()
	if p.skipped[stage] == nil {
		p.skipped[stage] = make(map[int]bool)
	}
	again := p.skipped[stage][index]
	p.skipped[stage][index] = true
	n := len(p.skipped[stage])
	p.mu.Unlock()
	if !again && p.opts.OnSkip != nil {
		p.opts.OnSkip(SkippedItem{Address: s.Address, Index: index, Item: name, Reason: err.Error()})
	}
	if s.MaxSkips >= 0 && n > s.MaxSkips {
		failure.Err = fmt.Errorf("more than max_skips = %d items would be skipped: %w", s.MaxSkips, err)
		return failure
	}
	return nil
}
