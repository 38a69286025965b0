package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/engine/improve"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
	"github.com/pipectl/pipectl/stages"
)

// improve tries what may help against what a session has found, and shows what came of it. began is when the session did, whose budget
// it shares.
func (r *session) improve(ctx context.Context, report *bisect.Report, began time.Time) error {
	trying, stop := context.WithCancelCause(stages.WithExactWaits(ctx))
	defer stop(nil)
	l := &lab{session: r, stop: stop, runs: map[int][2]string{}}
	first := &improve.Variant{Experiment: r.experiment, Plan: r.pipeline.Plan, Sizes: r.pipeline.SampleSizes(), Close: func() error { return nil }}
	l.add(first, r.pipeline)
	r.pipeline.DropCaches()
	o := improve.Options{Cores: coresOf(&r.host), MaxTries: r.options.maxTries, Observe: l.observe}
	if b := r.experiment.Bisect.Budget; b > 0 {
		o.Budget = max(b-time.Since(began), 1)
	}
	result, err := improve.Search(trying, first, report, l, o)
	ended := results.Done
	if err != nil {
		ended = results.Interrupted
	}
	l.finish(ended, nil)
	if cause := context.Cause(trying); cause != nil && ctx.Err() == nil {
		err = cause
	}
	if ctx.Err() != nil {
		err = errInterrupted
	}
	outcome := r.outcome(ctx, result, l.runs)
	if err == nil && r.options.write {
		err = outcome.write(r.config.Files)
	}
	if r.json {
		r.emit(newTriesEvent(r.stored.ID(), outcome))
	} else {
		page{r.stdout, r.outTerm}.tries(outcome, r.options.write)
	}
	if failed := (*diagnosticsError)(nil); err != nil && !errors.Is(err, errInterrupted) && !errors.As(err, &failed) {
		return r.failed(err)
	}
	return err
}

// lab opens the variants of a session's pipeline, and stores what is measured of them, each in a run of its own.
type lab struct {
	session  *session
	stop     context.CancelCauseFunc
	variants []*opened
	arms     []*arm // that are being measured beside each other
	progress *progress
	runs     map[int][2]string // ids, of the original and the changed pipeline, by the number of the try
	names    int               // given to processes
}

// opened is a variant that is open.
type opened struct {
	variant  *improve.Variant
	pipeline *engine.Pipeline
	run      atomic.Pointer[session] // that is stored of it, while it is measured
}

// arm is a variant that is being measured, and the run that stores it.
type arm struct {
	*session
	of *opened
}

// add keeps a variant's pipeline, which is measured with a thread for each worker, and at rest otherwise.
func (l *lab) add(v *improve.Variant, p *engine.Pipeline) *opened {
	o := &opened{variant: v, pipeline: p}
	v.Bench = bench{l.session, p}
	l.variants = append(l.variants, o)
	return o
}

// find returns what is open of a variant.
func (l *lab) find(v *improve.Variant) *opened {
	i := slices.IndexFunc(l.variants, func(o *opened) bool { return o.variant == v })
	return l.variants[i]
}

// bench measures a pipeline that isn't the only one that is open.
type bench struct {
	session  *session
	pipeline *engine.Pipeline
}

// Measure measures a probe.
func (b bench) Measure(ctx context.Context, p engine.Probe, warmup, steps int) (engine.Interval, error) {
	defer b.session.staff(b.pipeline)()
	iv, err := b.pipeline.Measure(ctx, p, warmup, steps)
	return iv, errors.Join(err, b.pipeline.Rest(context.WithoutCancel(ctx)))
}

// staff lets a pipeline's workers share the cores as threads do, until the function that it returns is called.
func (r *session) staff(p *engine.Pipeline) (done func()) {
	runtime.GOMAXPROCS(r.cores + p.Plan.Workers())
	return func() { runtime.GOMAXPROCS(r.cores) }
}

// Open opens a variant, with processes of its own.
func (l *lab) Open(ctx context.Context, e *engine.Experiment) (*improve.Variant, error) {
	v := &improve.Variant{Experiment: e}
	var o *opened
	options := l.session.engineOptions()
	options.OnSkip = func(item engine.SkippedItem) {
		if run := o.run.Load(); run != nil {
			run.skips.add(item)
		}
	}
	l.names++
	p, problems, err := engine.Open(ctx, e.Apart(fmt.Sprint("variant ", l.names)), options)
	for _, problem := range problems {
		if !problem.Warning {
			err = errors.Join(err, fmt.Errorf("%s: %s %s", problem.Address, problem.Summary, problem.Detail))
		}
	}
	if err != nil {
		if p != nil {
			err = errors.Join(err, p.Close())
		}
		return nil, err
	}
	v.Plan = p.Plan
	o = l.add(v, p)
	v.Close = func() error {
		l.variants = slices.DeleteFunc(l.variants, func(other *opened) bool { return other == o })
		return p.Close()
	}
	return v, nil
}

// begin begins a run of a variant, which is part of the session's.
func (l *lab) begin(ctx context.Context, v *improve.Variant, probe, change string) (*session, error) {
	o := l.find(v)
	options := *l.session.options
	options.probe, options.try = probe, false
	run := &session{state: l.session.state, options: &options, config: l.session.config, experiment: v.Experiment, pipeline: o.pipeline,
		part: &results.Part{Session: l.session.stored.ID(), Change: change}, store: l.session.store, cores: l.session.cores, progress: l.progress}
	run.stop = func(cause error) {
		run.lost, l.session.lost = true, true
		l.stop(cause)
	}
	if err := run.begin(ctx); err != nil {
		return nil, err
	}
	o.run.Store(run)
	return run, nil
}

