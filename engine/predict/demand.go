package predict

import (
	"math"
	"slices"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

// demand is what a training step asks of a pipeline's stages, in seconds summed over the workers, as one interval has it.
type demand struct {
	time  float64   // a step took
	cpu   []float64 // by stage: on a core
	wait  []float64 // by stage: for anything else but a core
	extra float64   // on a core, for no stage in particular
	// threads is on how many threads the CPU time of the training step seems to be spread.
	threads int
	// cores is what was there for the pipeline: all that it may use, or fewer where other processes were at work. 0: unknown.
	cores float64
}

// nature says what a stage does while it is busy.
type nature int

const (
	open     nature = iota // it may compute or wait: a load stage, a step, what runs in other processes, a user's own operator
	computes               // it needs a core
	waits                  // it needs none
	clocked                // it computes, and its busy time is the CPU time itself
)

// natureOf returns what is known of a stage.
func natureOf(s engine.Stage) nature {
	switch spec := s.Spec.(type) {
	case *stages.Sleep:
		return waits
	case *stages.Spin:
		return computes
	case *gpu.Emulated:
		if spec.Mode == "spin" {
			return clocked
		}
		return waits
	case *engine.BatchSpec:
		if spec.Collate == nil || !spec.Collate.Collates() {
			return computes
		}
		return open
	}
	switch {
	case s.Device:
		return waits
	case s.Block == stages.Prepare || s.Block == stages.Augment:
		if _, ok := stages.Builtin().Lookup(s.Block, s.Type); ok {
			return computes
		}
	}
	return open
}

// variationOf returns the squared coefficient of variation of a stage's work from item to item, where its author gave it.
func variationOf(s engine.Stage) (v float64, known bool) {
	of := func(t float64, j stages.Jitter) (float64, bool) {
		if t <= 0 {
			return 0, true
		}
		spread := (j.Time.Seconds() + j.Fraction*t) / t
		return spread * spread / 3, true // uniform
	}
	switch spec := s.Spec.(type) {
	case *stages.Sleep:
		return of(spec.Time.Seconds(), spec.Jitter)
	case *stages.Spin:
		return of(spec.Time.Seconds(), spec.Jitter)
	case *gpu.Emulated:
		return of(spec.Time.Seconds(), spec.Jitter)
	}
	return 0, false
}

// busyTime returns the seconds a step that a stage's workers were busy with what a step takes from them.
//
// The work of an interval isn't that of its steps: queues fill or drain, and at its ends items are half done. Each worker may
// have begun one item before and left one undone, so as many items as the steps took are assumed unless that is out of reach.
func busyTime(a engine.Account, iv engine.Interval, batches bool, unit int64) float64 {
	taken := iv.Samples
	if batches {
		taken = int64(iv.Steps)
	}
	if a.Busy <= 0 || taken == 0 {
		return 0
	}
	half := unit * int64(max(a.Workers, 1))
	done := max(min(taken, a.Items+half), a.Items-half, 1)
	return a.Busy.Seconds() * float64(taken) / float64(done) / float64(iv.Steps)
}

const (
	// crowded is the share of the cores from which on they are taken to be what work waits for, where it may have waited for
	// something else as well.
	crowded = 0.9
	// perhapsCrowded is that from which on they may be.
	perhapsCrowded = 0.6
)

// split says how the busy time of stages that may compute or wait falls to the two.
type split int

const (
	byCPU   split = iota // as the CPU time has it; the rest is waiting for something else but a core
	starved              // they compute; the rest is waiting for a core, where the cores may have been used up
	splits
)

// demandOf returns what an interval's steps asked for.
//
// The interval tells how long the workers were busy, and how much CPU time all took together. Work takes longer than its
// CPU time where threads share the cores, by a factor that follows from how often each wants one. That gives the CPU time
// of the stages that are known to compute. Where it is more than was measured, other processes were at work, and there were
// fewer cores: as many as make the two agree. Where it is less, the rest falls to the stages that may compute or wait, as
// the same part of the busy time of each.
func (m *Model) demandOf(iv engine.Interval, how split) demand {
	n := len(iv.Stages)
	d := demand{time: iv.Elapsed.Seconds() / float64(iv.Steps), cpu: make([]float64, n), wait: make([]float64, n), threads: 1}
	busy := make([]float64, n)
	for i, a := range iv.Stages {
		unit := int64(1)
		if m.plan.Fused && i <= m.batch {
			unit = max(1, iv.Samples/int64(iv.Steps)) // its workers tell of whole batches
		}
		a.Items = iv.Passed(i)
		busy[i] = busyTime(a, iv, i == m.train() || m.transfer >= 0 && i >= m.transfer, unit)
	}
	if iv.CPU < 0 || m.cores <= 0 {
		copy(d.wait, busy) // nothing is known of who needs a core
		return d
	}
	used := iv.CPU * d.time // CPU seconds a step

	// try takes open stages to compute for a part of their busy time, and so many cores to be there. It returns the CPU time of all.
	try := func(part, cores float64) (sum float64) {
		d.cores = cores
		for i, x := range m.natures {
			p := [...]float64{open: part, computes: 1, waits: 0, clocked: 1}[x]
			d.cpu[i], d.wait[i] = p*busy[i], (1-p)*busy[i]
		}
		factors := slices.Repeat([]float64{1}, len(m.segments))
		for range 2 { // once more, with how often those want a core whose busy time doesn't tell
			line := m.runnable(&d, factors)
			for g := range factors {
				factors[g] = stretch(crowds(line, slices.Repeat([]float64{1}, len(line)), 0, d.time, g), cores)
			}
		}
		for g, s := range m.segments {
			for i := s.First; i <= s.Last; i++ {
				if m.natures[i] != clocked {
					d.cpu[i] /= factors[g]
				}
				sum += d.cpu[i]
			}
		}
		return sum
	}
	// solve tries x from low to high for the CPU time that was measured, which grows with x.
	solve := func(low, high float64, try func(x float64) float64) (sum float64) {
		for range 40 {
			if x := (low + high) / 2; try(x) < used {
				low = x
			} else {
				high = x
			}
		}
		return try(high)
	}
	full := crowded
	if how == starved {
		full = perhapsCrowded
	}
	sum := 0.0
	switch all := try(1, m.cores); {
	case all <= used:
		// They waited less for cores than threads do that want them independently of one another.
		sum = solve(m.cores, m.cores+float64(m.threads()), func(x float64) float64 { return try(1, x) })
		d.cores = m.cores
	case iv.CPU >= full*m.cores || try(0, m.cores) > used:
		part := 0.0
		if iv.CPU >= full*m.cores {
			part = 1
		}
		sum = solve(0, m.cores, func(x float64) float64 { return try(part, x) })
	default:
		sum = solve(0, 1, func(x float64) float64 { return try(x, m.cores) })
	}
	m.rest(&d, used-sum)
	return d
}

// threads returns the number of workers.
func (m *Model) threads() (n int) {
	for _, g := range m.segments {
		n += max(g.Workers, 1)
	}
	return n
}

// rest accounts for CPU time that no worker was busy for. A training step may have computed on more threads than its
// own; what else there is, the collection of garbage and the work of the kernel for others, goes with the steps.
func (m *Model) rest(d *demand, more float64) {
	if more <= 0 {
		return
	}
	t := m.train()
	wall := d.cpu[t] + d.wait[t]
	if m.natures[t] == open && wall > 0 && d.cpu[t] > 0.5*wall {
		d.threads = int(min(max(math.Round((d.cpu[t]+more)/wall), 1), m.cores))
		add := min(more, float64(d.threads)*wall-d.cpu[t])
		d.cpu[t] += add
		d.wait[t] = max(0, wall-d.cpu[t]/float64(d.threads))
		more -= add
	}
	d.extra = more
}

// runnable returns the segments as stations whose CPU time is that for which they computed or waited for a core.
func (m *Model) runnable(d *demand, factors []float64) []station {
	line := make([]station, len(m.segments))
	for i, s := range m.segments {
		line[i] = station{workers: max(s.Workers, 1), threads: 1}
		for k := s.First; k <= s.Last; k++ {
			if m.natures[k] == clocked {
				line[i].cpu += d.cpu[k] * factors[i]
			} else {
				line[i].cpu += d.cpu[k]
			}
		}
	}
	return line
}
