package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/internal/machine"
	"github.com/pipectl/pipectl/stages"
)

// Measure runs a probe from a standing start, drops the warm-up steps and measures the others. The caches are filled
// before, at the first probe that needs one, and those that are kept before everything else. Intervals go on through the data set, or the cache, where the last one of their
// kind ended. The error is ctx's where that ended the run, and a *StageError where a stage did.
func (p *Pipeline) Measure(ctx context.Context, probe Probe, warmup, steps int) (Interval, error) {
	if err := p.keep(ctx); err != nil {
		return Interval{}, err
	}
	if !probe.Baseline() {
		if err := p.fill(ctx); err != nil {
			return Interval{}, err
		}
		if err := p.measurable(probe.To); err != nil {
			return Interval{}, err
		}
	}
	resident := -1.0
	if !probe.Suffix() {
		var err error
		if resident, err = p.chill(ctx); err != nil {
			return Interval{}, err
		}
	}
	if s, ok := p.step.(gpu.Restarter); ok {
		if err := s.Restart(); err != nil {
			return Interval{}, &StageError{Address: p.Plan.Experiment.Stages[p.Plan.train].Address, Err: err}
		}
	}
	first := p.next[probe.replays()]
	r := p.newRun(ctx, probe, first, -1)
	if warmup > 0 {
		// Batches come in a rhythm, in which a standing start always begins alike. An interval begins and ends anywhere in it, so that what
		// it has too much or too little of one is not the same in all rounds.
		warmup += p.gaps.IntN(min(longestRhythm, steps/2) + 1)
	}
	iv, err := p.drive(ctx, r, warmup, steps, nil, nil)
	if probe.Baseline() && iv.Elapsed > 0 {
		p.pace = iv.Rate()
	}
	iv.Resident = resident
	if p.pool == nil {
		// Data may have periods, such as one shard after the other: intervals that always began at the same place of one would all
		// be wrong in the same way.
		gap := p.gaps.Int64N(int64(steps) + 1)
		p.next[probe.replays()] = (first + r.steps.Load() + gap) % int64(p.Plan.Epoch)
	}
	return iv, err
}

// longestRhythm is how many steps the rhythm of batches is taken to have at most.
const longestRhythm = 8

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

// shortestRound is how long the intervals of training are at least, which are whole epochs.
const shortestRound = 500 * time.Millisecond

// Train runs the pipeline as it is for a number of epochs, from the start of the data set. It tells observe of each step, and measured
// of each interval, which is an epoch or, where these are short, several; the last is what there was before an error. The first
// epoch is an interval of its own where it fills caches that are kept.
func (p *Pipeline) Train(ctx context.Context, epochs int, observe func(Step), measured func(iv Interval, filling bool)) error {
	if err := p.keepAlong(ctx); err != nil {
		return err
	}
	l := p.Plan.layout
	r := p.newRun(ctx, Probe{}, 0, int64(l.epoch)*int64(epochs))
	r.epochs = epochs
	r.fills = slices.ContainsFunc(p.wanting(), func(k *keeper) bool { return k.disk.Load() != nil })
	_, err := p.drive(ctx, r, 0, -1, observe, measured)
	if err == nil {
		for _, k := range p.keepers { // of some, items were skipped
			k.seal()
		}
	}
	return err
}

// drive is the train stage: it eats batches until steps have been measured, or until no more come where steps is
// negative.
func (p *Pipeline) drive(ctx context.Context, r *run, warmup, steps int, observe func(Step), measured func(Interval, bool)) (Interval, error) {
	defer p.begin(ctx, r)()
	iv := Interval{Start: r.start, Resident: -1}
	p.eat(r, &iv, warmup, steps, observe, measured)
	if err := r.end(); err != nil {
		return iv, err
	}
	return iv, ctx.Err()
}

// begin starts a run's workers, and ends it when ctx does. The function it returns undoes what lasts.
func (p *Pipeline) begin(ctx context.Context, r *run) (done func()) {
	r.startBurners()
	p.staff(r)
	p.live.Store(r) // only now: whoever looks reads the pools that staff has made
	stop := context.AfterFunc(ctx, r.stop)
	return func() {
		stop()
		p.live.Store(nil)
	}
}

