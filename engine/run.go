package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pipectl/pipectl/engine/cache"
	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/internal/machine"
	"github.com/pipectl/pipectl/stages"
)

// run is one run of a probe, from a standing start until its steps are done: goroutines, and the queues between them.
type run struct {
	p      *Pipeline
	plan   *Plan
	probe  Probe
	source stages.Source // nil where a pool is fused
	epochs int           // after which a fused pool ends; 0: never
	// filling says that the run is there to fill the caches.
	filling bool
	fills   bool          // in training: the epoch under way fills caches
	cached  *cache.Memory // what an isolated range of item stages is exchanged for
	usable  int64         // how many of its items
	taps    []tap         // by boundary; nil unless the caches are being filled
	keepers []*keeper     // of items from the source
	until   int           // the boundary where items are done with, in a pass for kept caches; 0 in all others

	ctx    context.Context
	cancel context.CancelFunc
	start  time.Time
	usage  machine.Usage // by all, before the start
	cpu    time.Duration // that this process had used then; negative if unknown
	wg     sync.WaitGroup

	feeder  *feeder
	queues  []*queue[item] // by segment; nil where there is none
	asm     *assembler     // nil where batches come from a cache
	uploads *queue[delivery]
	window  int64
	replay  int64 // the next batch from the cache
	pooled  bool  // batches come from the fused pool

	pools    [][]*clock // by segment
	transfer *clock
	device   []deviceStage // what the transfer's goroutine lets the device do
	train    *clock
	burners  *burners // nil where none burn

	steps   atomic.Int64
	samples atomic.Int64
	skips   atomic.Int64

	mu  sync.Mutex
	err error
}

// delivery is a batch on its way to the step.
type delivery struct {
	batch int64
	epoch int        // for what is drawn on the device: of the batch, or how often the cache was replayed before it
	last  bool       // of its epoch
	host  *hostBatch // nil once its memory was given back
	copy  *gpu.Batch // nil before the transfer
	// Whether each belongs to a cache, and so isn't given back.
	hostKept, copyKept bool
}

func (d delivery) place() int64 { return d.batch }

// tap keeps what passes a boundary.
type tap struct {
	cache *cache.Memory // nil: nothing is kept here
	full  atomic.Bool
}

func (t *tap) keep(it *item, el *stages.Element) {
	if t.cache == nil || t.full.Load() {
		return
	}
	if it.skip {
		el = nil
	}
	if !t.cache.Put(int(it.Seq), it.Item, int(it.made), el) {
		t.full.Store(true)
	}
}

// keep keeps what passes a boundary, where something is to hold it.
func (r *run) keep(boundary int, it *item, el *stages.Element) {
	if r.taps != nil {
		r.taps[boundary].keep(it, el)
	}
	r.retain(boundary, it, el)
}

// newRun sets a run up: from batch first on, to the item end, or without an end where that is negative. Its workers
// start with staff.
func (p *Pipeline) newRun(ctx context.Context, probe Probe, first, end int64) *run {
	plan := p.Plan
	// Reading what is used takes its time, which isn't the run's.
	r := &run{usage: p.usage(), cpu: p.cpuTime(), p: p, plan: plan, probe: probe, source: p.source, start: time.Now(), window: int64(plan.window())}
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.queues = make([]*queue[item], len(plan.Segments))
	r.pools = make([][]*clock, len(plan.Segments))
	r.train = newClock(r.start, 1)
	r.replay = first
	if plan.transfer >= 0 && !(probe.Suffix() && probe.To > plan.transfer) {
		r.transfer = newClock(r.start, plan.train-plan.transfer)
		r.device = plan.deviceStages()
		r.uploads = newQueue[delivery](plan.Segments[p.segment(plan.transfer)].Prefetch, 1)
	}
	if probe.Suffix() && probe.To > plan.batch {
		return r
	}
	if r.pooled = p.pool != nil; r.pooled {
		for range max(plan.Segments[0].Workers, 1) {
			r.pools[0] = append(r.pools[0], newLedger(r.start, plan.batch+1))
		}
		return r
	}
	l := plan.layout
	if probe.Suffix() {
		l.epoch = p.usable(probe.To)
		first %= int64(l.batches())
	}
	if probe.From > 0 && probe.To <= plan.batch {
		r.cached, r.usable = p.caches[probe.To], int64(p.usable(probe.To))
	}
	r.feeder = newFeeder(l, l.first(first), end, l.first(first+r.window))
	if probe.Suffix() {
		r.feeder.cache = p.caches[probe.To]
	} else {
		r.feeder.order = p.order()
		r.keepers, r.feeder.ahead = p.keepers, p.lookahead()
	}
	pool := p.batches
	if probe.From > 0 && probe.From <= plan.batch && probe.To > plan.batch {
		pool = nil
	}
	last := p.segment(plan.batch)
	r.asm = newAssembler(l, pool, first, int(r.window), plan.Segments[last].Prefetch, plan.Segments[last].Workers)
	return r
}

