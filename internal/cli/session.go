package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/engine/predict"
	"github.com/pipectl/pipectl/gpu/nvml"
	"github.com/pipectl/pipectl/hcl/config"
	"github.com/pipectl/pipectl/internal/machine"
	"github.com/pipectl/pipectl/internal/pagecache"
	"github.com/pipectl/pipectl/results"
	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/storage"
)

// session is the run of one experiment, from opening its data set to what it found.
type session struct {
	*state
	options    *runOptions
	probe      engine.Probe // to measure alone, where that is asked for
	config     *config.Config
	experiment *engine.Experiment
	part       *results.Part // nil where it is no part of another session

	pipeline *engine.Pipeline
	store    *results.Store
	stored   *results.Run
	host     results.Host
	lost     bool                    // something that was measured couldn't be stored
	stop     context.CancelCauseFunc // ends the run, because what it measures can't be stored
	progress *progress
	skips    skips
	warnings warnings
	cores    int // that the pipeline may use
}

// skips collects skipped items, which workers report while they are being measured, until there is time to store them.
type skips struct {
	mu      sync.Mutex
	pending []engine.SkippedItem
	all     []engine.SkippedItem
}

func (k *skips) add(item engine.SkippedItem) {
	k.mu.Lock()
	k.pending = append(k.pending, item)
	k.mu.Unlock()
}

// take returns the items added since the last call.
func (k *skips) take() []engine.SkippedItem {
	k.mu.Lock()
	defer k.mu.Unlock()
	items := k.pending
	k.pending = nil
	k.all = append(k.all, items...)
	return items
}