// flight is a step that was submitted.
type flight struct {
	step  Step
	batch delivery
	event gpu.Event
	begun time.Duration // when it was submitted
}

// eat is drive's loop. While a step is under way on the device, it fetches the next batch and submits the next step, so
// that an asynchronous device needn't wait for the host; where time is taken, it waits for the step first.
func (p *Pipeline) eat(r *run, iv *Interval, warmup, steps int, observe func(Step), measured func(Interval, bool)) {
	var from mark
	usage := r.usage
	if warmup == 0 {
		from = r.outset()
	}
	var before *flight
	defer func() {
		if before != nil {
			r.finish(before.batch)
		}
	}()
	// settle waits for the step before, if there is one.
	settle := func() bool {
		if before == nil {
			return true
		}
		f := before
		before = nil
		defer r.finish(f.batch)
		return p.settle(r, f, observe)
	}
	warm := newSettling(r)
	for n := 0; steps < 0 || n < warmup+steps; n++ {
		started := time.Since(r.start)
		d, ok := r.nextBatch()
		if !ok {
			break
		}
		got := time.Since(r.start)
		if n == 0 {
			iv.FirstBatch = got
		}
		r.burners.step()
		event, err := p.submit(r, d)
		if err != nil {
			r.failStep(err)
			r.finish(d)
			settle()
			return
		}
		if !settle() {
			r.finish(d)
			return
		}
		before = &flight{step: Step{Number: int64(n), Epoch: d.copy.Epoch, Samples: d.copy.Len, Waited: got - started,
			LastStep: d.last}, batch: d, event: event, begun: got}
		if (n+1 == warmup || n+1 == warmup+steps || observe != nil || measured != nil && d.last) && !settle() {
			return
		}
		if measured != nil && d.last {
			if m := r.mark(); m.at-from.at >= shortestRound || r.fills {
				used := p.usage()
				p.conclude(r, iv, from, m, usage, used)
				measured(*iv, r.hasFilled())
				from, usage, r.fills = m, used, false
				*iv = Interval{Start: r.start.Add(m.at), Resident: -1}
			}
		}
		if n+1 == warmup && !warm.over() {
			warmup++
		}
		if n+1 == warmup {
			usage = p.usage()
			from = r.mark()
			from.skips = 0 // those of the warm-up count
		}
	}
	if settle() {
		p.conclude(r, iv, from, r.mark(), usage, p.usage())
	}
	if measured != nil && iv.Steps > 0 {
		measured(*iv, r.hasFilled())
	}
}

// hasFilled reports whether the epochs of an interval filled caches: there are none any more that couldn't be written.
func (r *run) hasFilled() bool {
	return r.fills && slices.ContainsFunc(r.p.keepers, func(k *keeper) bool { return k.disk.Load() != nil })
}

// conclude sums up an interval between two marks, at which the system was used so much.
func (p *Pipeline) conclude(r *run, iv *Interval, from, to mark, before, after machine.Usage) {
	to.interval(from, r, iv)
	iv.disturbed(before, after)
	p.timed(iv)
}

// timed notes how fast the CPU's clock is, while the pipeline is still at work.
func (p *Pipeline) timed(iv *Interval) {
	c := p.clocks()
	iv.Frequency, iv.Overheats = c.Frequency, -1
	if c.Throttles >= 0 && p.throttles >= 0 {
		iv.Overheats = c.Throttles - p.throttles
	}
	p.throttles = c.Throttles
}

// disturbed notes what others did from one reading to another.
func (iv *Interval) disturbed(from, to machine.Usage) {
	iv.Others, iv.Throttled, iv.Swapped = -1, -1, -1
	if from.Busy >= 0 && to.Busy >= 0 && iv.CPU >= 0 && iv.Elapsed > 0 {
		iv.Others = max((to.Busy-from.Busy).Seconds()/iv.Elapsed.Seconds()-iv.CPU, 0)
	}
	if from.Throttled >= 0 && to.Throttled >= 0 {
		iv.Throttled = to.Throttled - from.Throttled
	}
	if from.Swapped >= 0 && to.Swapped >= 0 {
		iv.Swapped = to.Swapped - from.Swapped
	}
}