// order returns in which order the source's items come.
func (p *Pipeline) order() indexer {
	e := p.Plan.Experiment
	if p.interleaved != nil {
		return newInterleavedOrder(p.interleaved, e.Loads(), e.Seed)
	}
	return newOrder(e.Stages[0], p.source, e.Seed)
}

// segment returns the index of the segment that a stage belongs to.
func (p *Pipeline) segment(stage int) int {
	for i, g := range p.Plan.Segments {
		if stage <= g.Last {
			return i
		}
	}
	panic("engine: stage beyond the plan")
}

// staff starts the workers of all segments that execute item stages, and the transfer.
func (p *Pipeline) staff(r *run) {
	plan := p.Plan
	defer func() {
		if r.uploads != nil && !r.filling {
			r.wg.Go(r.transferLoop)
		}
	}()
	if r.pooled {
		if err := r.startPool(); err != nil {
			r.fail(err)
		}
		return
	}
	if r.asm == nil {
		return
	}
	firstStage := 0
	if r.probe.Suffix() {
		firstStage = r.probe.To
	}
	var workers []*worker
	var in puller = r.feeder
	for s := p.segment(firstStage); s <= p.segment(plan.batch); s++ {
		g := &plan.Segments[s]
		if g.Last < plan.batch {
			r.queues[s] = newQueue[item](g.Prefetch, g.Workers)
		}
		from := max(g.First, firstStage)
		for n := range g.Workers {
			collator, err := stages.Collator(nil), error(nil)
			if g.Last == plan.batch {
				if collator, err = p.collator(n); err != nil {
					r.fail(err)
					return
				}
			}
			w := &worker{run: r, kept: r.taps != nil || r.keepers != nil, in: in, collator: collator, mixer: plan.mixer(), out: r.queues[s], free: p.buffers[s],
				clock: newClock(r.start, g.Last-from+1), items: make([]int64, g.Last-from+1), split: make([]time.Duration, g.Last-from+1), current: from}
			for i := from; i <= g.Last; i++ {
				t := task{index: i, role: r.role(i), inPlace: i+1 == plan.batch && i < g.Last && r.asm.pool != nil, call: stages.Call{Context: r.ctx}, out: w.free.get()}
				st := plan.Experiment.Stages[i]
				if st.Block != stages.Load && i < plan.batch {
					var err error
					if t.stage, err = p.instance(i, n); err != nil {
						r.fail(err)
						return
					}
				}
				if st.Block == stages.Augment {
					d := newDraws(plan.Experiment.Seed, st.Address)
					t.draws, t.call.Rand = &d, d.rand
				}
				w.tasks = append(w.tasks, t)
			}
			r.pools[s] = append(r.pools[s], w.clock)
			workers = append(workers, w)
		}
		in = r.queues[s]
	}
	for _, w := range workers {
		r.wg.Go(w.work)
	}
}

// role says what workers do where a stage stands.
func (r *run) role(stage int) role {
	switch p := r.probe; {
	case stage == r.plan.batch:
		return collate
	case p.From == 0 || stage < p.From || stage >= p.To:
		return execute
	case stage == p.From && p.To <= r.plan.batch:
		return exchange
	default:
		return idle
	}
}

