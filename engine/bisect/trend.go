package bisect

import (
	"fmt"
	"math"

	"github.com/pipectl/pipectl/internal/stats"
)

// leastTrend is how many intervals a trend takes: four in order are as likely as 1 in 12 by chance.
const leastTrend = 5

// trend is a series' step rate that rose or fell over the session.
type trend struct {
	of     *series
	p      float64
	change float64 // of the rate, relative: more than 0 for faster
}

// trends returns the series with a significant trend of more than min_effect, in the order in which they were first measured. The
// confidence holds for all of them together.
func (s *session) trends() []trend {
	var tested, list []trend
	for _, x := range s.series {
		if len(x.intervals) < leastTrend {
			continue
		}
		at := make([]float64, len(x.rounds))
		for i, r := range x.rounds {
			at[i] = float64(r)
		}
		t := stats.FindTrend(at, x.times())
		tested = append(tested, trend{x, t.P, t.Start/t.End - 1})
	}
	for _, t := range tested {
		if t.p < (1-s.cfg.Confidence)/float64(len(tested)) && math.Abs(t.change) >= s.cfg.MinEffect {
			list = append(list, t)
		}
	}
	return list
}

// words says which way a series went.
func (t trend) words() string {
	if t.change < 0 {
		return fmt.Sprintf("%.0f %% slower", -100*t.change)
	}
	return fmt.Sprintf("%.0f %% faster", 100*t.change)
}

// drift notes a trend over the session: the baseline's, or else the largest, and whether the step alone had it too.
func (s *session) drift() {
	var worst, ceiling *trend
	for _, t := range s.trends() {
		if t.of == s.ceiling() {
			ceiling = &t
		}
		if worst == nil || worst.of != s.baseline() && math.Abs(t.change) > math.Abs(worst.change) {
			worst = &t
		}
	}
	if worst == nil {
		return
	}
	cause := "a page cache that fills, or a machine whose clock or load changes"
	switch {
	case worst.of.probe.Suffix():
		cause = "a machine whose clock or load changes"
	case ceiling != nil && ceiling.change*worst.change > 0:
		cause = fmt.Sprintf("the machine's clock or load, since the step alone got %s too", ceiling.words())
	case worst.change < 0 || s.report.PageCache == Cold:
		cause = "the machine's clock or load, or memory that runs short"
	}
	s.note(Drift, "Over the session %s got %s (Mann-Kendall test, p = %.2g): %s. Probes are compared round by round, which this touches alike; the rates by themselves are those of its middle.",
		s.words(worst.of.probe), worst.words(), worst.p, cause)
}
