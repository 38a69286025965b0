package improve

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/engine/predict"
	"github.com/pipectl/pipectl/internal/stats"
	"github.com/pipectl/pipectl/stages"
)

const (
	mostWorkers  = 4096    // that the language takes
	mostPrefetch = 1000000 // the same
	// widest is how many workers more than there are a prediction is asked about.
	widest = 64
	deeper = 4 // times as much is held by a queue that is too short
	// alike is the share of min_effect that two predictions may differ by and count as equal: then the change that is asked about first,
	// the smaller one, is preferred.
	alike = 0.2
)

// fusions are pairs of neighbours of which the second can do the first's work in the same pass, with the same result: prepare blocks, by
// type.
var fusions = [][2]string{{"to_float", "normalize"}}

// candidate is a set of changes that may be worth a try.
type candidate struct {
	changes    []Change
	experiment *engine.Experiment
	plan       *engine.Plan
	predicted  *bisect.Estimate // speed-up; nil where it can't be foretold
	limit      predict.Limit    // what is foretold to hold it up
	fewer      []candidate      // the same with fewer workers, ascending
}

// gain returns the speed-up foretold; ok is false where there is none.
func (c *candidate) gain() (speedup float64, ok bool) {
	if c.predicted == nil {
		return 0, false
	}
	return c.predicted.Median, true
}

// proposals collects the candidates for what holds a variant up.
type proposals struct {
	e     *engine.Experiment
	plan  *engine.Plan
	named int            // stage of the plan; -1 where none was named
	model *predict.Model // nil where the baseline has no accounts
	list  []candidate
	// tolerance is by how much predictions may differ and count as equal.
	tolerance float64
}

// propose returns the changes that may help against what a search has named: those that are foretold to gain most first, then those of
// which nothing is foretold, and last what changes several stages at once. Where several stages are equally slow, nothing is named, and
// only the latter may help.
func (s *search) propose() []candidate {
	plan := s.now.Plan
	p := &proposals{e: s.now.Experiment, plan: plan, tolerance: alike * s.cfg.MinEffect}
	p.named = slices.IndexFunc(plan.Experiment.Stages, func(st engine.Stage) bool { return st.Address == s.report.Bottleneck })
	if i := slices.IndexFunc(s.report.Probes, func(r bisect.ProbeResult) bool { return r.Probe.Baseline() }); i >= 0 {
		// Without a model nothing is foretold, and all is tried.
		rounds := s.report.Probes[i].Rounds
		p.model, _ = predict.Learn(plan, rounds, predict.Options{Cores: left(s.Cores, rounds), Confidence: s.cfg.Confidence})
	}
	if p.named >= 0 {
		p.moreWorkers()
		p.batchWorkers()
		p.pinnedMemory()
		p.fusedOperators()
		p.deeperQueues()
		p.sharedWorkers()
	}
	step := math.Log1p(p.tolerance)
	rank := func(c candidate) int {
		speedup, ok := c.gain()
		if !ok {
			return math.MinInt
		}
		return int(math.Round(math.Log(speedup) / step))
	}
	slices.SortStableFunc(p.list, func(a, b candidate) int { return cmp.Compare(rank(b), rank(a)) })
	p.balance()
	return p.list
}

// left returns how many of the cores others left to the pipeline in some intervals, which they will again.
func left(cores float64, rounds []engine.Interval) float64 {
	var others []float64
	for _, iv := range rounds {
		if iv.Others >= 0 && iv.CPU >= 0 {
			others = append(others, iv.Others)
		}
	}
	if cores <= 0 || len(others) == 0 {
		return cores
	}
	used := 0.0
	for _, iv := range rounds {
		used = max(used, iv.CPU) // so many there were
	}
	return min(cores, max(cores-stats.Summarize(others, 0.5).Median, used))
}

// stage returns a stage of the plan.
func (p *proposals) stage(i int) engine.Stage { return p.plan.Experiment.Stages[i] }

// segment returns the index of the segment that runs a stage.
func (p *proposals) segment(stage int) int {
	return slices.IndexFunc(p.plan.Segments, func(g engine.Segment) bool { return g.First <= stage && stage <= g.Last })
}