// Search finds what holds a variant up, in a run of its own.
func (l *lab) Search(ctx context.Context, v *improve.Variant, budget time.Duration) (*bisect.Report, error) {
	o := l.find(v)
	l.show("", "interval", 0, o)
	run, err := l.begin(ctx, v, "", improve.Text(v.Changes))
	if err != nil {
		return nil, err
	}
	l.tell(fmt.Sprintf("Searching again, with what was kept, in run %s", run.stored.ID()))
	done := l.session.staff(o.pipeline)
	plan := *o.pipeline.Plan
	e := *plan.Experiment
	e.Bisect.Budget = max(budget, 0)
	plan.Experiment = &e
	report, err := run.searchPlan(ctx, &plan)
	done()
	v.Sizes = o.pipeline.SampleSizes()
	o.pipeline.DropCaches()
	err = errors.Join(err, o.pipeline.Rest(context.WithoutCancel(ctx)))
	run.storeSkips()
	status := results.Done
	switch {
	case ctx.Err() != nil:
		status = results.Interrupted
	case err != nil:
		status = results.Failed
	}
	failure := err
	if status == results.Interrupted {
		failure = nil
	}
	if storing := run.stored.Finish(report, status, failure); storing != nil {
		err = errors.Join(err, storing)
	}
	if status == results.Done {
		l.session.emit(newVerdictEvent(report, run.stored.ID(), time.Now()))
	}
	l.hide()
	return report, err
}

// observe stores and tells what a search for improvements does.
func (l *lab) observe(event improve.Event) {
	var err error
	switch e := event.(type) {
	case improve.TryStarted:
		err = l.start(e)
	case improve.RoundDone:
		i := slices.IndexFunc(l.arms, func(a *arm) bool { return a.of.variant == e.Variant })
		if i < 0 {
			break // it couldn't be stored, which ends the run
		}
		done := 2*(e.Round-1) + 1
		l.arms[i].observe(bisect.RoundDone{Round: e.Round, Interval: e.Interval, Done: done, Expected: max(done, 2*l.session.experiment.Bisect.Rounds)})
	case improve.TryDone:
		switch e.Try.Outcome {
		case improve.Unfinished:
			l.finish(results.Interrupted, nil)
		case improve.Failed:
			l.finish(results.Failed, errors.New(e.Try.Reason))
		default:
			l.finish(results.Done, nil)
		}
		l.session.emit(newTryEvent(l.session.stored.ID(), e.Try, l.runs))
		l.tell(fmt.Sprintf("Try %d: %s. %s", e.Try.Number, outcomeText(e.Try), e.Try.Reason))
	}
	if err != nil {
		l.stop(err)
	}
}

// start begins the runs of two variants that are measured beside each other.
func (l *lab) start(e improve.TryStarted) error {
	title := fmt.Sprintf("try %d of at most %d: %s", e.Try.Number, l.session.options.maxTries, improve.Text(e.Try.Changes))
	if e.Try.Number == 0 {
		title = "all that was kept, beside the pipeline as it was"
	}
	l.show(title, "measurement", 2*l.session.experiment.Bisect.Rounds, l.find(e.From), l.find(e.To))
	l.tell(title)
	var ids [2]string
	for i, v := range []*improve.Variant{e.From, e.To} {
		run, err := l.begin(context.Background(), v, baselineProbe, improve.Text(v.Changes))
		if err != nil {
			return err
		}
		l.arms = append(l.arms, &arm{run, l.find(v)})
		ids[i] = run.stored.ID()
	}
	l.runs[e.Try.Number] = ids
	l.session.emit(newTryStartedEvent(l.session.stored.ID(), e.Try, ids))
	return nil
}

// finish ends the runs of the variants that were measured beside each other. failure is the changed variant's.
func (l *lab) finish(status results.Status, failure error) {
	for i, a := range l.arms {
		a.storeSkips()
		a.storeGPU()
		ended, why := status, error(nil)
		if status == results.Failed {
			if ended = results.Done; i == 1 {
				ended, why = results.Failed, failure
			}
		}
		a.of.run.Store(nil)
		if err := a.stored.Finish(nil, ended, why); err != nil {
			l.session.lost = true
			l.stop(err)
		}
	}
	l.arms = nil
	l.hide()
}

// tell remarks on the progress, in a line above its display.
func (l *lab) tell(line string) {
	switch line = ui.Clean(line); {
	case l.session.options.quiet:
	case l.progress == nil: // nothing could be measured yet
		fmt.Fprintln(l.session.Err, line)
	default:
		l.progress.print(l.session.Err, line)
	}
}

// show begins to show the progress of what is measured of some variants.
func (l *lab) show(title, unit string, expected int, variants ...*opened) {
	l.hide()
	l.progress = &progress{w: l.session.Err, term: l.session.errTerm, began: time.Now(), title: title, unit: unit, expected: expected,
		live: func() (engine.Live, bool) {
			for _, o := range variants {
				if live, ok := o.pipeline.Live(); ok {
					return live, true
				}
			}
			return engine.Live{}, false
		}}
	for _, stage := range variants[0].pipeline.Plan.Experiment.Stages {
		l.progress.addresses = append(l.progress.addresses, stage.Address)
	}
	if !l.session.options.quiet {
		l.progress.start(l.session.json && l.session.outTerm.Interactive)
	}
}

// hide ends the progress.
func (l *lab) hide() {
	if l.progress != nil {
		l.progress.close()
		l.progress.quit = nil
	}
}
