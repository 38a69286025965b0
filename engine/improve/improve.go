// Package improve tries the advice of a search: it changes what holds a pipeline up, measures the changed pipeline in alternation with
// the one that it was, keeps what is significantly faster, and searches again from there. It is pure, like the search: it opens and
// measures pipelines through a Lab, and reads the time only to keep to its budget.
//
// The accounts of the baseline choose what is tried, and in which order. They never choose what is kept.
package improve

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
)

// Variant is a pipeline that is ready to be measured.
type Variant struct {
	Experiment *engine.Experiment // as its author writes it, where the plan has its stages in the order in which they run
	Plan       *engine.Plan
	Bench      bisect.Bench
	// Sizes are the mean bytes of a sample at each boundary, as caches held them; 0 where that isn't known. They may be missing.
	Sizes []float64
	// Changes is what is different from the first variant's experiment. Search fills it in.
	Changes []Change
	Close   func() error
}

// Lab opens variants and searches them.
type Lab interface {
	// Open makes a variant ready. While it isn't being measured it must not take time from those that are.
	Open(ctx context.Context, e *engine.Experiment) (*Variant, error)
	// Search finds what holds a variant up, within a budget, 0 for none.
	Search(ctx context.Context, v *Variant, budget time.Duration) (*bisect.Report, error)
}

// Options are what a search for improvements may be told.
type Options struct {
	Cores    float64       // that the pipeline may use; 0 if unknown
	MaxTries int           // changes that are measured
	Budget   time.Duration // for all of it; 0: none
	Observe  func(Event)   // is called in order, between the measurements; may be nil
}

// Outcome is what became of a change.
type Outcome string

// The outcomes.
const (
	Kept       Outcome = "kept"
	Slight     Outcome = "slight"     // it gains less than min_effect, significantly
	Unshown    Outcome = "not_shown"  // not enough of a difference was seen
	Failed     Outcome = "failed"     // it couldn't be opened or measured
	Unfinished Outcome = "unfinished" // the budget or an interrupt ended it
	Unpromised Outcome = "not_tried"  // it isn't foretold to gain min_effect, so it wasn't measured
)

// Try is a set of changes, and what came of it.
type Try struct {
	Number     int    // from 1, of those that were measured; 0 where it wasn't
	Bottleneck string // the address of the stage that it is about
	Changes    []Change
	Predicted  *bisect.Estimate // how many times as fast it is foretold to be; nil where that can't be
	Before     *bisect.Estimate // steps/s, of the pipeline without the changes; nil where it wasn't measured
	After      *bisect.Estimate // with them
	Speedup    *bisect.Estimate // how many times as fast it is, taken round by round
	Rounds     int
	Outcome    Outcome
	Reason     string // of the outcome, as a sentence
}

// Ending says why no more was tried.
type Ending string

// The endings.
const (
	StepBound    Ending = "step_bound"    // there is nothing more to gain
	NothingHelps Ending = "nothing_helps" // no change that could be tried was worth keeping
	Undecided    Ending = "undecided"     // what holds the pipeline up isn't known
	MaxTries     Ending = "max_tries"
	OutOfBudget  Ending = "budget"
	Interrupted  Ending = "interrupted"
)

// Result is what a search for improvements found.
type Result struct {
	Tries   []Try    // in the order in which they were considered
	Changes []Change // all that were kept, as one set
	Ended   Ending
	// First and Last are the step rates of the pipeline as it was and with all changes kept, and Speedup is how many times as fast it
	// is with them. They come of the only change that was kept, or of a comparison of their own. They are nil where none was kept, or
	// there was no time for it.
	First, Last, Speedup *bisect.Estimate
	Report               *bisect.Report // of the last search, with the changes kept
	Plan                 *engine.Plan   // with the changes kept
	Store                *Store         // what can't be tried: the bottleneck's output stored for good; nil where it can't be, or isn't worth it
}

// errBudget ends a search whose budget is used up.
var errBudget = errors.New("the budget is used up")