// change returns a change of an attribute that is a number.
func (p *proposals) change(address, attribute string, now, value int) Change {
	c := Change{Address: address, Attribute: attribute, Value: fmt.Sprint(value), Was: fmt.Sprint(now)}
	for _, s := range p.e.Settings { // which know whether it is left to the planner
		if s.Address == address && s.Attribute == attribute {
			c.Was = s.Value
		}
	}
	return c
}

// consider plans a set of changes and foretells what they give; ok is false where they can't be made.
func (p *proposals) consider(changes ...Change) (c candidate, ok bool) {
	c = candidate{changes: changes, experiment: Apply(p.e, changes...)}
	plan, problems := engine.Compile(c.experiment, engine.Dataset{Items: p.plan.Items, Steps: p.plan.Epoch, Classes: p.plan.Classes}, 0)
	if len(problems) > 0 {
		return c, false
	}
	c.plan = plan
	if p.model != nil && len(plan.Experiment.Stages) == len(p.plan.Experiment.Stages) {
		prediction := p.model.Planned(plan)
		c.predicted, c.limit = &prediction.Speedup, prediction.Limit
	}
	return c, true
}

// add adds a candidate for a set of changes, if they can be made.
func (p *proposals) add(changes ...Change) {
	if c, ok := p.consider(changes...); ok {
		p.collect(c)
	}
}

// collect adds a candidate that isn't foretold to give nothing.
func (p *proposals) collect(c candidate) {
	if speedup, foretold := c.gain(); !foretold || speedup >= 1+p.tolerance {
		p.list = append(p.list, c)
	}
}

// moreWorkers proposes more workers for the bottleneck, or for its pool: as few as are foretold to gain about as much as more could, and
// one more.
func (p *proposals) moreWorkers() {
	g := p.plan.Segments[p.segment(p.named)]
	address, now := p.crew(p.named)
	if address == "" {
		return
	}
	var all []candidate
	for n := now + 1; n <= min(now+widest, mostWorkers); n++ {
		c, ok := p.consider(p.change(address, workers, g.Workers, n))
		if !ok {
			return
		}
		all = append(all, c)
		if p.model == nil {
			break
		}
	}
	if len(all) == 0 {
		return
	}
	best, enough := 0.0, 0
	for _, c := range all {
		speedup, _ := c.gain()
		best = max(best, speedup)
	}
	for i, c := range all {
		if speedup, _ := c.gain(); speedup >= best*(1-p.tolerance) {
			enough = i
			break
		}
	}
	c := all[enough]
	c.fewer = all[:enough]
	p.list = append(p.list, c)
	if enough > 0 && now > 0 {
		p.list = append(p.list, all[0])
	}
}

// crew returns the block that says how many workers run a stage, and how many these are; "" where none does.
func (p *proposals) crew(stage int) (address string, workers int) {
	st, g := p.stage(p.plan.Experiment.Crew(stage)), p.plan.Segments[p.segment(stage)]
	first := p.stage(g.First)
	switch {
	case st.Device || st.Block == engine.TransferBlock || st.Block == stages.Train:
		return "", 0
	case g.Pool != "":
		return poolAddress + g.Pool, g.Workers
	case st.Block == engine.BatchBlock && g.First < g.Last: // those of the stage before collate
		if first.Workers == engine.Auto {
			return "", 0
		}
		return first.Address, g.Workers
	case st.Workers == engine.Auto && g.First < g.Last:
		return st.Address, 0 // of its own, which parts it from its neighbours
	}
	return st.Address, g.Workers
}

