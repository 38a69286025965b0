package predict

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/internal/stats"
)

// Model is a pipeline as the accounts of its baseline describe it.
type Model struct {
	plan       *engine.Plan
	segments   []engine.Segment // with the workers that the accounts tell of
	natures    []nature
	cores      float64
	confidence float64
	batch      int       // index of the batch stage, -1 without one
	transfer   int       // of the transfer, -1 without one
	size       int       // samples in a batch
	shares     []float64 // by stage, of the items that it works on: less than 1 for several load blocks

	rounds [splits][]demand // by split and interval
	rates  []float64        // measured, by interval
	// varies is the squared coefficient of variation of an item's work where it isn't known: what best explains the
	// baseline's rate, and the most that doesn't contradict it.
	varies, mostVaries float64
}

// Options are what a model must be told besides the plan and the intervals.
type Options struct {
	Cores      float64 // that the pipeline may use; 0 if unknown
	Confidence float64 // of the intervals that predictions come with
}

// Prediction is a foretold step rate.
type Prediction struct {
	// Rate is in steps a second. Its interval holds what the accounts of the baseline's rounds lead to one by one, at the confidence
	// asked for, and what is left open by what isn't known of the CPU's part in the work and of its variation. An
	// end is infinite where the rounds are too few.
	Rate bisect.Estimate
	// Speedup is Rate over the baseline's rate, as it was measured, taken round by round.
	Speedup bisect.Estimate
	Limit   Limit
}

// Limit is what holds the pipeline up.
type Limit struct {
	// Address is the stage that does most in the segment that is the slowest; "" where it is the CPU.
	Address string
	Shares  []string // the addresses of all stages of that segment that run
	Busy    float64  // the share of its workers' time for which that segment is at work
	CPU     float64  // the share of the cores that is used; negative if unknown
}

// Squared coefficients of variation of work.
const (
	exponential = 1 // what is thought possible without a sign of it
	heavyTailed = 4 // the most that a baseline's slowness is put down to
)

// Learn makes a model of what a baseline's intervals tell. All must have accounts of the plan's stages.
func Learn(plan *engine.Plan, baseline []engine.Interval, o Options) (*Model, error) {
	m := &Model{plan: plan, segments: slices.Clone(plan.Segments), cores: o.Cores, confidence: o.Confidence, batch: -1, transfer: -1}
	list := plan.Experiment.Stages
	for i, s := range list {
		m.natures = append(m.natures, natureOf(s))
		switch s.Block {
		case engine.BatchBlock:
			m.batch = i
		case engine.TransferBlock:
			m.transfer = i
		}
	}
	if len(baseline) == 0 {
		return nil, errors.New("the baseline was not measured")
	}
	var samples, steps int64
	for _, iv := range baseline {
		switch {
		case iv.Steps <= 0 || iv.Elapsed <= 0:
			return nil, errors.New("an interval of the baseline has no steps")
		case len(iv.Stages) != len(list):
			return nil, fmt.Errorf("an interval of the baseline has accounts of %d stages, and the pipeline has %d", len(iv.Stages), len(list))
		}
		for i, a := range iv.Stages {
			if a.Address != list[i].Address {
				return nil, fmt.Errorf("an interval of the baseline has an account of %s where the pipeline has %s", a.Address, list[i].Address)
			}
		}
		samples += iv.Samples
		steps += int64(iv.Steps)
		m.rates = append(m.rates, iv.Rate())
	}
	m.size = max(1, int(math.Round(float64(samples)/float64(steps))))
	for i := range list {
		var own, all int64
		for _, iv := range baseline {
			own, all = own+iv.Stages[i].Items, all+iv.Passed(i)
		}
		m.shares = append(m.shares, float64(max(own, 1))/float64(max(all, 1)))
	}
	for i := range m.segments {
		if g := &m.segments[i]; g.Workers > 0 {
			g.Workers = max(1, baseline[0].Stages[g.First].Workers)
		}
	}
	for how := range m.rounds {
		for _, iv := range baseline {
			m.rounds[how] = append(m.rounds[how], m.demandOf(iv, split(how)))
		}
	}
	m.fitVariation()
	return m, nil
}