// search is a search for improvements under way.
type search struct {
	Options
	lab    Lab
	cfg    engine.Bisect
	rng    *rand.Rand
	began  time.Time
	now    *Variant // with the changes that were kept so far
	report *bisect.Report
	kept   []Change
	told   map[string]bool // changes that were told not to be promising
	number int
	result *Result
}

// Search tries changes to a variant of which a search gave a report. The variant stays open; those that Search opens are closed. When
// ctx is cancelled or the variant can't be measured any more, Search returns that error and what was found until then.
func Search(ctx context.Context, v *Variant, report *bisect.Report, lab Lab, o Options) (*Result, error) {
	s := &search{Options: o, lab: lab, cfg: v.Experiment.Bisect, began: time.Now(), now: v, report: report, told: map[string]bool{},
		rng: rand.New(rand.NewPCG(v.Experiment.Seed, 0x7279)), result: &Result{Tries: []Try{}, Changes: []Change{}}}
	err := s.run(ctx)
	if err == nil && s.now != v {
		if err = s.compare(ctx, v); errors.Is(err, errBudget) {
			err = nil // why no more was tried is known
		}
	}
	if s.now != v {
		err = errors.Join(err, s.now.Close())
	}
	if errors.Is(err, errBudget) {
		s.result.Ended, err = OutOfBudget, nil
	}
	if ctx.Err() != nil {
		s.result.Ended = Interrupted
	}
	s.result.Changes = Merge(s.kept)
	s.result.Report, s.result.Plan = s.report, s.now.Plan
	s.result.Store = storing(s.now, s.report)
	return s.result, err
}

// run tries changes until none helps.
func (s *search) run(ctx context.Context) error {
	for {
		if s.report.Verdict == bisect.StepBound {
			s.result.Ended = StepBound
			return nil
		}
		kept, err := s.improve(ctx)
		if err != nil || !kept {
			return err
		}
		report, err := s.lab.Search(ctx, s.now, s.left())
		if report != nil {
			s.report = report
		}
		if err != nil {
			return err
		}
		if s.left() < 0 {
			return errBudget
		}
	}
}

// left returns how much of the budget is left: 0 where there is none, negative where it is used up.
func (s *search) left() time.Duration {
	if s.Budget <= 0 {
		return 0
	}
	if left := s.Budget - time.Since(s.began); left > 0 {
		return left
	}
	return -1
}

// improve tries the changes that may help against the bottleneck until one is kept.
func (s *search) improve(ctx context.Context) (kept bool, err error) {
	var promising []candidate
	for _, c := range s.propose() {
		if speedup, ok := c.gain(); ok && speedup < 1/(1-s.cfg.MinEffect) {
			s.passOver(c)
			continue
		}
		promising = append(promising, c)
	}
	for _, c := range promising {
		if s.number == s.MaxTries {
			s.result.Ended = MaxTries
			return false, nil
		}
		if kept, err := s.try(ctx, c, len(promising)); kept || err != nil {
			return kept, err
		}
	}
	s.result.Ended = NothingHelps
	if s.report.Verdict == bisect.Undecided {
		s.result.Ended = Undecided
	}
	return false, nil
}

// passOver notes a change that isn't foretold to gain enough, once.
func (s *search) passOver(c candidate) {
	text := s.report.Bottleneck + " " + Text(c.changes)
	if s.told[text] {
		return
	}
	s.told[text] = true
	s.result.Tries = append(s.result.Tries, Try{Bottleneck: s.report.Bottleneck, Changes: c.changes, Predicted: c.predicted, Outcome: Unpromised,
		Reason: fmt.Sprintf("It is foretold to gain less than min_effect = %g.", s.cfg.MinEffect)})
}

