package bisect

import (
	"slices"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/internal/stats"
)

// Trial compares two pipelines round by round, as a search compares probes: with the same test, the same looks at the data, and the
// same share of the error for each look.
type Trial struct {
	settings *session // its settings alone
	rivals   int      // trials that share the error
	from, to series
}

// NewTrial returns a trial of one of several changes, at least 1, of which any may be kept.
func NewTrial(cfg engine.Bisect, rivals int) *Trial {
	return &Trial{settings: &session{cfg: cfg}, rivals: rivals}
}

// Round adds a round, in which both pipelines were measured.
func (t *Trial) Round(from, to engine.Interval) {
	n := len(t.from.rounds)
	t.from.intervals, t.from.rounds = append(t.from.intervals, from), append(t.from.rounds, n)
	t.to.intervals, t.to.rounds = append(t.to.intervals, to), append(t.to.rounds, n)
}

// Finding is what a trial has shown.
type Finding int

// The findings.
const (
	Open    Finding = iota // more rounds may tell
	Faster                 // it is faster, significantly, and by min_effect
	Slight                 // it gains less than min_effect, significantly
	Unshown                // neither, and no more rounds are worth the time
)

// Judge returns what the rounds so far show; it is Open between the looks.
func (t *Trial) Judge() Finding {
	s, n := t.settings, len(t.from.rounds)
	look := 0
	for look < looks && s.enough(look) != n {
		look++
	}
	if look == looks {
		return Open
	}
	alpha := s.alpha(n) / float64(t.rivals)
	enough := t.from // as it would be if it gained min_effect
	enough.intervals = slices.Clone(t.from.intervals)
	for i := range enough.intervals {
		iv := &enough.intervals[i]
		iv.Elapsed = time.Duration(float64(iv.Elapsed) * (1 - s.cfg.MinEffect))
	}
	switch {
	case t.Speedup().Median >= 1/(1-s.cfg.MinEffect) && ahead(&t.to, &t.from, alpha):
		return Faster
	case ahead(&enough, &t.to, alpha):
		return Slight
	case look == looks-1:
		return Unshown
	}
	return Open
}

// Speedup returns how many times as fast the second pipeline is, taken round by round.
func (t *Trial) Speedup() Estimate {
	ratios, to := common(&t.from, &t.to)
	for i := range ratios {
		ratios[i] /= to[i]
	}
	sum := stats.Summarize(ratios, t.settings.cfg.Confidence)
	return Estimate{sum.Median, sum.Low, sum.High}
}

// Rates returns the step rates of the two pipelines.
func (t *Trial) Rates() (from, to Estimate) {
	return *t.settings.estimate(rates(&t.from)), *t.settings.estimate(rates(&t.to))
}

// Rounds returns how many rounds there were.
func (t *Trial) Rounds() int { return len(t.from.rounds) }