// Probe predicts the rate of a probe.
func (m *Model) Probe(p engine.Probe) Prediction {
	return m.predict(variant{segments: m.segments, probe: p})
}

// train returns the index of the train stage.
func (m *Model) train() int { return len(m.plan.Experiment.Stages) - 1 }

// variant is a pipeline to predict the rate of.
type variant struct {
	segments []engine.Segment
	probe    engine.Probe
	cost     []cost // by stage; nil: as measured
}

// cost is what becomes of a stage's work.
type cost struct {
	factor float64
	each   float64 // seconds an item, in place of what it was; negative: times factor
}

// predict foretells the rate of a variant.
func (m *Model) predict(v variant) Prediction {
	var p Prediction
	var rates []float64
	estimate := func(how split, varies float64) (rate, speedup stats.Summary) {
		rates = make([]float64, len(m.rates))
		speedups := make([]float64, len(m.rates))
		for i := range m.rates {
			rates[i] = 1 / m.step(&m.rounds[how][i], v, varies).time
			speedups[i] = rates[i] / m.rates[i]
		}
		return stats.Summarize(rates, m.confidence), stats.Summarize(speedups, m.confidence)
	}
	rate, speedup := estimate(byCPU, m.varies)
	typical := m.rounds[byCPU][middle(rates)]
	p.Limit = m.step(&typical, v, m.varies).limit(m.plan)
	p.Rate = bisect.Estimate{Median: rate.Median, Low: rate.Low, High: rate.High}
	p.Speedup = bisect.Estimate{Median: speedup.Median, Low: speedup.Low, High: speedup.High}
	for _, how := range []split{byCPU, starved} {
		for _, varies := range []float64{0, m.mostVaries} {
			rate, speedup := estimate(how, varies)
			widen(&p.Rate, rate)
			widen(&p.Speedup, speedup)
		}
	}
	return p
}

// widen makes an estimate's interval include another's.
func widen(e *bisect.Estimate, s stats.Summary) {
	e.Low, e.High = min(e.Low, s.Low), max(e.High, s.High)
}

// middle returns the index of the median of values, or of the one below it.
func middle(values []float64) int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	return order[(len(order)-1)/2]
}

// outcome is a step of a variant.
type outcome struct {
	time   float64 // seconds
	line   []station
	takes  []float64 // seconds, by station
	demand *demand
	cpu    []float64 // by stage, with what the variant makes of it
	work   []float64 // by stage: of all kinds
	used   float64   // CPU seconds of all
}

// step returns what a step of a variant takes.
func (m *Model) step(d *demand, v variant, varies float64) outcome {
	o := outcome{demand: d, cpu: make([]float64, len(d.cpu)), work: make([]float64, len(d.cpu))}
	o.line = m.stations(d, v, varies, &o)
	o.used = d.extra
	for _, s := range o.line {
		o.used += s.cpu
	}
	n := len(o.line)
	factors := slices.Repeat([]float64{1}, n)
	o.takes = make([]float64, n)
	times := func() float64 {
		for i := range o.line {
			o.takes[i] = o.line[i].takes(factors[i])
		}
		return 1 / throughput(o.line, o.takes)
	}
	o.time = times()
	if d.cores <= 0 || o.used == 0 {
		return o
	}
	o.time = max(o.time, o.used/d.cores)
	for range iterations {
		for i := range o.line {
			factors[i] = stretch(crowds(o.line, factors, d.extra, o.time, i), d.cores)
		}
		next := max(times(), o.used/d.cores)
		change := math.Abs(next-o.time) / o.time
		o.time = (o.time + next) / 2
		if change < settled {
			break
		}
	}
	return o
}