// try measures a candidate beside the pipeline as it is, and goes on with it where it is faster. The error of the tests is shared by
// all the rivals that may be tried against this bottleneck.
func (s *search) try(ctx context.Context, c candidate, rivals int) (kept bool, err error) {
	if s.left() < 0 {
		return false, errBudget
	}
	s.number++
	s.result.Tries = append(s.result.Tries, Try{Number: s.number, Bottleneck: s.report.Bottleneck, Changes: c.changes, Predicted: c.predicted, Outcome: Unfinished,
		Reason: "It was stopped before it was measured."})
	t := &s.result.Tries[len(s.result.Tries)-1]
	v, err := s.lab.Open(ctx, c.experiment)
	if err != nil {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		t.Outcome, t.Reason = Failed, fmt.Sprintf("It can't be run: %v.", err)
		s.observe(TryDone{*t})
		return false, nil
	}
	v.Changes = Merge(append(slices.Clone(s.kept), c.changes...))
	s.observe(TryStarted{*t, s.now, v})
	trial := bisect.NewTrial(s.cfg, rivals)
	finding, err := s.measure(ctx, s.now, v, func(now, changed engine.Interval) bisect.Finding {
		trial.Round(now, changed)
		return trial.Judge()
	})
	t.take(trial)
	measured, err := t.ended(ctx, err, trial.Rounds())
	if measured {
		t.Outcome, t.Reason = s.conclude(finding, trial)
	}
	kept = t.Outcome == Kept
	s.observe(TryDone{*t})
	if !kept {
		return false, errors.Join(err, v.Close())
	}
	if len(s.kept) > 0 { // else it is the caller's
		err = s.now.Close()
	}
	s.now, s.kept = v, append(s.kept, c.changes...)
	s.result.First, s.result.Last, s.result.Speedup = t.Before, t.After, t.Speedup
	if err == nil {
		err = s.trim(ctx, c, *t.Speedup)
	}
	return true, err
}

// take notes what a trial has measured.
func (t *Try) take(trial *bisect.Trial) {
	if trial.Rounds() > 0 {
		before, after := trial.Rates()
		speedup := trial.Speedup()
		t.Before, t.After, t.Speedup, t.Rounds = &before, &after, &speedup, trial.Rounds()
	}
}

// ended notes why a trial wasn't measured to its end, and reports whether it was. That a variant can't be measured is no error of the search.
func (t *Try) ended(ctx context.Context, err error, rounds int) (measured bool, _ error) {
	var failure *variantError
	switch {
	case errors.As(err, &failure) && ctx.Err() == nil:
		t.Outcome, t.Reason = Failed, fmt.Sprintf("It can't be measured: %v.", failure.err)
		return false, nil
	case err != nil:
		t.Reason = fmt.Sprintf("It was stopped after %d rounds.", rounds)
		return false, err
	}
	return true, nil
}

// trim tries fewer workers where those that were kept gain less than was foretold: as many as are foretold to gain what was measured.
// It keeps these if the others are shown to be worth less than min_effect more.
func (s *search) trim(ctx context.Context, c candidate, speedup bisect.Estimate) error {
	if c.predicted == nil || !(speedup.High < c.predicted.Median*(1-s.cfg.MinEffect)) || s.number == s.MaxTries || s.left() < 0 {
		return nil
	}
	i := slices.IndexFunc(c.fewer, func(f candidate) bool { return f.predicted.Median >= speedup.Median*(1-alike*s.cfg.MinEffect) })
	if i < 0 {
		return nil
	}
	f := c.fewer[i]
	v, err := s.lab.Open(ctx, f.experiment)
	if err != nil {
		return ctx.Err() // more of them could be opened
	}
	s.number++
	s.result.Tries = append(s.result.Tries, Try{Number: s.number, Bottleneck: s.report.Bottleneck, Changes: f.changes, Outcome: Unfinished})
	t := &s.result.Tries[len(s.result.Tries)-1]
	kept := append(s.kept[:len(s.kept)-len(c.changes):len(s.kept)-len(c.changes)], f.changes...)
	v.Changes = Merge(slices.Clone(kept))
	s.observe(TryStarted{*t, s.now, v})
	shown, trial := bisect.NewTrial(s.cfg, 1), bisect.NewTrial(s.cfg, 1)
	finding, err := s.measure(ctx, s.now, v, func(now, fewer engine.Interval) bisect.Finding {
		shown.Round(now, fewer)
		trial.Round(fewer, now)
		return trial.Judge()
	})
	t.take(shown)
	measured, err := t.ended(ctx, err, trial.Rounds())
	switch {
	case !measured:
	case finding == bisect.Slight:
		t.Outcome, t.Reason = Kept, fmt.Sprintf("Fewer workers do: more of them gain less than min_effect = %g, at confidence %g.", s.cfg.MinEffect, s.cfg.Confidence)
	default:
		t.Outcome, t.Reason = Unshown, "It isn't shown that fewer workers do."
	}
	s.observe(TryDone{*t})
	if t.Outcome != Kept {
		return errors.Join(err, v.Close())
	}
	err = s.now.Close()
	s.now, s.kept = v, kept
	return err
}

