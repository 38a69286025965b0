// Package bisect finds the stage that holds a training pipeline up. It compares step rates: of the pipeline as it is,
// of checkpoints replayed at its boundaries, and of the pipeline with a range of stages made free. It is pure: it
// measures through a Bench and reads the time only to keep to its budget.
//
// The bottleneck is the stage with the largest gain: what the time a step shrinks by if that stage alone costs nothing
// and all others run as ever. A range of stages gains at least what the best of its stages gains, so one probe that
// makes a range free bounds all that is in it, and the search is a branch and bound. It ends with a certificate: the
// suspect, isolated, is significantly faster than every probe of a set of ranges that covers all other stages.
package bisect

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pipectl/pipectl/engine"
)

// Bench measures the probes of one pipeline.
type Bench interface {
	// Measure starts the pipeline afresh as the probe has it, lets warmup steps pass and measures the steps that
	// follow. The probe's cache is filled on its first use, outside the measured time.
	Measure(ctx context.Context, p engine.Probe, warmup, steps int) (engine.Interval, error)
}

// Options are what a search may be told besides the plan.
type Options struct {
	Cores int // the pipeline may use; 0 if unknown
	// CPUCache is the size of the CPU's last-level cache in bytes; 0 if unknown.
	CPUCache int64
	// Cached returns how many bytes the cache at a boundary holds, and what share of the data set they are; 0 where that is
	// unknown. It may be nil.
	Cached  func(boundary int) (bytes int64, share float64)
	Observe func(Event) // is called in order, between the measurements; may be nil
}

// The strategies of a search.
const (
	Bisection = "bisect" // as few probes as the proof needs
	Ladder    = "ladder" // a checkpoint at every probe point, then the proof
)

const (
	exploring = 2 // rounds that a new probe gets before the search decides where to go on
	looks     = 3 // times at most that a comparison is judged, each time with more rounds
	honest    = 6 // rounds that an interval of 95 % confidence needs
	// patienceFirst bounds a search that noise keeps from ending: it is given up once it has measured as many intervals as
	// so many probes, and another one for each unit, have in their first rounds.
	patienceFirst = 22
	// patienceAgain is the same where all is measured again, in intervals that take longer.
	patienceAgain = 8
)

// orderStream sets the order of the probes apart from what else is drawn from the experiment's seed.
const orderStream = 0x6f72646572

// errBudget ends a search whose budget is used up.
var errBudget = errors.New("the budget is used up")

// session is one search under way.
type session struct {
	plan    *engine.Plan
	cfg     engine.Bisect
	bench   Bench
	options Options
	began   time.Time

	// bounds are the probe points in the pipeline's order, from 0 to the train stage's index. What lies between two of
	// them is a unit: the search tells units apart, not stages.
	bounds  []int
	series  []*series // in the order in which they were first measured; the baseline, then the ceiling
	round   int
	done    int // intervals measured
	target  time.Duration
	again   int        // intervals that had been measured when all was measured again, in longer ones; 0: it wasn't
	order   *rand.Rand // of a round's probes
	control *series    // nil where there is none
	report  *Report
}

// Search measures a pipeline's probes until the stage that holds it up is proven, or can't be. The ends of the
// pipeline are always probe points. When ctx is cancelled or a measurement fails, Search returns that error and a
// report, undecided, of what was measured until then.
func Search(ctx context.Context, plan *engine.Plan, bench Bench, options Options) (*Report, error) {
	e := plan.Experiment
	s := &session{
		plan: plan, cfg: e.Bisect, bench: bench, options: options, began: time.Now(),
		bounds: bounds(plan), target: Target, order: rand.New(rand.NewPCG(e.Seed, orderStream)),
		report: &Report{Experiment: e.Name, Verdict: Undecided, Confidence: e.Bisect.Confidence},
	}
	if err := s.check(); err != nil {
		return s.report, err
	}
	s.at(engine.Probe{})
	s.at(engine.Probe{To: s.train()})

	err := s.run(ctx)
	if errors.Is(err, errBudget) {
		err = nil
	}
	s.fill()
	return s.report, err
}

// check refuses settings with which nothing could be concluded.
func (s *session) check() error {
	switch c := s.cfg; {
	case s.units() < 1:
		return errors.New("the pipeline has no stage before its training step")
	case c.Strategy != Bisection && c.Strategy != Ladder:
		return fmt.Errorf("unknown strategy %q", c.Strategy)
	case c.Rounds < 1 || c.Warmup < 0 || c.Steps < 0:
		return fmt.Errorf("rounds = %d, warmup = %d, steps = %d: want at least 1, 0 and 0", c.Rounds, c.Warmup, c.Steps)
	case !(c.Confidence > 0 && c.Confidence < 1) || !(c.MinEffect > 0 && c.MinEffect < 1):
		return fmt.Errorf("confidence = %g, min_effect = %g: both must lie between 0 and 1", c.Confidence, c.MinEffect)
	}
	return nil
}