// balance proposes more workers for several stages at once, each time for that which is foretold to be the slowest then: what one of
// them alone gains may be too little to be seen.
func (p *proposals) balance() {
	if p.model == nil {
		return
	}
	slowest := p.model.Planned(p.plan).Limit.Address
	now := map[string]int{}
	var set []Change
	var all []candidate
	for range widest {
		at := slices.IndexFunc(p.plan.Experiment.Stages, func(s engine.Stage) bool { return s.Address == slowest })
		if at < 0 {
			break
		}
		address, workers := p.crew(at)
		if address == "" {
			break
		}
		if _, ok := now[address]; !ok {
			now[address] = workers
		}
		now[address]++
		c := p.change(address, "workers", p.plan.Segments[p.segment(at)].Workers, now[address])
		set = Merge(append(slices.Clone(set), c))
		next, ok := p.consider(set...)
		if !ok {
			break
		}
		all = append(all, next)
		slowest = next.limit.Address
	}
	best := 0.0
	for _, c := range all {
		speedup, _ := c.gain()
		best = max(best, speedup)
	}
	for _, c := range all {
		speedup, _ := c.gain()
		if speedup >= best*(1-p.tolerance) {
			if len(c.changes) > 1 || p.named < 0 {
				p.list = append(p.list, c)
			}
			return
		}
	}
}

// batchWorkers proposes a worker of its own for the batch, where the bottleneck's workers collate too.
func (p *proposals) batchWorkers() {
	g := p.plan.Segments[p.segment(p.named)]
	for i := g.First + 1; i <= g.Last; i++ {
		if st := p.stage(i); st.Block == engine.BatchBlock && g.Pool == "" {
			p.add(p.change(st.Address, workers, engine.Auto, 1))
		}
	}
}

// pinnedMemory proposes page-locked memory where the transfer is the bottleneck. What that gives isn't foretold.
func (p *proposals) pinnedMemory() {
	st := p.stage(p.named)
	if spec, ok := st.Spec.(*engine.TransferSpec); ok && !spec.Pinned {
		if c, ok := p.consider(Change{Address: st.Address, Attribute: pinned, Value: "true", Was: "false"}); ok {
			c.predicted = nil
			p.list = append(p.list, c)
		}
	}
}

// fusedOperators proposes to take a stage out whose work the next one can do, if either is the bottleneck. Foretold is what it gives if
// the work costs nothing there, the most that can be.
func (p *proposals) fusedOperators() {
	list := p.e.Stages
	for i := range len(list) - 1 {
		a, b := list[i], list[i+1]
		fits := slices.Contains(fusions, [2]string{a.Type, b.Type}) && a.Block == stages.Prepare && b.Block == stages.Prepare
		named := p.stage(p.named).Address
		if !fits || a.Checkpoint != nil || a.Pool != b.Pool || a.Device != b.Device || named != a.Address && named != b.Address {
			continue
		}
		c, ok := p.consider(Change{Address: a.Address, Into: b.Address})
		if !ok {
			continue
		}
		if free, err := predict.ParseChange(a.Address + ".cost=0x"); err == nil && p.model != nil {
			if prediction, err := p.model.With(free); err == nil {
				c.predicted = &prediction.Speedup
			}
		}
		p.collect(c)
	}
}

// deeperQueues proposes longer queues in front of the bottleneck and behind it, which help where its work varies.
func (p *proposals) deeperQueues() {
	at := p.segment(p.named)
	for i := max(at-1, 0); i <= at; i++ {
		g := p.plan.Segments[i]
		address := poolAddress + g.Pool
		if g.Pool == "" {
			last := g.Last
			for p.stage(last).Device {
				last--
			}
			address = p.stage(p.plan.Experiment.Crew(last)).Address
		}
		if g.Prefetch > 0 && deeper*g.Prefetch <= mostPrefetch {
			p.add(p.change(address, prefetch, g.Prefetch, deeper*g.Prefetch))
		}
	}
}

// sharedWorkers proposes to leave the workers of all item stages to the planner, which has the same ones run neighbours: no stage waits
// for another's workers then.
func (p *proposals) sharedWorkers() {
	var changes []Change
	for i, st := range p.e.Stages {
		item := p.e.Crew(i) == i && st.Block == stages.Load || st.Block == stages.Prepare || st.Block == stages.Augment
		if item && st.Pool == "" && !st.Device && st.Workers != engine.Auto {
			changes = append(changes, Change{Address: st.Address, Attribute: workers, Value: auto, Was: strconv.Itoa(st.Workers)})
		}
	}
	if c, ok := p.consider(changes...); ok && len(c.plan.Segments) < len(p.plan.Segments) {
		p.collect(c)
	}
}
