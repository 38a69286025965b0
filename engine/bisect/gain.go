package bisect

import (
	"slices"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/internal/stats"
)

const (
	// interference is the share of the baseline's time up to which the gain of a step that never waits is put down to its
	// competing with the stages for the machine. Where it gains more without them, they take what it needs, which is to be
	// searched for like any other bottleneck.
	interference = 0.2
	// resolution is the share of min_effect that the suspect must be ahead of a rival at the least: probes differ a
	// little in what they cost by themselves, and no number of rounds averages that out.
	resolution = 0.2
	// refineBelow is the share of the suspect's gain by which a range of several stages must fall short of it for more
	// rounds to be tried before it is split.
	refineBelow = 0.3
	// dominance is how many times the time that is left of a step a stage must gain for all others to be out of question.
	dominance = 1.25
)

// alpha returns the error that a comparison may make over n rounds: half of what the confidence leaves at the first look,
// which is mostly the only one, and the rest at the later ones.
func (s *session) alpha(n int) float64 {
	if s.again == 0 && n < s.enough(1) {
		return (1 - s.cfg.Confidence) / 2
	}
	return (1 - s.cfg.Confidence) / 2 / (looks - 1)
}

// median returns the median of values, which are not empty.
func median(values []float64) float64 { return stats.Summarize(values, 0.5).Median }

// baseTime returns the baseline's seconds a step.
func (s *session) baseTime() float64 { return median(s.baseline().times()) }

// gains returns by how many seconds a step is shorter in x than in the baseline, one value for each round of x.
func (s *session) gains(x *series) []float64 { return differences(s.baseline(), x) }

// gain returns the median of a series' gains.
func (s *session) gain(x *series) float64 { return median(s.gains(x)) }

// least returns the gain from which on a stage is worth naming.
func (s *session) least() float64 { return s.cfg.MinEffect * s.baseTime() }

// differences returns by how many seconds a step of b is shorter than one of a, in each round that they share.
func differences(a, b *series) []float64 {
	ta, tb := common(a, b)
	for i := range ta {
		ta[i] -= tb[i]
	}
	return ta
}

// below reports whether the values of a are significantly smaller than those of b.
func below(a, b []float64, alpha float64) bool {
	return len(a) > 0 && len(b) > 0 && stats.Compare(a, b, alpha).Significant && median(a) < median(b)
}

// ahead reports whether the steps of a are significantly shorter than those of b in the rounds that they share: as two
// samples, or, once there are rounds enough for that to show, by the differences within each round, which is the sharper
// test where the machine is slower in some rounds than in others.
func ahead(a, b *series, alpha float64) bool {
	ta, tb := common(a, b)
	if d := stats.Summarize(differences(b, a), 1-alpha/2); d.Bounded() {
		return d.Low > 0 || below(ta, tb, alpha/2)
	}
	return below(ta, tb, alpha)
}

// suspect returns the isolated unit with the largest gain, or nil where none gains min_effect.
func (s *session) suspect() *series {
	var best *series
	for u := range s.units() {
		if x := s.find(s.unit(u)); x != nil && s.gain(x) >= s.least() && (best == nil || s.gain(x) > s.gain(best)) {
			best = x
		}
	}
	return best
}

// dominates reports whether a series gains so much that nothing it doesn't make free can gain as much: all else does its work while
// it is measured, so that no other stage gains more than the time that a step takes then. It goes by the medians; dominant is the proof.
func (s *session) dominates(x *series) bool {
	return x != nil && s.gain(x) > dominance*median(x.times())
}

// dominant reports whether a series is shown to dominate.
func (s *session) dominant(x *series) bool {
	base, left := common(s.baseline(), x)
	return s.dominates(x) && below(scaled(left, 1+dominance), base, s.alpha(len(left)))
}

// contenders returns the stages that may be worth as much as the suspect, or more.
func (s *session) contenders(suspect *series) []string {
	in := make([]bool, s.train())
	mark := func(from, to int) {
		for i := from; i < to; i++ {
			in[i] = i < suspect.probe.From || i >= suspect.probe.To
		}
	}
	for _, x := range s.unsettled(suspect) {
		mark(x.probe.From, x.probe.To)
	}
	for _, r := range s.stretches(suspect) {
		mark(s.bounds[r.from], s.bounds[r.to])
	}
	var list []string
	for i, ok := range in {
		if ok {
			list = append(list, s.address(i))
		}
	}
	if len(list) == 0 {
		return []string{"min_effect"}
	}
	return list
}

// threshold returns what a range must gain less than for its stages to be out of question.
func (s *session) threshold(suspect *series) float64 {
	if suspect == nil {
		return s.least()
	}
	return s.gain(suspect)
}

// bounding reports whether a series shows that what it makes free gains less than limit, and doesn't make the suspect
// free.
func (s *session) bounding(x *series, suspect *series, limit float64) bool {
	return len(x.intervals) > 0 && !x.probe.Baseline() && !x.coarse &&
		!(suspect != nil && contains(x.probe, suspect.probe)) && s.gain(x) < limit && s.trusted(x)
}