// run takes the session from the first measurement to the verdict.
func (s *session) run(ctx context.Context) error {
	verdict, err := s.screen(ctx)
	if err == nil && verdict == InputBound {
		err = s.locate(ctx)
	}
	switch {
	case errors.Is(err, errBudget):
		s.note(BudgetUsed, "The budget of %v was used up before all was measured.", s.cfg.Budget)
	case err != nil:
		return err
	}
	switch verdict {
	case StepBound:
		s.report.Verdict = StepBound
		s.report.Bottleneck = s.plan.Experiment.Stages[s.train()].Address
	case InputBound:
		s.conclude()
	}
	if err != nil {
		return err
	}
	return s.complete(ctx)
}

// screen tells whether anything before the step is worth a search: whether the step waits for data, and is faster by
// min_effect without the stages. A step that never waits and gets only a little faster without them competed with them
// for the machine; nothing starves it. It is undecided where the gain lies so near to min_effect that no number of
// rounds settles it.
func (s *session) screen(ctx context.Context) (Verdict, error) {
	base, ceiling := s.baseline(), s.ceiling()
	for look := range looks {
		if err := s.topUp(ctx, s.enough(look), base, ceiling); err != nil {
			return Undecided, err
		}
		alpha := s.alpha(len(ceiling.rounds))
		least := scaled(base.times(), 1-s.cfg.MinEffect)
		faster := below(ceiling.times(), least, alpha)
		switch {
		case s.neverWaits() && s.gain(ceiling) < interference*s.baseTime():
			if faster {
				s.note(Interference, "The step hardly waits for data, yet it takes %.3g ms alone and %.3g ms beside the stages: they compete for the machine.",
					1e3*median(ceiling.times()), 1e3*s.baseTime())
			}
			return StepBound, nil
		case faster:
			return InputBound, nil
		case below(least, ceiling.times(), alpha):
			return StepBound, nil
		}
		if _, err := s.lengthen(ctx, base, ceiling); err != nil {
			return Undecided, err
		}
		base, ceiling = s.baseline(), s.ceiling()
	}
	if below(ceiling.times(), base.times(), s.alpha(len(ceiling.rounds))) && s.starvation().Low >= s.cfg.MinEffect {
		return InputBound, nil
	}
	s.note(NearMinEffect, "The step alone is faster than the pipeline by about min_effect = %g, and %d rounds can't tell on which side of it.",
		s.cfg.MinEffect, len(base.intervals))
	return Undecided, nil
}

// locate measures until one unit is proven to be the bottleneck, or until it is clear that none will be.
func (s *session) locate(ctx context.Context) error {
	if s.cfg.Strategy == Ladder {
		var all []*series
		for _, k := range s.bounds[1:] {
			all = append(all, s.at(engine.Probe{To: k}))
		}
		if err := s.topUp(ctx, s.cfg.Rounds, s.baseline(), all...); err != nil {
			return err
		}
	}
	for s.done-s.again < s.patience() {
		if probes := s.next(); len(probes) > 0 {
			var fresh []*series
			for _, p := range probes {
				fresh = append(fresh, s.at(p))
			}
			if err := s.topUp(ctx, min(exploring, s.cfg.Rounds), fresh[0], fresh[1:]...); err != nil {
				return err
			}
			continue
		}

		// By the estimates, all but the suspect are excluded. From here on it is a matter of proof.
		suspect := s.suspect()
		anchor, list := suspect, s.rivals(suspect)
		if suspect == nil {
			anchor = s.baseline()
		} else {
			if s.dominates(suspect) {
				list = nil
			}
			// The checkpoints on both sides of the suspect show its cost in the table of checkpoints.
			list = append(list, s.at(engine.Probe{To: suspect.probe.From}), s.at(engine.Probe{To: suspect.probe.To}))
		}
		before := s.round
		if err := s.topUp(ctx, s.cfg.Rounds, anchor, list...); err != nil {
			return err
		}
		if s.round > before {
			continue // the estimates moved
		}
		if suspect == nil {
			return nil
		}
		if more, err := s.press(ctx, suspect); err != nil || !more {
			return err
		}
	}
	return nil
}

// press goes on against the rivals that the suspect isn't shown to be ahead of: a range of several stages that comes
// close is to be split, others get more rounds. It reports false where all is shown, or won't be.
func (s *session) press(ctx context.Context, suspect *series) (more bool, err error) {
	var again []*series
	refine := false
	for _, x := range s.unsettled(suspect) {
		last := shared(suspect, x) >= s.enough(looks-1)
		near := s.gain(x) > (1-refineBelow)*s.gain(suspect)
		switch {
		case s.width(x.probe) > 1 && (near || last):
			x.coarse, refine = true, true
		case last:
			return false, nil // as like as that after so many rounds: a tie
		default:
			again = append(again, x)
		}
	}
	if refine || len(again) == 0 {
		return refine, nil
	}
	if restarted, err := s.lengthen(ctx, append(again, suspect)...); err != nil || restarted {
		return restarted, err
	}
	look := 1
	for s.enough(look) <= shared(suspect, again[0]) {
		look++
	}
	return true, s.topUp(ctx, s.enough(look), suspect, again...)
}

