package bisect

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/internal/stats"
)

// fill puts what was measured into the report.
func (s *session) fill() {
	r := s.report
	if len(s.baseline().intervals) > 0 && len(s.ceiling().intervals) > 0 {
		s.labelPageCache()
		if !s.warmed() {
			s.drift()
		}
		s.disturbances()
	}
	named := slices.IndexFunc(s.plan.Experiment.Stages, func(st engine.Stage) bool { return st.Address == r.Bottleneck })
	base, ceiling := s.baseline(), s.ceiling()
	if len(base.intervals) > 0 {
		r.Baseline = s.estimate(rates(base))
		r.Ceiling = s.estimate(rates(ceiling))
		r.Starvation = s.estimate(each(base, func(iv engine.Interval) float64 { return iv.Starved.Seconds() / iv.Elapsed.Seconds() }))
		for _, x := range s.suffixes() {
			r.Probes = append(r.Probes, s.result(x))
		}
	}
	var isolated []*series
	for _, x := range s.series {
		if x.probe.From > 0 && len(x.intervals) > 0 {
			isolated = append(isolated, x)
		}
	}
	slices.SortFunc(isolated, func(a, b *series) int {
		return cmp.Or(a.probe.From-b.probe.From, a.probe.To-b.probe.To)
	})
	for _, x := range isolated {
		r.Isolated = append(r.Isolated, s.result(x))
	}
	for i := range s.plan.Experiment.Stages {
		r.Stages = append(r.Stages, s.stage(i))
	}

	if named >= 0 {
		free := engine.Probe{From: named, To: named + 1}
		loads := len(s.plan.Experiment.Loads())
		alone := loads < 2 || named >= loads
		if !alone {
			free = engine.Probe{To: loads}
		}
		if x := s.find(free); x != nil {
			ratios, fixed := common(base, x)
			for i := range ratios {
				ratios[i] /= fixed[i]
			}
			gain := s.estimate(ratios)
			if !math.IsInf(gain.Low, 0) && gain.Low <= 1 {
				// The proof goes by ranks. Where the sizes of the gains don't bear it out, the machine was too restless.
				s.note(NotSeparated, "Making %s free gains most, but the %g %% interval of the rate it gives, %.2f to %.2f times the baseline's, reaches down to no gain.",
					r.Bottleneck, 100*s.cfg.Confidence, gain.Low, gain.High)
				r.Verdict, r.Bottleneck = Undecided, ""
				return
			}
			if alone { // else what it would gain isn't measured
				r.SpeedupIfFixed = gain
			}
			if next := s.following(x); next >= 0 {
				r.Next = s.address(next)
			}
		}
		s.testify(named)
		s.adviseOn(named)
	}
	for _, x := range s.series {
		if n := len(x.intervals); n > 0 && !stats.Summarize(x.times(), s.cfg.Confidence).Bounded() {
			s.note(FewRounds, "Too few rounds for an interval at confidence %g: %d of %s, for one.", s.cfg.Confidence, n, s.words(x.probe))
			break
		}
	}
}

// result sums up one probe.
func (s *session) result(x *series) ProbeResult {
	after, checkpoint := s.boundary(x.probe.To)
	return ProbeResult{
		Probe: x.probe, After: after, Checkpoint: checkpoint,
		Stages: s.addresses(x.probe.From, x.probe.To),
		Rate:   *s.estimate(rates(x)),
		Rounds: x.intervals,
	}
}

