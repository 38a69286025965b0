package bisect

import (
	"slices"
	"strings"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/internal/stats"
	"github.com/pipectl/pipectl/stages"
)

const (
	fullyBusy = 0.9  // the share of its workers' time from which on a segment is taken to be at its limit
	margin    = 0.05 // the difference between two shares of time that the accounting is trusted to show
)

// StepMS returns the milliseconds of work that a step costs each worker of an interval's i-th stage, which must be in
// its accounts.
func StepMS(iv engine.Interval, i int) float64 { return 1e3 * work(iv, i) / float64(iv.Steps) }

// work returns the seconds that each worker of a stage needs for what an interval's steps consumed. That is less than it
// was busy where the queue behind the stage was filling: then it made more than was consumed.
func work(iv engine.Interval, stage int) float64 {
	a := iv.Stages[stage]
	consumed := iv.Samples
	if countsBatches(iv.Stages[:stage+1]) {
		consumed = int64(iv.Steps)
	}
	w := a.Busy.Seconds() / float64(max(a.Workers, 1))
	if n := iv.Passed(stage); n > consumed {
		w *= float64(consumed) / float64(n)
	}
	return w
}

// countsBatches reports whether the items of the last of some accounts are batches: those of the training step, the
// transfer and all behind it.
func countsBatches(accounts []engine.Account) bool {
	block, _, _ := strings.Cut(accounts[len(accounts)-1].Address, ".")
	return block == stages.Train || slices.ContainsFunc(accounts, func(a engine.Account) bool { return a.Address == engine.TransferBlock })
}

// load returns for each stage the share of some intervals for which its workers had to be busy, from 0 to 1. It is all 0
// where the intervals have no accounts.
func (s *session) load(intervals []engine.Interval) []float64 {
	load := make([]float64, s.train()+1)
	shares := make([][]float64, len(load))
	for _, iv := range intervals {
		if len(iv.Stages) != len(load) {
			continue
		}
		for i := range iv.Stages {
			shares[i] = append(shares[i], work(iv, i)/max(iv.Elapsed.Seconds(), 1e-9))
		}
	}
	for i, s := range shares {
		if len(s) > 0 {
			load[i] = median(s) // the first intervals may have met files and caches cold
		}
	}
	return load
}

// slowestLoad returns which of several load blocks took longest in the baseline, and which part of their time that is, where the probe makes
// these free and nothing else. It is -1 where the probe doesn't, and where the rounds don't tell.
func (s *session) slowestLoad(p engine.Probe) (stage int, share float64) {
	loads := len(s.plan.Experiment.Loads())
	if loads < 2 || p.From != 0 || p.To != loads {
		return -1, 0
	}
	shares := make([]stats.Summary, loads)
	for i := range shares {
		shares[i] = stats.Summarize(each(s.baseline(), func(iv engine.Interval) float64 {
			all := 0.0
			for k := range loads {
				all += work(iv, k)
			}
			return work(iv, i) / max(all, 1e-9)
		}), s.cfg.Confidence)
		if shares[i].Median > shares[stage].Median {
			stage = i
		}
	}
	for i := range shares {
		if i != stage && !(shares[i].High < shares[stage].Low) {
			return -1, 0
		}
	}
	return stage, shares[stage].Median
}

// first returns the load of the baseline's first rounds, which stays the same through the session.
func (s *session) first() []float64 {
	ivs := s.baseline().intervals
	return s.load(ivs[:min(len(ivs), s.cfg.Rounds)])
}

// segmentOf returns the segment that executes a stage.
func (s *session) segmentOf(stage int) engine.Segment {
	i := slices.IndexFunc(s.plan.Segments, func(g engine.Segment) bool { return g.First <= stage && stage <= g.Last })
	if i < 0 {
		return engine.Segment{First: stage, Last: stage}
	}
	return s.plan.Segments[i]
}

// utilisation returns the share of its time for which the segment of a stage was busy.
func (s *session) utilisation(load []float64, stage int) float64 {
	g := s.segmentOf(stage)
	sum := 0.0
	for _, v := range load[g.First : g.Last+1] {
		sum += v
	}
	return sum
}

// leads returns by how much the accounting puts stage a before stage b: by how busy their workers are, and within one
// segment by how much of that is each stage's own.
func (s *session) leads(load []float64, a, b int) float64 {
	if s.segmentOf(a) == s.segmentOf(b) {
		return load[a] - load[b]
	}
	return s.utilisation(load, a) - s.utilisation(load, b)
}

// busiest returns the stage that the accounting names among those before index end, or -1 where there is no accounting.
func (s *session) busiest(load []float64, end int) int {
	best := 0
	for i := 1; i < end; i++ {
		if s.leads(load, i, best) > 0 {
			best = i
		}
	}
	if end == 0 || load[best] == 0 {
		return -1
	}
	return best
}

// guess returns the unit to look at first, or -1 if nothing points to one.
func (s *session) guess() int {
	stage := s.busiest(s.first(), s.train())
	for u := range s.units() {
		if s.bounds[u] <= stage && stage < s.bounds[u+1] {
			return u
		}
	}
	return -1
}

// starvation summarises the share of the baseline's time for which the step waited for data.
func (s *session) starvation() stats.Summary {
	var shares []float64
	for _, iv := range s.baseline().intervals {
		shares = append(shares, iv.Starved.Seconds()/iv.Elapsed.Seconds())
	}
	return stats.Summarize(shares, s.cfg.Confidence)
}

// neverWaits reports whether the step was seen at work, not merely not seen waiting, for all but min_effect of the
// baseline's time.
func (s *session) neverWaits() bool {
	return s.starvation().High < s.cfg.MinEffect && s.load(s.baseline().intervals)[s.train()] > 1-s.cfg.MinEffect
}

// testify notes where the accounting of the baseline names another stage than the verdict.
func (s *session) testify(named int) {
	load := s.load(s.baseline().intervals)
	witness := s.busiest(load, s.train()+1)
	if witness < 0 || witness == named || s.leads(load, witness, named) <= margin {
		return
	}
	share := s.utilisation
	if s.segmentOf(witness) == s.segmentOf(named) {
		share = func(load []float64, stage int) float64 { return load[stage] }
	}
	s.note(WitnessDisagrees, "The accounting points to %s, busy for %.0f %% of the time against %.0f %% for %s. The verdict rests on what making a stage free gains.",
		s.address(witness), 100*share(load, witness), 100*share(load, named), s.address(named))
}

// following returns the stage that was at its limit while the bottleneck was made free, or -1 where that isn't clear.
func (s *session) following(isolated *series) int {
	load := s.load(isolated.intervals)
	top := s.busiest(load, s.train()+1)
	if top < 0 || s.utilisation(load, top) < fullyBusy {
		return -1
	}
	for i := range load {
		if i != top && s.leads(load, top, i) <= margin {
			return -1
		}
	}
	return top
}
