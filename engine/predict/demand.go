package predict

import (
	"math"

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
	cores   float64 // that were busy; negative if unknown
}

// nature says what a stage does while it is busy.
type nature int

const (
	open     nature = iota // it may compute or wait: a load stage, a step, what runs in other processes
	computes               // it needs a core
	waits                  // it needs none
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
			return computes
		}
		return waits
	case *engine.BatchSpec:
		if spec.Collate == nil || !spec.Collate.Collates() {
			return computes
		}
		return open
	}
	_, remote := s.Spec.(stages.Remote)
	switch {
	case s.Device:
		return waits
	case !remote && (s.Block == stages.Prepare || s.Block == stages.Augment):
		return computes
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

// crowded is the share of the cores from which on they are taken to be what work waits for, where it isn't known to.
const crowded = 0.9

// split says how the busy time of stages that may do either falls to computing and waiting.
type split int

const (
	likely split = iota // what usually computes does, and what is open takes what CPU time is left
	even                // all take the same share
)

// demandOf returns what an interval's steps asked for.
//
// The interval tells how long the workers were busy, and how much CPU time all took together. Work takes longer than its
// CPU time where threads share the cores, by a factor that follows from how often each wants one. That gives the CPU time
// of each stage as far as it is known which part of its busy time it computes; the parts that aren't known are
// chosen such that the sum is what was measured.
func (m *Model) demandOf(iv engine.Interval, how split) demand {
	n := len(iv.Stages)
	d := demand{time: iv.Elapsed.Seconds() / float64(iv.Steps), cpu: make([]float64, n), wait: make([]float64, n), threads: 1, cores: iv.CPU}
	busy := make([]float64, n)
	for i, a := range iv.Stages {
		unit := int64(1)
		if m.plan.Fused && i <= m.batch {
			unit = max(1, iv.Samples/int64(iv.Steps)) // its workers tell of whole batches
		}
		busy[i] = busyTime(a, iv, i == m.train() || m.transfer >= 0 && i >= m.transfer, unit)
	}
	if iv.CPU < 0 || m.cores <= 0 {
		copy(d.wait, busy) // nothing is known of who needs a core
		return d
	}
	used := iv.CPU * d.time // CPU seconds a step

	// try fills in the demand where stages compute for a part of their busy time, and returns the CPU time of all.
	parts := make([]float64, n)
	try := func(part func(nature) float64) (sum float64) {
		for i := range parts {
			if parts[i] = 0; busy[i] > 0 {
				parts[i] = part(m.natures[i])
			}
		}
		for i := range parts {
			d.cpu[i], d.wait[i] = parts[i]*busy[i], (1-parts[i])*busy[i]
		}
		for g := range m.segments {
			factor := stretch(m.wanted(&d, g), m.cores)
			for i := m.segments[g].First; i <= m.segments[g].Last; i++ {
				sum += d.cpu[i] / factor
			}
		}
		return sum
	}
	// unstretch leaves of the time that stages were computing what they need a core for.
	unstretch := func() (sum float64) {
		factors := make([]float64, len(m.segments))
		for g := range factors {
			factors[g] = stretch(m.wanted(&d, g), m.cores)
		}
		for g, s := range m.segments {
			for i := s.First; i <= s.Last; i++ {
				d.cpu[i] /= factors[g]
				sum += d.cpu[i]
			}
		}
		return sum
	}
	share := func(sure, other float64) func(nature) float64 {
		return func(x nature) float64 { return [...]float64{open: other, computes: sure, waits: 0}[x] }
	}
	// solve finds the least x in 0 … 1 with which the CPU time is what was measured, or 1.
	solve := func(of func(x float64) func(nature) float64) {
		low, high := 0.0, 1.0
		for range 40 {
			if x := (low + high) / 2; try(of(x)) < used {
				low = x
			} else {
				high = x
			}
		}
		try(of(high))
	}
	full := iv.CPU >= crowded*m.cores
	switch least := try(share(1, 0)); {
	case how == even && !full:
		solve(func(x float64) func(nature) float64 { return share(x, x) })
	case least <= used:
		solve(func(x float64) func(nature) float64 { return share(1, x) })
	case !full:
		solve(func(x float64) func(nature) float64 { return share(x, 0) })
	}
	sum := unstretch()
	if full && sum > 0 {
		// Whatever else was measured, the cores were used up: it is for them that the work took so long.
		for i := range d.cpu {
			d.cpu[i] = min(d.cpu[i]*used/sum, busy[i])
		}
		sum = 0
		for _, c := range d.cpu {
			sum += c
		}
	}
	m.rest(&d, used-sum)
	return d
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

// wanted returns who shares the cores with one thread of segment g, where d.cpu is the time that stages were seen at work on
// a core or waiting for one.
func (m *Model) wanted(d *demand, g int) []crowd {
	line := make([]station, len(m.segments))
	factors := make([]float64, len(m.segments))
	for i, s := range m.segments {
		line[i], factors[i] = station{workers: max(s.Workers, 1), threads: 1}, 1
		for k := s.First; k <= s.Last; k++ {
			line[i].cpu += d.cpu[k]
		}
	}
	return crowds(line, factors, 0, d.time, g)
}