// conclude says what a finding means.
func (s *search) conclude(f bisect.Finding, t *bisect.Trial) (Outcome, string) {
	switch f {
	case bisect.Faster:
		return Kept, fmt.Sprintf("It is faster, at confidence %g, by at least min_effect = %g.", s.cfg.Confidence, s.cfg.MinEffect)
	case bisect.Slight:
		return Slight, fmt.Sprintf("It gains less than min_effect = %g, at confidence %g.", s.cfg.MinEffect, s.cfg.Confidence)
	}
	return Unshown, fmt.Sprintf("%d rounds don't show that it gains min_effect = %g.", t.Rounds(), s.cfg.MinEffect)
}

// compare measures the pipeline as it was beside that with all changes kept, where these are several.
func (s *search) compare(ctx context.Context, first *Variant) error {
	var tried int
	for _, t := range s.result.Tries {
		if t.Outcome == Kept {
			tried++ // what was trimmed counts too: it wasn't measured beside the pipeline as it was
		}
	}
	if tried < 2 {
		return nil
	}
	s.result.First, s.result.Last, s.result.Speedup = nil, nil, nil
	if s.left() < 0 {
		return errBudget
	}
	s.observe(TryStarted{Try{Changes: Merge(s.kept)}, first, s.now})
	trial := bisect.NewTrial(s.cfg, 1)
	_, err := s.measure(ctx, first, s.now, func(was, is engine.Interval) bisect.Finding {
		trial.Round(was, is)
		return trial.Judge()
	})
	if err == nil {
		before, after := trial.Rates()
		speedup := trial.Speedup()
		s.result.First, s.result.Last, s.result.Speedup = &before, &after, &speedup
	}
	return err
}

// variantError is a failure of the changed pipeline.
type variantError struct{ err error }

func (e *variantError) Error() string { return e.err.Error() }

func (e *variantError) Unwrap() error { return e.err }

// measure measures two variants in alternation, the order in each round drawn at random, until what takes the rounds comes to a finding.
func (s *search) measure(ctx context.Context, from, to *Variant, judge func(from, to engine.Interval) bisect.Finding) (bisect.Finding, error) {
	steps := [2]int{s.cfg.Steps, s.cfg.Steps}
	pair := [2]*Variant{from, to}
	once := func(i, steps int) (engine.Interval, error) {
		if s.left() < 0 {
			return engine.Interval{}, errBudget
		}
		iv, err := pair[i].Bench.Measure(ctx, engine.Probe{}, s.cfg.Warmup, steps)
		if err == nil && (iv.Steps <= 0 || iv.Elapsed <= 0) {
			err = fmt.Errorf("%d steps took %v, which gives no rate", iv.Steps, iv.Elapsed)
		}
		if err != nil && i == 1 {
			err = &variantError{err}
		}
		return iv, err
	}
	for i := range pair {
		if steps[i] > 0 {
			continue
		}
		var err error
		steps[i], err = bisect.Calibrate(steps[0], pair[i].Plan.Quantum(), bisect.Target, func(n int) (engine.Interval, error) { return once(i, n) })
		if err != nil {
			return bisect.Open, err
		}
	}
	for n := 1; ; n++ {
		var round [2]engine.Interval
		first := s.rng.IntN(2)
		for _, i := range []int{first, 1 - first} {
			var err error
			if round[i], err = once(i, steps[i]); err != nil {
				return bisect.Open, err
			}
			s.observe(RoundDone{pair[i], n, round[i]})
		}
		if f := judge(round[0], round[1]); f != bisect.Open {
			return f, nil
		}
	}
}