// run opens the pipeline and the database, measures, and tells what it found.
func (r *session) run(ctx context.Context) error {
	began := time.Now()
	opening := r.engineOptions()
	opening.OnSkip, opening.OnWarning = r.skips.add, r.warned
	pipeline, problems, err := engine.Open(ctx, r.experiment, opening)
	if pipeline != nil {
		defer pipeline.Close()
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	if err := r.opened(r.config, r.experiment, problems, err); err != nil {
		return err
	}
	r.pipeline = pipeline
	measure, err := r.measurement()
	if err != nil {
		return err
	}

	// Before anything is measured: a run that can't be stored would be lost time.
	r.store, err = results.Create(ctx, r.databasePath(r.options.path))
	if err != nil {
		return err
	}
	defer r.store.Close()
	if err := r.begin(ctx); err != nil {
		return err
	}
	if attribute, text := unjudged(r.experiment.Expect, r.options.kind(), r.probe); text != "" {
		d := r.config.Diagnostic(r.experiment.Name, "expect", attribute, "Not checked", text, hcl.DiagWarning)
		r.showDiagnostics(hcl.Diagnostics{d}, r.config.Files)
	}
	r.emit(r.runStarted(opening.Memory))

	// Workers are to share the cores as threads do, by the operating system's scheduler, which lets one that wakes up run
	// at once. Go's own would let it wait for its turn, up to 10 ms, where no more run at a time than there are cores.
	r.cores = runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(r.cores + pipeline.Plan.Workers())
	defer runtime.GOMAXPROCS(r.cores)

	measuring, stop := context.WithCancelCause(stages.WithExactWaits(ctx))
	defer stop(nil)
	r.stop = func(cause error) {
		r.lost = true
		stop(cause)
	}
	r.progress = r.newProgress()
	r.warnings.show(func(text string) { r.progress.print(r.Err, text) })
	report, err := measure(measuring)
	r.storeGPU() // while clocks and power are still what the last steps made them
	r.progress.close()
	r.storeSkips()
	if cause := context.Cause(measuring); cause != nil && ctx.Err() == nil {
		err = cause
	}
	err = r.finish(ctx, report, err)
	if unmet := (*expectError)(nil); !r.options.try || err != nil && !errors.As(err, &unmet) {
		return err
	}
	runtime.GOMAXPROCS(r.cores)
	if trying := r.improve(ctx, report, began); trying != nil {
		return trying
	}
	return err
}

// engineOptions returns what pipelines are opened with.
func (r *session) engineOptions() engine.Options {
	return engine.Options{OpenDevice: r.OpenDevice, Memory: availableMemory(os.DirFS("/")), Cores: runtime.GOMAXPROCS(0), ReadUsage: usage(),
		ReadClocks: clocks(), PageCache: pagecache.Kernel{}}
}

// usage returns what reads the counts of what may disturb a measurement on the cores that this process may use.
func usage() func() machine.Usage {
	root, cores := os.DirFS("/"), machine.Cores()
	return func() machine.Usage { return machine.ReadUsage(root, cores) }
}

// clocks returns what reads the clocks of the cores that this process may use.
func clocks() func() machine.Clocks {
	root, cores := os.DirFS("/"), machine.Cores()
	return func() machine.Clocks { return machine.ReadClocks(root, cores) }
}

// measurement returns what measures, as the command line asks. The report is nil where none is asked for.
func (r *session) measurement() (func(context.Context) (*bisect.Report, error), error) {
	switch r.options.kind() {
	case results.Epochs:
		return func(ctx context.Context) (*bisect.Report, error) { return nil, r.train(ctx) }, nil
	case results.OneProbe:
		probe, err := findProbe(r.pipeline.Plan, r.options.probe)
		r.probe = probe
		return func(ctx context.Context) (*bisect.Report, error) { return nil, r.measureProbe(ctx, probe) }, err
	}
	return r.search, nil
}

// search runs the whole bisection.
func (r *session) search(ctx context.Context) (*bisect.Report, error) {
	return r.searchPlan(ctx, r.pipeline.Plan)
}

// searchPlan does so with the settings of the plan's own experiment.
func (r *session) searchPlan(ctx context.Context, plan *engine.Plan) (*bisect.Report, error) {
	report, err := bisect.Search(ctx, plan, r.pipeline, bisect.Options{Cores: r.cores, CPUCache: r.host.CPUCache, Cached: r.pipeline.Cached,
		Observe: r.observe})
	if report != nil && err == nil {
		notes := predict.Witness(r.pipeline.Plan, report, coresOf(&r.host))
		for _, n := range r.pipeline.Notes() {
			notes = append(notes, bisect.Note{Code: n.Code, Text: n.Text})
		}
		for _, note := range notes {
			report.Notes = append(report.Notes, note)
			r.observe(bisect.Noted{Note: note})
		}
	}
	return report, err
}

// begin stores the run's start.
func (r *session) begin(ctx context.Context) error {
	path, err := filepath.Abs(r.options.path)
	if err != nil {
		return err
	}
	r.host = results.ReadHost(ctx)
	device := r.pipeline.Device()
	r.host.Device, r.host.DeviceName, r.host.DeviceMemory = device.Kind, device.Name, device.Memory
	r.host.GPU = r.gpuFacts()
	r.stored, err = r.store.Begin(ctx, results.Start{
		Experiment: r.pipeline.Plan.Experiment,
		Kind:       r.options.kind(),
		Args:       redacted(r.args),
		Version:    buildVersion().Version,
		Path:       path,
		File:       config.Render(r.experiment),
		Host:       r.host,
		Part:       r.part,
	})
	return err
}

// gpuFacts returns what is known of the GPU that the step runs on at this moment, nil where it runs on none or nothing is.
func (r *session) gpuFacts() *nvml.Facts {
	address := r.pipeline.Device().PCI
	if address == "" {
		return nil
	}
	facts, ok := r.ReadGPU(address)
	if !ok {
		return nil
	}
	return &facts
}

// storeGPU stores what is known of the GPU as the measurements have left it.
func (r *session) storeGPU() {
	if r.host.GPUEnd = r.gpuFacts(); r.host.GPUEnd == nil {
		return
	}
	if err := r.stored.SetHost(r.host); err != nil {
		r.stop(err)
	}
}

// observe stores and tells what a search found out.
func (r *session) observe(event bisect.Event) {
	var err error
	switch e := event.(type) {
	case bisect.ProbeStarted:
		r.progress.probe(e)
		r.emit(r.probeStarted(e))
	case bisect.RoundDone:
		r.storeSkips()
		err = r.stored.AddInterval(e.Probe, e.Interval)
		r.progress.round(e)
		r.emit(r.roundDone(e))
	case bisect.Restarted:
		err = r.stored.DropIntervals()
	case bisect.Noted:
		err = r.stored.AddNote(e.Note)
		r.emit(r.noted(e.Note))
	}
	if err != nil {
		r.stop(err)
	}
}

// storeSkips stores and tells the items skipped since the last call.
func (r *session) storeSkips() {
	items := r.skips.take()
	if len(items) == 0 {
		return
	}
	if err := r.stored.AddSkipped(items...); err != nil {
		r.stop(err)
	}
	for _, item := range items {
		r.emit(r.skipped(item))
	}
}

// finish stores how the run ended, shows what was found, and returns what went wrong.
func (r *session) finish(ctx context.Context, report *bisect.Report, failure error) error {
	status := results.Done
	switch {
	case failure == nil:
	case ctx.Err() != nil:
		status, failure = results.Interrupted, nil
	default:
		status = results.Failed
	}
	storing := r.stored.Finish(report, status, failure)
	gone := r.store.Gone()
	if gone != nil {
		storing = gone
	}
	if report == nil {
		// It was measured and stored; the signal that may have ended the run doesn't bear on reading it.
		run, err := r.store.Load(context.WithoutCancel(ctx), r.stored.ID())
		if err != nil {
			return errors.Join(r.failed(failure), storing, err)
		}
		report = reportOf(run)
	}

	about := about{Kind: r.options.kind(), Status: status, Run: r.stored.ID(), Skipped: r.skips.all, Stored: "is stored."}
	switch {
	case gone != nil:
		about.Stored = "is not stored: the file of the results database is gone."
	case storing != nil:
		about.Stored = "is stored without its end, so that it counts as interrupted."
	case r.lost:
		about.Stored = "is stored, but not all that was measured."
	case about.Kind == results.Session && status == results.Done:
		about.Compare = r.compareCommand()
	}
	if failure != nil {
		about.Error = failure.Error()
	}
	expectations := r.expectations(report, status)
	switch {
	case !r.json:
		writeReport(r.stdout, r.outTerm, report, about)
	case status == results.Done:
		for _, x := range expectations {
			r.emit(r.expectation(x))
		}
		r.emit(newVerdictEvent(report, r.stored.ID(), time.Now()))
	}
	switch {
	case storing != nil:
		failed := r.failed(failure)
		if told := (*diagnosticsError)(nil); errors.As(failed, &told) {
			told.diags = append(told.diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Storing failed", Detail: storing.Error()})
			return told
		}
		return errors.Join(failed, storing)
	case status == results.Interrupted:
		return errInterrupted
	case failure != nil:
		return r.failed(failure)
	}
	return r.judge(expectations)
}

// failed returns what ended a run, as a diagnostic where a stage did.
func (r *session) failed(err error) error {
	if err == nil {
		return nil
	}
	if d := stageDiagnostic(r.config, r.experiment, err); d != nil {
		return &diagnosticsError{hcl.Diagnostics{d}, r.config.Files, exitError}
	}
	return err
}

// compareCommand returns the command that compares the run, a session that is done, with the one before it that has a
// verdict on the same experiment. It is "" where there is none.
func (r *session) compareCommand() string {
	// Where the runs can't be listed, there is nothing to suggest.
	runs, _ := r.store.List(context.Background(), results.Filter{Experiment: r.experiment.Name}, 0)
	id := r.stored.ID()
	self := slices.IndexFunc(runs, func(run results.Summary) bool { return run.ID == id })
	path, _ := filepath.Abs(r.options.path)
	for _, run := range runs[self+1:] {
		if run.Kind != results.Session || run.Status != results.Done || run.Verdict == "" || run.Part != nil {
			continue
		}
		// Experiments of the same name may stand in different files.
		if before, err := r.store.Load(context.Background(), run.ID); err == nil && before.Path == path {
			return strings.TrimSpace(fmt.Sprintf("pipectl compare %s %s %s", run.ID, id, r.databaseArgument()))
		}
	}
	return ""
}

// databaseArgument returns the --db that other commands need to find the run's database, "" where they need none.
func (r *session) databaseArgument() string {
	path := filepath.Clean(r.store.Path())
	if r.db == "" && path == filepath.Clean(r.databasePath(".")) {
		return ""
	}
	if strings.ContainsFunc(path, func(c rune) bool { return strings.ContainsRune(" \t'\"\\$&;|<>()*?[]#~`!", c) }) {
		path = "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return "--db " + path
}

// redacted returns arguments without what is secret in URLs.
func redacted(args []string) []string {
	args = slices.Clone(args)
	for i := range args {
		args[i] = storage.RedactedText(args[i])
	}
	return args
}
