package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/pipectl/pipectl/gpu"
)

// Measure runs a probe from a standing start, drops the warm-up steps and measures the others. The caches are filled
// before, at the first probe that needs one. Intervals from the source go on through the data set where the last one
// ended. The error is ctx's where that ended the run, and a *StageError where a stage did.
func (p *Pipeline) Measure(ctx context.Context, probe Probe, warmup, steps int) (Interval, error) {
	if !probe.Baseline() {
		if err := p.fill(ctx); err != nil {
			return Interval{}, err
		}
		if err := p.measurable(probe.To); err != nil {
			return Interval{}, err
		}
	}
	first := p.next
	r := p.newRun(ctx, probe, first, -1)
	iv, err := p.drive(ctx, r, warmup, steps, nil)
	if !probe.Suffix() {
		p.next = (first + r.steps.Load()) % int64(p.Plan.Epoch)
	}
	return iv, err
}

// Step tells of one training step of Train.
type Step struct {
	Number   int64 // from 0
	Epoch    int
	Samples  int
	Elapsed  time.Duration // of the step alone
	Waited   time.Duration // for its batch
	Loss     float64
	HasLoss  bool
	LastStep bool // of its epoch
}

// Train runs the pipeline as it is for a number of epochs, from the start of the data set.
func (p *Pipeline) Train(ctx context.Context, epochs int, observe func(Step)) (Interval, error) {
	l := p.Plan.layout
	r := p.newRun(ctx, Probe{}, 0, int64(l.epoch)*int64(epochs))
	return p.drive(ctx, r, 0, -1, observe)
}

// drive is the train stage: it eats batches until steps have been measured, or until no more come where steps is
// negative.
func (p *Pipeline) drive(ctx context.Context, r *run, warmup, steps int, observe func(Step)) (Interval, error) {
	defer p.begin(ctx, r)()
	iv := Interval{Start: r.start}
	p.eat(r, &iv, warmup, steps, observe)
	if err := r.end(); err != nil {
		return iv, err
	}
	return iv, ctx.Err()
}

// begin starts a run's workers, and ends it when ctx does. The function it returns undoes what lasts.
func (p *Pipeline) begin(ctx context.Context, r *run) (done func()) {
	p.live.Store(r)
	p.staff(r)
	stop := context.AfterFunc(ctx, r.stop)
	return func() {
		stop()
		p.live.Store(nil)
	}
}

// eat is drive's loop.
func (p *Pipeline) eat(r *run, iv *Interval, warmup, steps int, observe func(Step)) {
	var from mark
	if warmup == 0 {
		from = r.mark()
	}
	for n := 0; steps < 0 || n < warmup+steps; n++ {
		before := time.Since(r.start)
		d, ok := r.nextBatch()
		if !ok {
			break
		}
		got := time.Since(r.start)
		if n == 0 {
			iv.FirstBatch = got
		}
		if err := p.train(r, d); err != nil {
			if r.ctx.Err() == nil {
				r.fail(&StageError{Address: r.address(p.Plan.train), Err: err})
			}
			r.finish(d)
			return
		}
		epoch, samples := d.copy.Epoch, d.copy.Len
		r.train.add([]int64{1}, []time.Duration{0})
		r.samples.Add(int64(samples))
		r.steps.Add(1)
		r.finish(d)
		if n+1 == warmup {
			from = r.mark()
		}
		if observe != nil {
			s := Step{Number: int64(n), Epoch: epoch, Samples: samples, Waited: got - before, Elapsed: time.Since(r.start) - got}
			s.LastStep = (n+1)%p.Plan.Epoch == 0
			if l, ok := p.step.(gpu.Losser); ok {
				var err error
				if s.Loss, err = l.Loss(); err != nil {
					r.fail(&StageError{Address: r.address(p.Plan.train), Err: err})
					return
				}
				s.HasLoss = true
			}
			observe(s)
		}
	}
	r.mark().interval(from, r, iv)
}

// train does one step and waits for it.
func (p *Pipeline) train(r *run, d delivery) (err error) {
	defer catch(&err)
	event, err := p.step.Submit(r.ctx, d.copy)
	if err != nil {
		return err
	}
	return event.Wait(r.ctx)
}