// hostBatch returns the next batch from the workers or from the cache. It reports false once no more can come.
func (r *run) hostBatch(c *clock) (delivery, bool) {
	if r.pooled {
		return r.poolBatch(c)
	}
	if r.asm == nil {
		d := delivery{batch: r.replay, epoch: int(r.replay / int64(len(r.p.hosts)))}
		r.replay++
		r.exchange(&d)
		return d, true
	}
	for empty := 0; ; empty++ {
		if empty > r.plan.Epoch {
			r.fail(&StageError{Address: BatchBlock, Err: errAllSkipped})
			return delivery{}, false
		}
		batch, host, ok := r.asm.pop(c)
		if !ok {
			if empty > 0 && r.steps.Load() == 0 {
				r.fail(&StageError{Address: BatchBlock, Err: errAllSkipped})
			}
			return delivery{}, false
		}
		epoch := int64(r.asm.layout.batches())
		d := delivery{batch: batch, epoch: int(batch / epoch), last: (batch+1)%epoch == 0, host: host}
		if host == nil {
			r.exchange(&d)
		} else if host.Len == 0 {
			r.finish(d)
			continue
		}
		return d, true
	}
}

var errAllSkipped = errors.New("every item of an epoch was skipped: there is nothing to train on")

// exchange makes a delivery one that the cache behind the probe's range holds.
func (r *run) exchange(d *delivery) {
	r.release(d)
	if r.probe.To > r.plan.batch+1 {
		d.copy, d.copyKept = r.p.copies[d.batch%int64(len(r.p.copies))], true
	} else {
		d.host, d.hostKept = r.p.hosts[d.batch%int64(len(r.p.hosts))], true
	}
}

// nextBatch returns the next batch on the device, for the train stage.
func (r *run) nextBatch() (delivery, bool) {
	if r.uploads != nil {
		var d [1]delivery
		ok := r.uploads.pop(d[:], r.train) == 1
		return d[0], ok
	}
	d, ok := r.hostBatch(r.train)
	if !ok || d.copy != nil {
		return d, ok
	}
	// Without a transfer stage the step waits for the copy as for the rest of its data.
	r.train.enter(waitIn)
	_, _, ok = r.upload(&d, r.plan.train)
	r.train.enter(busy)
	if !ok {
		r.finish(d)
		return d, false
	}
	return d, true
}

// release gives the batch's host memory back.
func (r *run) release(d *delivery) {
	if d.host != nil && !d.hostKept {
		r.p.giveBack(d.host)
	}
	d.host = nil
}

// finish gives a batch back that the step is done with, and lets its successors come.
func (r *run) finish(d delivery) {
	if d.copy != nil && !d.copyKept && d.copy.Free != nil {
		d.copy.Free()
	}
	r.release(&d)
	if r.feeder != nil {
		r.feeder.allow(r.feeder.layout.first(d.batch + 1 + r.window))
	}
}

// fail ends the run with an error; the first one counts.
func (r *run) fail(err error) {
	r.mu.Lock()
	if r.err == nil && r.ctx.Err() == nil {
		r.err = err
	}
	r.mu.Unlock()
	r.stop()
}

// stop wakes all who wait, and lets none wait again.
func (r *run) stop() {
	r.cancel()
	r.burners.stop()
	if r.feeder != nil {
		r.feeder.close()
	}
	for _, q := range r.queues {
		if q != nil {
			q.close()
		}
	}
	if r.asm != nil {
		r.asm.close()
	}
	if r.uploads != nil {
		r.uploads.close()
	}
}

// end stops the run, waits for all its goroutines and takes its memory back.
func (r *run) end() error {
	r.stop()
	r.wg.Wait()
	for _, q := range r.queues {
		if q != nil {
			q.drain(func(it item) { it.buf.release() })
		}
	}
	if r.uploads != nil {
		r.uploads.drain(r.finish)
	}
	if r.asm != nil {
		r.asm.drain()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// skip leaves an item out, or ends the run and reports false where the stage doesn't allow that.
func (r *run) skip(stage int, it *item, err error) bool {
	if err := r.p.skip(stage, it.Index, err); err != nil {
		r.fail(err)
		return false
	}
	r.skips.Add(1)
	return true
}

// catch turns a panic in a stage into an error.
func catch(err *error) {
	if e := recover(); e != nil {
		*err = fmt.Errorf("panic: %v\n%s", e, debug.Stack())
	}
}

func (r *run) address(stage int) string { return r.plan.Experiment.Stages[stage].Address }

func (r *run) name(it *item) string { return r.p.itemName(it.Index) }

// giveBack lets a host batch be used again, or gives it back to the pool that made it.
func (p *Pipeline) giveBack(h *hostBatch) {
	if h.pooled {
		h.free()
		return
	}
	p.batches.put(h)
}
