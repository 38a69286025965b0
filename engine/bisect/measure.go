package bisect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pipectl/pipectl/engine"
)

// Target is what an interval lasts, about, where the experiment leaves its steps to the search.
const Target = 500 * time.Millisecond

const (
	leastSteps  = 3
	mostSteps   = 200000
	leastBursts = 2  // of batches that come several at a time
	growth      = 10 // from one try of a calibration to the next: the first steps may come from full queues
)

// series is what was measured of one probe.
type series struct {
	probe     engine.Probe
	steps     int // of an interval; 0: to be calibrated
	intervals []engine.Interval
	rounds    []int // the session's round in which each interval was measured, ascending
	// coarse says that the range is worth almost as much as the suspect, so that only parts of it can be excluded.
	coarse  bool
	dropped bool // its boundary was taken out of the search
}

// times returns the seconds a step of each interval.
func (x *series) times() []float64 {
	t := make([]float64, len(x.intervals))
	for i, iv := range x.intervals {
		t[i] = seconds(iv)
	}
	return t
}

func seconds(iv engine.Interval) float64 { return iv.Elapsed.Seconds() / float64(iv.Steps) }

// common returns the seconds a step of two series in the rounds in which both were measured, so that whatever drifts
// from round to round touches both alike.
func common(a, b *series) (ta, tb []float64) {
	for i, j := 0, 0; i < len(a.rounds) && j < len(b.rounds); {
		switch {
		case a.rounds[i] < b.rounds[j]:
			i++
		case a.rounds[i] > b.rounds[j]:
			j++
		default:
			ta, tb = append(ta, seconds(a.intervals[i])), append(tb, seconds(b.intervals[j]))
			i, j = i+1, j+1
		}
	}
	return ta, tb
}

// shared returns the number of rounds in which both series were measured.
func shared(a, b *series) int {
	ta, _ := common(a, b)
	return len(ta)
}

// baseline returns the series of the pipeline as it is.
func (s *session) baseline() *series { return s.series[0] }

// ceiling returns the series of the step alone.
func (s *session) ceiling() *series { return s.series[1] }

// find returns the series of a probe that was measured, or nil.
func (s *session) find(p engine.Probe) *series {
	for _, x := range s.series {
		if x.probe == p && len(x.intervals) > 0 {
			return x
		}
	}
	return nil
}

// at returns the series of a probe, a new one if there is none.
func (s *session) at(p engine.Probe) *series {
	for _, x := range s.series {
		if x.probe == p {
			return x
		}
	}
	x := &series{probe: p, steps: s.cfg.Steps}
	s.series = append(s.series, x)
	return x
}

// topUp measures round by round, each of them once a round, those of list that share fewer than n rounds with anchor, and anchor and
// the baseline with them, until all share n. Their order in a round is drawn at random, so that whatever changes within rounds, or
// follows from what was measured just before, favours none.
func (s *session) topUp(ctx context.Context, n int, anchor *series, list ...*series) error {
	for !anchor.dropped {
		turn := []*series{s.baseline()}
		if anchor != s.baseline() {
			turn = append(turn, anchor)
		}
		behind := len(anchor.rounds) < n
		for _, x := range list {
			if !x.dropped && shared(anchor, x) < n && !slices.Contains(turn, x) {
				turn, behind = append(turn, x), true
			}
		}
		if !behind {
			return nil
		}
		s.round++
		from := 0
		if len(s.baseline().intervals) == 0 {
			from = 1 // the others' calibration begins with the baseline's result
		}
		s.order.Shuffle(len(turn)-from, func(i, j int) { turn[from+i], turn[from+j] = turn[from+j], turn[from+i] })
		for _, x := range turn {
			err := s.interval(ctx, x)
			var limit *engine.LimitError
			if errors.As(err, &limit) && 0 < x.probe.To && x.probe.To < s.train() {
				s.drop(x, limit)
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

// drop takes the boundary behind a probe's cache out of the search: the stages on both sides of it become one unit.
func (s *session) drop(x *series, limit *engine.LimitError) {
	x.dropped = true
	s.series = slices.DeleteFunc(s.series, func(y *series) bool { return y == x })
	if i := slices.Index(s.bounds, x.probe.To); i >= 0 {
		s.bounds = slices.Delete(s.bounds, i, i+1)
		s.note(CacheLimit, "The boundary after %s is left out: %v.", limit.Address, limit)
	}
}

// interval measures one interval of a series.
func (s *session) interval(ctx context.Context, x *series) error {
	if len(x.intervals) == 0 {
		number := 1 + len(slices.DeleteFunc(slices.Clone(s.series), func(y *series) bool { return len(y.intervals) == 0 }))
		after, checkpoint := s.boundary(x.probe.To)
		s.observe(ProbeStarted{x.probe, after, checkpoint, number, max(number, s.expected())})
	}
	if x.steps == 0 {
		if err := s.calibrate(ctx, x); err != nil {
			return err
		}
	}
	iv, err := s.once(ctx, x.probe, x.steps)
	if err != nil {
		return err
	}
	x.intervals, x.rounds = append(x.intervals, iv), append(x.rounds, s.round)
	s.done++
	s.observe(RoundDone{x.probe, len(x.intervals), iv, s.done, max(s.done, (s.expected()+1)*s.cfg.Rounds)})
	return nil
}

// calibrate chooses the steps of a series' intervals. What it measures isn't kept: it also warms what the probe needs.
func (s *session) calibrate(ctx context.Context, x *series) (err error) {
	// A probe is hardly slower than the baseline.
	x.steps, err = Calibrate(s.baseline().steps, s.plan.Quantum(), s.target, func(steps int) (engine.Interval, error) { return s.once(ctx, x.probe, steps) })
	return err
}

// Calibrate returns how many steps fill about target, from intervals of at least first steps that measure takes. Where batches
// come several at a time, they are a multiple of these.
func Calibrate(first, quantum int, target time.Duration, measure func(steps int) (engine.Interval, error)) (int, error) {
	least := leastSteps
	if quantum > 1 {
		least = max(leastSteps, leastBursts*quantum)
	}
	for n := max(least, first); ; {
		iv, err := measure(n)
		if err != nil {
			return 0, err
		}
		want := float64(n) * target.Seconds() / max(iv.Elapsed, 1).Seconds()
		if iv.Elapsed >= target/2 || n == mostSteps {
			steps := min(max(int(want), least), mostSteps)
			return (steps + quantum - 1) / quantum * quantum, nil
		}
		n = min(max(int(want), n+1), growth*n, mostSteps)
	}
}

// once measures a probe once, if the budget allows.
func (s *session) once(ctx context.Context, p engine.Probe, steps int) (engine.Interval, error) {
	if b := s.cfg.Budget; b > 0 && time.Since(s.began) >= b {
		return engine.Interval{}, errBudget
	}
	iv, err := s.bench.Measure(ctx, p, s.cfg.Warmup, steps)
	if err != nil {
		return iv, fmt.Errorf("measuring %s: %w", s.words(p), err)
	}
	if iv.Steps <= 0 || iv.Elapsed <= 0 {
		return iv, fmt.Errorf("measuring %s: %d steps took %v, which gives no rate", s.words(p), iv.Steps, iv.Elapsed)
	}
	return iv, nil
}