// conclude names the bottleneck if it is proven, or else says why it isn't.
func (s *session) conclude() {
	suspect := s.suspect()
	if suspect == nil {
		if len(s.next()) == 0 {
			s.note(NoStageAlone, "No stage by itself is shown to be worth min_effect = %g. Where several stages are equally slow, freeing one of them gains nothing.",
				s.cfg.MinEffect)
		}
		return
	}
	names := s.addresses(suspect.probe.From, suspect.probe.To)
	if len(s.next()) > 0 || len(s.unsettled(suspect)) > 0 {
		s.note(NotSeparated, "Making %s free seems to gain most, but not for certain more than %s.",
			list(names), list(s.contenders(suspect)))
		return
	}
	if load, share := s.slowestLoad(suspect.probe); load >= 0 {
		s.note(LoadBlocks, "%s are made free together, because the same workers read for all of them. Which of them holds the pipeline up is told by how long that took: %.0f %% of it is %s.",
			list(names), 100*share, s.address(load))
		s.report.Verdict, s.report.Bottleneck = InputBound, s.address(load)
		return
	}
	if len(names) > 1 {
		s.note(MergedStages, "One of %s holds the pipeline up. No probe point lies between them, so they can't be told apart.", list(names))
		return
	}
	s.report.Verdict, s.report.Bottleneck = InputBound, names[0]
}

// complete measures what the report needs besides the proof: as many rounds of every probe as were asked for, and the
// neighbours of a checkpoint that is slower than an earlier one.
func (s *session) complete(ctx context.Context) error {
	if err := s.topUp(ctx, s.cfg.Rounds, s.baseline(), s.series[1:]...); err != nil {
		return err
	}
	for _, r := range s.reversals() {
		at := slices.Index(s.bounds, r.later.probe.To)
		var near []*series
		for _, k := range s.bounds[max(at-1, 1):min(at+2, len(s.bounds))] {
			near = append(near, s.at(engine.Probe{To: k}))
		}
		if err := s.topUp(ctx, s.cfg.Rounds, s.baseline(), near...); err != nil {
			return err
		}
		earlier := "without a cache"
		if !r.earlier.probe.Baseline() {
			earlier = "with the cache after " + s.address(r.earlier.probe.To-1)
		}
		s.note(NotMonotone, "With the cache after %s the step rate is %.4g/s, %s it is %.4g/s: replaying what the later one holds costs more than making it.",
			s.address(r.later.probe.To-1), median(rates(r.later)), earlier, median(rates(r.earlier)))
	}
	return s.measureControl(ctx)
}

// enough returns the rounds that a comparison is given until its look-th judgement, counted from 0. What was measured again has
// been looked at once before.
func (s *session) enough(look int) int {
	if s.again > 0 {
		look--
	}
	return s.cfg.Rounds + look*max(s.cfg.Rounds, honest)
}

// patience returns how many intervals the search for a proof may take.
func (s *session) patience() int {
	if s.again > 0 {
		return (patienceAgain + s.units()) * s.cfg.Rounds
	}
	return (patienceFirst + s.units()) * s.cfg.Rounds
}

// units returns the number of units.
func (s *session) units() int { return len(s.bounds) - 1 }

// unit returns the probe that makes unit u free.
func (s *session) unit(u int) engine.Probe { return engine.Probe{From: s.bounds[u], To: s.bounds[u+1]} }

// width returns the number of units that a probe makes free.
func (s *session) width(p engine.Probe) int {
	n := 0
	for u := range s.units() {
		if contains(p, s.unit(u)) {
			n++
		}
	}
	return n
}

// expected returns the number of probes that a session usually needs.
func (s *session) expected() int {
	n := bits.Len(uint(s.units())) + 3
	if s.cfg.Strategy == Ladder {
		n = s.units() + 3
	}
	return max(n, len(s.series))
}

// train returns the index of the train stage.
func (s *session) train() int { return s.bounds[len(s.bounds)-1] }

// bounds lists a plan's probe points, its ends included.
func bounds(plan *engine.Plan) []int {
	train := len(plan.Experiment.Stages) - 1
	b := []int{0}
	for k := 1; k < train; k++ {
		if plan.Points[k] {
			b = append(b, k)
		}
	}
	if train > 0 {
		b = append(b, train)
	}
	return b
}
