package bisect

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/stages"
)

// sim is a Bench that computes the time a step of a pipeline from a model of it: the slowest of its segments, of the
// CPU that its spinning stages share, of the cache's replay and of the step.
type sim struct {
	cost    []float64 // milliseconds a step of each stage before the step, on one worker
	spin    []bool    // stages that need a core for all of their time; nil: none
	workers []int     // of each stage's segment
	fused   []bool    // stages that share the workers of the one before; nil: none
	step    float64   // milliseconds
	drag    float64   // milliseconds by which the step is slower while any stage runs
	cores   float64   // 0: as many as it takes
	replay  []float64 // milliseconds a step that the cache at each boundary takes; nil: none

	noise    float64 // sigma of the lognormal noise of an interval
	outliers float64 // share of intervals that take three times as long
	drift    func(interval int) float64
	rng      *rand.Rand
	busy     func(stage int, d time.Duration) time.Duration // falsifies the accounts; nil: they are true
	filling  int                                            // a stage whose queue is still filling: it makes half as much again as is consumed; 0: none
	silent   bool                                           // there are no accounts
	used     float64                                        // cores that are busy; 0: unknown
	measure  func(p engine.Probe) error                     // is called for each interval; may be nil
	disturb  func(*engine.Interval)                         // adds what disturbs an interval; may be nil
	sleeps   bool                                           // intervals take their time

	intervals int
	probes    map[engine.Probe]bool
}