// submit starts one step.
func (p *Pipeline) submit(r *run, d delivery) (event gpu.Event, err error) {
	defer catch(&err)
	return p.step.Submit(r.ctx, d.copy)
}

// settle waits for a step, counts it and tells observe of it.
func (p *Pipeline) settle(r *run, f *flight, observe func(Step)) bool {
	err := func() (err error) {
		defer catch(&err)
		return f.event.Wait(r.ctx)
	}()
	if err != nil {
		r.failStep(err)
		return false
	}
	d, timed := f.event.Elapsed()
	if timed {
		r.train.add([]int64{1}, []time.Duration{d}, 1)
	} else {
		r.train.add([]int64{1}, []time.Duration{0}, 0)
	}
	r.samples.Add(int64(f.step.Samples))
	r.steps.Add(1)
	if observe == nil {
		return true
	}
	if f.step.Elapsed = d; !timed {
		f.step.Elapsed = time.Since(r.start) - f.begun
	}
	if l, ok := p.step.(gpu.Losser); ok {
		if f.step.Loss, err = l.Loss(); err != nil {
			r.failStep(err)
			return false
		}
		f.step.HasLoss = true
	}
	observe(f.step)
	return true
}

// failStep ends the run with an error of the step, unless it is over anyway.
func (r *run) failStep(err error) {
	if r.ctx.Err() == nil {
		r.fail(&StageError{Address: r.address(r.plan.train), Err: err})
	}
}

// mark is what a run's clocks and counters show at one moment.
type mark struct {
	at             time.Duration
	steps, samples int64
	skips          int64
	cpu            time.Duration // of this process; negative if unknown
	pools          [][]reading   // by segment and worker
	queues         [][2]int64    // pushes and what they found, by segment
	transfer       reading
	train          reading
}

// outset returns what a run's clocks and counters showed before it began.
func (r *run) outset() mark {
	m := mark{pools: make([][]reading, len(r.pools)), queues: make([][2]int64, len(r.pools)), cpu: r.cpu, train: r.train.zero()}
	if r.transfer != nil {
		m.transfer = r.transfer.zero()
	}
	for s, pool := range r.pools {
		m.pools[s] = make([]reading, len(pool))
		for w, c := range pool {
			m.pools[s][w] = c.zero()
		}
	}
	return m
}

func (r *run) mark() mark {
	m := mark{at: time.Since(r.start), steps: r.steps.Load(), samples: r.samples.Load(), skips: r.skips.Load(), cpu: r.p.cpuTime(), train: r.train.read()}
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
		case r.uploads != nil && r.plan.Segments[s].First == r.plan.transfer:
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
	iv.Skipped = m.skips - from.skips
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
			accounts[i].Workers = max(g.Workers, 1) // at the least, the main process does the work
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
		t := m.transfer.sub(from.transfer)
		// The device may have been at work on steps, which the copies and stages of later batches come after.
		t.byDevice(t.spent[busy], waitOut)
		t.charge(iv.Stages[plan.transfer:plan.train])
	}
	t := m.train.sub(from.train)
	// The step waits for data while the device has no step to work on and the host has no batch to give it. Where only the latter
	// holds, the device is busy still; where only the former does, it is the host that is slow to start the step.
	waited := t.spent[waitIn]
	t.byDevice(iv.Elapsed, waitIn)
	t.spent[waitIn] = min(t.spent[waitIn], waited)
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
	l := Live{Probe: r.probe, Elapsed: time.Since(r.start)}
	l.Start = r.start
	r.mark().interval(r.outset(), r, &l.Interval)
	return l, true
}

// LimitError says that a boundary can't be measured since its cache would hold not even one batch.
type LimitError struct {
	Address string // the stage before the boundary
	Limit   int64  // bytes
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the cache after %s may take %s, and one batch needs more", e.Address, stages.Bytes(e.Limit))
}