// mark is what a run's clocks and counters show at one moment.
type mark struct {
	at             time.Duration
	steps, samples int64
	cpu            time.Duration // of this process; negative if unknown
	pools          [][]reading   // by segment and worker
	queues         [][2]int64    // pushes and what they found, by segment
	transfer       reading
	train          reading
}

func (r *run) mark() mark {
	m := mark{at: time.Since(r.start), steps: r.steps.Load(), samples: r.samples.Load(), cpu: cpuTime(), train: r.train.read()}
	for s, pool := range r.pools {
		readings := make([]reading, len(pool))
		for i, c := range pool {
			readings[i] = c.read()
		}
		m.pools = append(m.pools, readings)
		var q [2]int64
		switch {
		case r.queues[s] != nil:
			q[0], q[1] = r.queues[s].counts()
		case r.asm != nil && r.plan.Segments[s].Last == r.plan.batch:
			q[0], q[1] = r.asm.counts()
		case r.uploads != nil && r.plan.Segments[s].Last == r.plan.transfer:
			q[0], q[1] = r.uploads.counts()
		}
		m.queues = append(m.queues, q)
	}
	if r.transfer != nil {
		m.transfer = r.transfer.read()
	}
	return m
}

// interval sums up what happened between two marks.
func (m mark) interval(from mark, r *run, iv *Interval) {
	if from.pools == nil { // the run ended within its warm-up
		return
	}
	plan := r.plan
	iv.Steps, iv.Samples, iv.Elapsed = int(m.steps-from.steps), m.samples-from.samples, m.at-from.at
	iv.Skipped = r.skips.Load()
	iv.CPU = -1
	if m.cpu >= 0 && from.cpu >= 0 && iv.Elapsed > 0 {
		iv.CPU = (m.cpu - from.cpu).Seconds() / iv.Elapsed.Seconds()
	}
	iv.Stages = make([]Account, len(plan.Experiment.Stages))
	for i, s := range plan.Experiment.Stages {
		iv.Stages[i] = Account{Address: s.Address, Queue: -1}
	}
	for s, g := range plan.Segments {
		accounts := iv.Stages[g.First : g.Last+1]
		for i := range accounts {
			accounts[i].Workers = g.Workers
		}
		for w := range m.pools[s] {
			d := m.pools[s][w].sub(from.pools[s][w])
			d.charge(accounts[len(accounts)-len(d.items):])
		}
		if pushes := m.queues[s][0] - from.queues[s][0]; pushes > 0 {
			iv.Stages[g.Last].Queue = float64(m.queues[s][1]-from.queues[s][1]) / float64(pushes) / float64(g.Prefetch)
		}
	}
	if r.transfer != nil {
		m.transfer.sub(from.transfer).charge(iv.Stages[plan.transfer : plan.transfer+1])
	}
	t := m.train.sub(from.train)
	t.charge(iv.Stages[plan.train : plan.train+1])
	iv.Starved = t.spent[waitIn]
}

// Live is what a running pipeline has done so far, for a progress display.
type Live struct {
	Probe   Probe
	Elapsed time.Duration
	Interval
}

// Live returns what the run that is under way has done since its start. It reports false where none is. It may be
// called from any goroutine.
func (p *Pipeline) Live() (Live, bool) {
	r := p.live.Load()
	if r == nil {
		return Live{}, false
	}
	zero := mark{pools: make([][]reading, len(r.pools)), queues: make([][2]int64, len(r.pools)),
		transfer: reading{items: make([]int64, 1), split: make([]time.Duration, 1)},
		train:    reading{items: make([]int64, 1), split: make([]time.Duration, 1)}}
	for s, pool := range r.pools {
		zero.pools[s] = make([]reading, len(pool))
		for w, c := range pool {
			zero.pools[s][w] = reading{items: make([]int64, len(c.items)), split: make([]time.Duration, len(c.split))}
		}
	}
	l := Live{Probe: r.probe, Elapsed: time.Since(r.start)}
	l.Start = r.start
	r.mark().interval(zero, r, &l.Interval)
	return l, true
}

// LimitError says that a boundary can't be measured since its cache would hold not even one batch.
type LimitError struct {
	Address string // the stage before the boundary
	Limit   int64  // bytes
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the cache after %s may take %d bytes, and one batch needs more", e.Address, e.Limit)
}