// stations returns the stations of a variant that are at work, and puts what each stage does into o.
func (m *Model) stations(d *demand, v variant, varies float64, o *outcome) []station {
	var line []station
	var serial *station // what the main process of a pool without workers does between the steps
	for _, g := range v.segments {
		s := station{first: g.First, last: g.Last, workers: g.Workers, threads: 1, batch: m.size, room: float64(g.Prefetch)}
		spread := 0.0
		for i := g.First; i <= g.Last; i++ {
			if v.probe.From <= i && i < v.probe.To {
				continue
			}
			cpu, wait := d.cpu[i], d.wait[i]
			if v.cost != nil {
				cpu, wait = m.changed(v.cost[i], i, cpu, wait)
			}
			o.cpu[i], o.work[i] = cpu, cpu+wait
			s.cpu += cpu
			s.wait += wait
			c, known := variationOf(m.plan.Experiment.Stages[i])
			if !known {
				c = varies
			}
			spread += c * (cpu + wait) * (cpu + wait)
		}
		if v.probe.Suffix() && g.Last < v.probe.To {
			continue // it doesn't run
		}
		switch {
		case g.First > m.batch:
			s.batch = 1
		case m.plan.Fused && g.First == 0:
			s.batch, s.room = 1, s.room*float64(g.Workers)
			spread /= float64(m.size) // its workers make whole batches
		case g.Last < m.batch:
			s.room /= float64(m.size)
		default:
			s.room++ // the batch that is being put together
		}
		if all := s.cpu + s.wait; all > 0 {
			s.varies = spread / (all * all)
		}
		if g.Last == m.train() {
			s.threads = d.threads
		}
		if g.Workers == 0 {
			serial = &s
			continue
		}
		if serial != nil {
			s.first = serial.first
			s.cpu += serial.cpu
			s.wait += serial.wait
			serial = nil
		}
		line = append(line, s)
	}
	return line
}

// changed returns a stage's seconds a step on a core and waiting for what c makes of them.
func (m *Model) changed(c cost, stage int, cpu, wait float64) (float64, float64) {
	factor := c.factor
	if c.each >= 0 {
		all := c.each
		if stage <= m.batch {
			all *= float64(m.size) * m.shares[stage]
		}
		switch {
		case cpu+wait > 0:
			factor = all / (cpu + wait)
		case m.natures[stage] == computes:
			return all, 0
		default:
			return 0, all
		}
	}
	return cpu * factor, wait * factor
}

// limit says what holds a step up.
func (o outcome) limit(plan *engine.Plan) Limit {
	l := Limit{CPU: -1}
	if o.demand.cores > 0 {
		l.CPU = min(1, o.used/o.time/o.demand.cores)
	}
	slowest := 0
	for i, t := range o.takes {
		if t > o.takes[slowest] {
			slowest = i
		}
	}
	s := o.line[slowest]
	best := s.first
	for i := s.first; i <= s.last; i++ {
		if o.work[i] > 0 {
			l.Shares = append(l.Shares, plan.Experiment.Stages[i].Address)
		}
		if o.work[i] > o.work[best] {
			best = i
		}
	}
	l.Busy = min(1, o.takes[slowest]/o.time)
	// Where workers need the cores longer than the cores are theirs, the cores are what is short.
	if alone := s.takes(1); l.CPU < crowded || alone > crowded*o.time {
		l.Address = plan.Experiment.Stages[best].Address
	}
	return l
}

// fitVariation finds out how much the work must vary for the baseline to be as slow as it was measured.
func (m *Model) fitVariation() {
	times := make([]float64, len(m.rates))
	for i, r := range m.rates {
		times[i] = 1 / r
	}
	measured := stats.Summarize(times, m.confidence)
	low, high := measured.Low, measured.High
	if !measured.Bounded() {
		low, high = slices.Min(times), slices.Max(times)
	}
	typical := m.rounds[byCPU][middle(m.rates)]
	at := func(varies float64) float64 { return m.step(&typical, variant{segments: m.segments}, varies).time }
	// reach returns the largest variation up to most with which a step takes at most time.
	reach := func(time, most float64) float64 {
		if at(most) <= time {
			return most
		}
		a, b := 0.0, most
		for range 30 {
			if x := (a + b) / 2; at(x) <= time {
				a = x
			} else {
				b = x
			}
		}
		return a
	}
	if at(0) < low && at(heavyTailed) >= low { // else it is something else
		m.varies = reach(measured.Median, heavyTailed)
	}
	m.mostVaries = max(m.varies, reach(high, exponential))
}