// cover returns the series that bounds unit u's gain the tightest, below the threshold, or nil where there is none.
func (s *session) cover(u int, suspect *series) *series {
	var best *series
	for _, x := range s.series {
		if contains(x.probe, s.unit(u)) && s.bounding(x, suspect, s.threshold(suspect)) && (best == nil || s.gain(x) < s.gain(best)) {
			best = x
		}
	}
	return best
}

// trusted reports whether a series bounds the gains of what it makes free. It doesn't where it is slower than a probe
// that makes less free: then its cache takes longer to replay than something that it stands for.
func (s *session) trusted(x *series) bool {
	for _, y := range s.series {
		if y != x && contains(x.probe, y.probe) && len(x.intervals) >= s.cfg.Rounds && len(y.intervals) >= s.cfg.Rounds &&
			s.gain(x) < s.gain(y)-s.least() {
			return false
		}
	}
	return true
}

// rivals returns few series whose ranges together cover all units but the suspect: wide ones where they gain clearly
// less, or else for each unit what bounds it the tightest. A unit that nothing excludes although it was isolated stands
// for itself.
func (s *session) rivals(suspect *series) []*series {
	var wide, list []*series
	for _, x := range s.series {
		if s.width(x.probe) > 1 && s.bounding(x, suspect, (1-refineBelow)*s.threshold(suspect)) {
			wide = append(wide, x)
		}
	}
	slices.SortStableFunc(wide, func(a, b *series) int { return s.width(b.probe) - s.width(a.probe) })
	for u := range s.units() {
		at := slices.IndexFunc(wide, func(x *series) bool { return contains(x.probe, s.unit(u)) })
		x := s.find(s.unit(u))
		if at >= 0 {
			x = wide[at]
		} else if c := s.cover(u, suspect); c != nil {
			x = c
		}
		if x != nil && x != suspect && !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	return list
}

// filling returns by which share a series' steps may be shorter once its queues have filled: that of its work which was for samples
// that the step didn't eat, where there isn't a core for everyone.
func (s *session) filling(x *series) float64 {
	shares := each(x, func(iv engine.Interval) float64 {
		if s.options.Cores <= 0 || iv.CPU < crowded*float64(s.options.Cores) {
			return 0
		}
		var all, ahead float64
		for i, a := range iv.Stages {
			if countsBatches(iv.Stages[:i+1]) {
				break
			}
			all += a.Busy.Seconds()
			if n := iv.Passed(i); n > iv.Samples {
				ahead += a.Busy.Seconds() * (1 - float64(iv.Samples)/float64(n))
			}
		}
		return ahead / max(all, 1e-9)
	})
	return median(shares)
}

// unsettled returns those of the suspect's rivals, the baseline among them, that it isn't shown to be ahead of: with
// significance over the rounds that they share, and by more than what probes differ by themselves. The confidence
// holds for all rivals and all looks at them together.
func (s *session) unsettled(suspect *series) []*series {
	if s.dominant(suspect) {
		return nil
	}
	rivals := append(s.rivals(suspect), s.baseline())
	var list []*series
	for _, x := range rivals {
		alpha := s.alpha(shared(suspect, x)) / float64(len(rivals))
		if !s.trusted(x) || !ahead(suspect, x, alpha) || median(differences(x, suspect)) < resolution*s.least() ||
			median(x.times())*(1-s.filling(x)) <= median(suspect.times()) {
			list = append(list, x)
		}
	}
	return list
}

// reversal is a checkpoint that is slower than an earlier one.
type reversal struct{ earlier, later *series }

// reversals returns, for each checkpoint that is significantly slower than an earlier one or than the baseline, the
// fastest of these.
func (s *session) reversals() []reversal {
	suffixes := s.suffixes()
	var list []reversal
	for i, later := range suffixes {
		var worst *series
		for _, earlier := range suffixes[:i] {
			if (worst == nil || s.gain(earlier) > s.gain(worst)) && s.gain(earlier)-s.gain(later) >= s.least() && median(rates(earlier)) > median(rates(later)) {
				worst = earlier
			}
		}
		if worst != nil && below(s.gains(later), s.gains(worst), (1-s.cfg.Confidence)/float64(len(suffixes))) {
			list = append(list, reversal{worst, later})
		}
	}
	return list
}

// suffixes returns the baseline and the series of checkpoints that were measured, in the pipeline's order.
func (s *session) suffixes() []*series {
	list := []*series{s.baseline()}
	for _, k := range s.bounds[1:] {
		if x := s.find(engine.Probe{To: k}); x != nil {
			list = append(list, x)
		}
	}
	return list
}

// contains reports whether p makes free all that q does.
func contains(p, q engine.Probe) bool { return q.Baseline() || p.From <= q.From && q.To <= p.To }