func (m *sim) Measure(ctx context.Context, p engine.Probe, warmup, steps int) (engine.Interval, error) {
	if m.measure != nil {
		if err := m.measure(p); err != nil {
			return engine.Interval{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return engine.Interval{}, err
	}
	if m.probes == nil {
		m.probes = map[engine.Probe]bool{}
	}
	m.probes[p] = true
	t := m.time(p)
	wait := max(t-m.slowed(p), 0) / t
	if m.noise > 0 {
		t *= math.Exp(m.noise * m.rng.NormFloat64())
		if m.rng.Float64() < m.outliers {
			t *= 3
		}
	}
	if m.drift != nil {
		t *= m.drift(m.intervals)
	}
	m.intervals++
	elapsed := time.Duration(t * float64(steps) * 1e6)
	if m.sleeps {
		time.Sleep(time.Duration(t * float64(warmup+steps) * 1e6))
	}
	iv := engine.Interval{Steps: steps, Samples: int64(steps), Elapsed: elapsed, Starved: time.Duration(wait * float64(elapsed)), CPU: -1, Others: -1, Throttled: -1, Swapped: -1,
		Resident: -1, Frequency: -1, Overheats: -1}
	if m.used > 0 {
		iv.CPU = m.used
	}
	if m.disturb != nil {
		m.disturb(&iv)
	}
	if m.silent {
		return iv, nil
	}
	share := float64(elapsed) / m.time(p) // a millisecond of work a step, in this interval
	for i, c := range append(slices.Clone(m.cost), m.slowed(p)) {
		a := engine.Account{Workers: 1, Queue: -1}
		if i < len(m.workers) {
			a.Workers = m.workers[i]
		}
		if i < p.From || i >= p.To {
			a.Busy = time.Duration(c * share)
			a.Items = iv.Samples
		}
		if i == m.filling && i > 0 {
			a.Busy, a.Items = a.Busy*3/2, a.Items*3/2
		}
		if m.busy != nil {
			a.Busy = m.busy(i, a.Busy)
		}
		a.WaitIn = elapsed*time.Duration(a.Workers) - a.Busy
		iv.Stages = append(iv.Stages, a)
	}
	return iv, nil
}

// slowed returns the milliseconds that the step itself takes in a probe.
func (m *sim) slowed(p engine.Probe) float64 {
	if p == (engine.Probe{To: len(m.cost)}) {
		return m.step
	}
	return m.step + m.drag
}

// time returns the milliseconds a step of a probe.
func (m *sim) time(p engine.Probe) float64 {
	t, pool, cpu := m.slowed(p), 0.0, 0.0
	for i, c := range m.cost {
		if m.fused == nil || !m.fused[i] {
			pool = 0
		}
		if p.From <= i && i < p.To {
			continue
		}
		pool += c / float64(m.workers[i])
		t = max(t, pool)
		if m.spin != nil && m.spin[i] {
			cpu += c
		}
	}
	if m.cores > 0 {
		t = max(t, cpu/m.cores)
	}
	if m.replay != nil && !p.Baseline() {
		t = max(t, m.replay[p.To])
	}
	return t
}

// plan returns a plan that fits the model: a load stage, prepare stages and a train stage, every boundary a probe point.
func (m *sim) plan() *engine.Plan {
	n := len(m.cost)
	if m.workers == nil {
		m.workers = slices.Repeat([]int{1}, n)
	}
	p := &engine.Plan{
		Experiment: &engine.Experiment{
			Name:   "test",
			Bisect: engine.Bisect{Strategy: Bisection, Warmup: 1, Steps: 10, Rounds: 6, Confidence: 0.95, MinEffect: 0.05},
		},
		Points: slices.Repeat([]bool{true}, n+1),
		Types:  make([]stages.Type, n+1),
	}
	for i := range n {
		st := engine.Stage{Address: fmt.Sprintf("prepare.s%d", i), Block: stages.Prepare}
		if i == 0 {
			st.Address, st.Block = "load.s0", stages.Load
		}
		p.Experiment.Stages = append(p.Experiment.Stages, st)
		if m.fused != nil && m.fused[i] {
			p.Segments[len(p.Segments)-1].Last = i
		} else {
			p.Segments = append(p.Segments, engine.Segment{First: i, Last: i, Workers: m.workers[i]})
		}
	}
	p.Experiment.Stages = append(p.Experiment.Stages, engine.Stage{Address: "train.step", Block: stages.Train})
	p.Segments = append(p.Segments, engine.Segment{First: n, Last: n, Workers: 1})
	return p
}

// gains returns what each stage alone gains, in milliseconds a step, from the model.
func (m *sim) gains() []float64 {
	g := make([]float64, len(m.cost))
	for i := range g {
		g[i] = m.time(engine.Probe{}) - m.time(engine.Probe{From: i, To: i + 1})
	}
	return g
}

// answers returns the bottlenecks that may be named: the one stage whose gain is the largest by far, or the step, or
// "" and each stage that is within tolerance of the largest gain, as a share of the baseline's time. A gain near
// min_effect may be taken as one or not.
func (m *sim) answers(tolerance float64) []string {
	base, all := m.time(engine.Probe{}), m.time(engine.Probe{To: len(m.cost)})
	if base-all < 0.01*base {
		return []string{"train.step"}
	}
	g := m.gains()
	most := slices.Max(g)
	var list []string
	if most > 0.03*base {
		for i, v := range g {
			if most-v < tolerance*base {
				list = append(list, m.plan().Experiment.Stages[i].Address)
			}
		}
	}
	if len(list) != 1 || most < 0.08*base {
		list = append(list, "")
	}
	return list
}

// planted returns a chain of 3 to 9 stages, one of them at least 1.5 times as costly as each other, in front of a fast
// step or of one that is the slowest.
func planted(rng *rand.Rand, kind string) *sim {
	n := 3 + rng.IntN(7)
	m := &sim{cost: make([]float64, n), workers: slices.Repeat([]int{1}, n), fused: make([]bool, n), spin: make([]bool, n), rng: rng}
	for i := range m.cost {
		m.cost[i] = 1 + 9*rng.Float64()
	}
	at := rng.IntN(n)
	m.cost[at] = 0
	m.cost[at] = slices.Max(m.cost) * (1.5 + rng.Float64())
	switch kind {
	case "pools":
	case "fused": // the same workers execute all
		w := 1 + rng.IntN(4)
		for i := range m.cost {
			m.fused[i], m.workers[i] = i > 0, w
		}
	case "shared": // two cores execute all
		m.cores = 2
		for i := range m.spin {
			m.spin[i] = true
		}
	case "mixed":
		m.cores = 2
		for i := range m.cost {
			m.fused[i] = i > 0 && rng.IntN(3) == 0
			m.spin[i] = rng.IntN(2) == 0
		}
	}
	m.step = m.time(engine.Probe{}) * 0.7 * rng.Float64()
	if rng.IntN(4) == 0 {
		m.step = m.time(engine.Probe{}) * (1.1 + rng.Float64())
	}
	return m
}

// search searches a model as edit changes its plan.
func (m *sim) search(t testing.TB, edit func(*engine.Plan)) *Report {
	t.Helper()
	p := m.plan()
	if edit != nil {
		edit(p)
	}
	r, err := Search(t.Context(), p, m, Options{Cores: int(m.cores)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
