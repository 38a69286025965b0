package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/engine/predict"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
)

// whatIfOptions are what the command line of `pipectl plan --what-if` says.
type whatIfOptions struct {
	changes []string
	run     string // a reference to the run to start from
}

// latestRun stands for the newest session of the experiment.
const latestRun = "latest"

// parse reads the changes.
func (o *whatIfOptions) parse() ([]predict.Change, error) {
	var changes []predict.Change
	for _, text := range o.changes {
		c, err := predict.ParseChange(text)
		if err != nil {
			return nil, usagef("--what-if %w", err)
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// whatIf predicts the step rate of a plan with changes, from a stored run.
func (s *state) whatIf(ctx context.Context, path string, plan *engine.Plan, o *whatIfOptions) error {
	changes, err := o.parse()
	if err != nil {
		return err
	}
	run, err := s.measuredRun(ctx, path, plan.Experiment.Name, o.run)
	if err != nil {
		return err
	}
	baseline, confidence := baselineOf(run)
	if len(baseline) == 0 {
		return fmt.Errorf("run %s has no measurement of the pipeline as it is to start from: choose another with --run, or measure it with `pipectl run`", run.ID)
	}
	m, err := predict.Learn(plan, baseline, predict.Options{Cores: coresOf(&run.Host), Confidence: confidence})
	if err != nil {
		return fmt.Errorf("run %s doesn't fit the experiment as it is now: %w; measure it anew with `pipectl run`", run.ID, err)
	}
	prediction, err := m.With(changes...)
	if err != nil {
		return usagef("--what-if %w", err)
	}
	v := whatIfView{
		FormatVersion: formatVersion, Type: "what_if", Experiment: plan.Experiment.Name, Run: run.ID, Changes: []whatIfChange{}, Confidence: confidence,
		Baseline: rateView{*summarizeAt(confidence, baseline, engine.Interval.Rate)}, Predicted: rateView{prediction.Rate}, Speedup: prediction.Speedup,
		Limit:    limitView{orNull(prediction.Limit.Address), append([]string{}, prediction.Limit.Shares...), prediction.Limit.Busy, nil},
		Warnings: whatIfWarnings(run, plan.Experiment),
	}
	if prediction.Limit.CPU >= 0 {
		v.Limit.CPU = &prediction.Limit.CPU
	}
	for _, c := range changes {
		now := m.Now(c)
		if c.Attribute == predict.Cost {
			now *= 1e3
		}
		v.Changes = append(v.Changes, whatIfChange{c.Address, c.Attribute, c.Value(), finite(now)})
	}
	for _, w := range v.Warnings {
		s.showDiagnostics(hcl.Diagnostics{{Severity: hcl.DiagWarning, Summary: "The prediction may not fit", Detail: w.Text}}, nil)
	}
	if s.json {
		return s.writeJSON(v)
	}
	page{s.stdout, s.outTerm}.whatIf(&v)
	return nil
}

// measuredRun returns the run to start from: the newest session of the experiment that measured its baseline, or the one that ref stands
// for.
func (s *state) measuredRun(ctx context.Context, path, experiment, ref string) (*results.Stored, error) {
	store, err := results.Open(ctx, s.databasePath(path))
	if errors.Is(err, results.ErrNoDatabase) {
		return nil, fmt.Errorf("%w; a prediction starts from a run that was measured: do `pipectl run` first, or name another database with --db", err)
	}
	if err != nil {
		return nil, err
	}
	defer store.Close()
	if ref == latestRun {
		runs, err := store.List(ctx, results.Filter{Experiment: experiment}, 0)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(runs, func(r results.Summary) bool { return r.Kind == results.Session && r.Baseline != nil && r.Part == nil })
		if i < 0 {
			return nil, fmt.Errorf("no session of experiment %q is stored in %s; a prediction starts from one: do `pipectl run` first", experiment, store.Path())
		}
		return store.Load(ctx, runs[i].ID)
	}
	id, err := store.Resolve(ctx, ref, experiment)
	if err != nil {
		return nil, err
	}
	run, err := store.Load(ctx, id)
	if err == nil && run.Experiment != experiment {
		return nil, fmt.Errorf("run %s is of experiment %q, not of %q", id, run.Experiment, experiment)
	}
	return run, err
}

// baselineOf returns the intervals of a run's baseline, and the confidence that was asked for.
func baselineOf(run *results.Stored) ([]engine.Interval, float64) {
	confidence := defaultConfidence
	if run.Report != nil && run.Report.Confidence > 0 {
		confidence = run.Report.Confidence
	}
	for _, p := range run.Probes {
		if p.Role == results.Baseline {
			return p.Rounds, confidence
		}
	}
	return nil, confidence
}

// coresOf returns how many cores a pipeline could use on a host; 0 if that isn't known.
func coresOf(h *results.Host) float64 {
	cores := float64(cmp.Or(h.GOMAXPROCS, h.CPUs))
	if h.CPUQuota != nil && *h.CPUQuota > 0 {
		cores = min(cores, *h.CPUQuota)
	}
	return cores
}

// whatIfWarnings returns what makes a prediction from a run uncertain.
func whatIfWarnings(run *results.Stored, e *engine.Experiment) []noteView {
	warnings := []noteView{}
	if run.Fingerprint != results.Fingerprint(e.Settings) {
		list := changedSettings(run.Settings, e.Settings)
		const shown = 5
		names := strings.Join(list[:min(len(list), shown)], ", ")
		if len(list) > shown {
			names += fmt.Sprintf(" and %d more", len(list)-shown)
		}
		warnings = append(warnings, noteView{"file_changed", fmt.Sprintf(
			"The file has changed since run %s was measured (%s). The prediction starts from what was measured then; `pipectl run` measures it as it is now.", run.ID, names)})
	}
	if coresOf(&run.Host) == 0 {
		warnings = append(warnings, noteView{"cores_unknown", "How many cores there were isn't known: the prediction is as if there were always one free."})
	}
	return warnings
}

// changedSettings names the attributes whose values differ.
func changedSettings(a, b []engine.Setting) []string {
	values := map[string]string{}
	for _, s := range a {
		values[settingName(s.Address, s.Attribute)] = s.Value
	}
	var list []string
	for _, s := range b {
		name := settingName(s.Address, s.Attribute)
		if v, ok := values[name]; !ok || v != s.Value {
			list = append(list, cmp.Or(name, "the experiment"))
		}
		delete(values, name)
	}
	for name := range values {
		list = append(list, name)
	}
	slices.Sort(list)
	if len(list) == 0 {
		return []string{"the order of its blocks"}
	}
	return list
}

// whatIfView is the output of `pipectl plan --what-if`.
type whatIfView struct {
	FormatVersion int             `json:"format_version"`
	Type          string          `json:"type"` // "what_if"
	Experiment    string          `json:"experiment"`
	Run           string          `json:"run"`
	Changes       []whatIfChange  `json:"changes"`
	Confidence    float64         `json:"confidence"`
	Baseline      rateView        `json:"baseline"`
	Predicted     rateView        `json:"predicted"`
	Speedup       bisect.Estimate `json:"speedup"`
	Limit         limitView       `json:"limit"`
	Warnings      []noteView      `json:"warnings"`
}

type whatIfChange struct {
	Address   string   `json:"address"`
	Attribute string   `json:"attribute"`
	Value     string   `json:"value"`
	Now       *float64 `json:"now"` // a number, or milliseconds
}

type limitView struct {
	Stage  *string  `json:"stage"` // null: the CPU
	Shares []string `json:"shares"`
	Busy   float64  `json:"busy"`
	CPU    *float64 `json:"cpu"` // share of the cores
}

// whatIf writes what was predicted.
func (p page) whatIf(v *whatIfView) {
	fmt.Fprintln(p.w, p.term.Paint(ui.Strong, "Experiment "+ui.Clean(v.Experiment)), "as run", v.Run, "measured it, with")
	for _, c := range v.Changes {
		now := ""
		switch {
		case c.Now == nil:
		case c.Attribute == predict.Cost:
			now = fmt.Sprintf(" (it was %s ms)", ui.Number(*c.Now))
		default:
			now = fmt.Sprintf(" (it was %.0f)", *c.Now)
		}
		fmt.Fprintf(p.w, "  %s.%s = %s%s\n", c.Address, c.Attribute, ui.Clean(c.Value), now)
	}
	p.blank()
	t := ui.Table{Columns: []ui.Column{{}, {Head: "steps/s", Right: true}, {Head: "low", Right: true}, {Head: "high", Right: true}, {Head: "ms a\nstep", Right: true},
		{Head: "speed-up", Right: true}}}
	row := func(name string, e bisect.Estimate, speedup string) {
		t.Row(ui.Cell{Text: name, Style: ui.Strong}, ui.Cell{Text: ui.Number(e.Median)}, ui.Cell{Text: ui.Number(e.Low)}, ui.Cell{Text: ui.Number(e.High)},
			ui.Cell{Text: ui.Number(1e3 / e.Median)}, ui.Cell{Text: speedup})
	}
	row("measured", v.Baseline.StepsPerSecond, "")
	row("predicted", v.Predicted.StepsPerSecond, ui.Times(v.Speedup.Median))
	fmt.Fprint(p.w, t.Render(p.term))
	p.blank()
	p.lead(ui.Strong, "Then the limit:", v.Limit.text())
	p.prose(ui.Faint, "", fmt.Sprintf("Predicted from how long the workers were busy and the CPU time used. low, high: what the rounds' accounts lead to, at %s confidence, "+
		"and what they leave open. What stages take from one another of memory bandwidth and caches isn't known.", confidenceText(v.Confidence)))
}

// text words what holds the pipeline up.
func (l *limitView) text() string {
	cpu := ""
	if l.CPU != nil {
		cpu = fmt.Sprintf(" The cores are %s busy.", ui.Percent(*l.CPU))
	}
	if l.Stage == nil {
		return "the CPU." + cpu
	}
	with := ""
	if others := slices.DeleteFunc(slices.Clone(l.Shares), func(a string) bool { return a == *l.Stage }); len(others) > 0 {
		with = fmt.Sprintf(" (its workers also do %s)", strings.Join(others, ", "))
	}
	at := fmt.Sprintf(", at work for %s of the time.", ui.Percent(l.Busy))
	return *l.Stage + with + at + cpu
}