// stage sums up what the baseline's accounts say of a stage, and what probes do.
func (s *session) stage(i int) StageResult {
	r := StageResult{Address: s.address(i), Workers: max(s.segmentOf(i).Workers, 1)}
	base := s.baseline()
	if accounts := s.accounts(i); len(accounts) > 0 {
		share := func(part func(engine.Account) float64) *float64 {
			v := make([]float64, len(accounts))
			for j, a := range accounts {
				v[j] = part(a) / (float64(max(a.Workers, 1)) * base.intervals[j].Elapsed.Seconds())
			}
			m := median(v)
			return &m
		}
		r.Busy = share(func(a engine.Account) float64 { return a.Busy.Seconds() })
		r.WaitIn = share(func(a engine.Account) float64 { return a.WaitIn.Seconds() })
		r.WaitOut = share(func(a engine.Account) float64 { return a.WaitOut.Seconds() })
		ms := make([]float64, len(accounts))
		for j, iv := range base.intervals {
			ms[j] = StepMS(iv, i)
		}
		r.StepMS = s.estimate(ms)
	}
	if i == s.train() {
		r.CostMS = s.estimate(scaled(s.ceiling().times(), 1e3))
		return r
	}
	if above, below := s.find(engine.Probe{To: i}), s.find(engine.Probe{To: i + 1}); above != nil && below != nil {
		r.CostMS = s.estimate(scaled(s.cost(above, below), 1e3))
	}
	if x := s.find(engine.Probe{From: i, To: i + 1}); x != nil {
		r.GainMS = s.estimate(scaled(s.gains(x), 1e3))
	}
	return r
}

// accounts returns what the baseline's intervals say of a stage, or nil where one of them has no accounts.
func (s *session) accounts(stage int) []engine.Account {
	var list []engine.Account
	for _, iv := range s.baseline().intervals {
		if len(iv.Stages) != s.train()+1 {
			return nil
		}
		list = append(list, iv.Stages[stage])
	}
	return list
}

// cost returns by how many seconds a step shrinks between two checkpoints: round by round where they were measured
// together, or else by their gains, which are free of drift since each was measured beside the baseline.
func (s *session) cost(above, below *series) []float64 {
	if shared(above, below) >= s.cfg.Rounds {
		return differences(above, below)
	}
	a, b := s.gains(above), s.gains(below)
	n := min(len(a), len(b))
	for i := range n {
		b[i] -= a[i]
	}
	return b[:n]
}

// estimate sums values up, or returns nil where there are none. Where they are too few for an interval of the wanted
// confidence, its ends are infinite.
func (s *session) estimate(values []float64) *Estimate {
	if len(values) == 0 {
		return nil
	}
	sum := stats.Summarize(values, s.cfg.Confidence)
	return &Estimate{sum.Median, sum.Low, sum.High}
}

// rates returns the steps per second of each interval.
func rates(x *series) []float64 { return each(x, engine.Interval.Rate) }

func each(x *series, f func(engine.Interval) float64) []float64 {
	v := make([]float64, len(x.intervals))
	for i, iv := range x.intervals {
		v[i] = f(iv)
	}
	return v
}

// scaled multiplies values, in place.
func scaled(values []float64, by float64) []float64 {
	for i := range values {
		values[i] *= by
	}
	return values
}

// boundary returns the address of the stage before boundary k and the name of the checkpoint there, as far as there are.
func (s *session) boundary(k int) (after, checkpoint string) {
	if k == 0 {
		return "", ""
	}
	st := s.plan.Experiment.Stages[k-1]
	if st.Checkpoint != nil {
		checkpoint = st.Checkpoint.Name
	}
	return st.Address, checkpoint
}

// words names a probe in a sentence.
func (s *session) words(p engine.Probe) string {
	switch {
	case p.Burn > 0:
		return "the control"
	case p.Baseline():
		return "the pipeline as it is"
	case p == s.ceiling().probe:
		return "the step alone"
	case p.Suffix():
		return "the cache after " + s.address(p.To-1)
	case p.To-p.From == 1:
		return s.address(p.From) + " made free"
	}
	return fmt.Sprintf("%s to %s made free", s.address(p.From), s.address(p.To-1))
}

// address returns a stage's address.
func (s *session) address(stage int) string { return s.plan.Experiment.Stages[stage].Address }

// addresses returns the addresses of the stages from … to-1.
func (s *session) addresses(from, to int) []string {
	var list []string
	for i := from; i < to; i++ {
		list = append(list, s.address(i))
	}
	return list
}
