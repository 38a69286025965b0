package cli

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
)

const (
	proseWidth = 100 // lines of prose are no longer than this, however wide the terminal is
	wideWidth  = 100 // from this width on, tables show more
)

// page is a text for people under way to a terminal.
type page struct {
	w    io.Writer
	term ui.Terminal
}

// prose writes a paragraph whose first line starts with first, after a blank line where space is set.
func (p page) prose(style ui.Style, first, text string) {
	for line := range strings.Lines(ui.Wrap(text, first, min(p.term.Width, proseWidth))) {
		fmt.Fprintln(p.w, p.term.Paint(style, strings.TrimSuffix(line, "\n")))
	}
}

// lead writes a paragraph that begins with a few words in a style of their own.
func (p page) lead(style ui.Style, lead, text string) {
	wrapped := ui.Wrap(lead+" "+text, "", min(p.term.Width, proseWidth))
	rest, ok := strings.CutPrefix(wrapped, lead)
	if ok {
		lead = p.term.Paint(style, lead)
	} else {
		lead, rest = "", wrapped // the lines are shorter than the words
	}
	fmt.Fprint(p.w, lead+rest)
}

func (p page) blank() { fmt.Fprintln(p.w) }

// about is what the view of a report tells besides the report.
type about struct {
	Kind    results.Kind
	Status  results.Status
	Error   string // why the run failed
	Run     string // its id
	Stored  string // what became of it in the database, to follow its id
	Skipped []engine.SkippedItem
	Compare string // the command that compares the run with another; "" where there is none to compare with
}

// writeReport shows a report: the rates of the probes, the stages, the verdict, and what the reader should know and do.
func writeReport(w io.Writer, term ui.Terminal, r *bisect.Report, a about) {
	p := page{w, term}
	p.probes(r)
	p.stages(r)
	p.verdict(r, a)
	p.notes(r)
	p.advice(r)
	p.skipped(a.Skipped)
	if a.Run != "" {
		p.blank()
		p.lead(ui.Strong, "Run "+a.Run, a.Stored)
		if a.Compare != "" {
			fmt.Fprintf(p.w, "Compare it: %s\n", a.Compare)
		}
	}
}

// probes writes the table of step rates.
func (p page) probes(r *bisect.Report) {
	if len(r.Probes)+len(r.Isolated) == 0 {
		p.prose(ui.Plain, "", "Nothing was measured.")
		return
	}
	fastest, open, predicted := 0.0, "", false
	for _, probe := range slices.Concat(r.Probes, r.Isolated) {
		fastest = max(fastest, probe.Rate.Median)
		predicted = predicted || probe.Predicted != nil && p.term.Width >= wideWidth
		if !bounded(&probe.Rate) {
			open = ", ∞ where the rounds are too few for one"
		}
	}
	t := ui.Table{Columns: []ui.Column{
		{Head: "served from cache", Min: 24}, {Head: "steps/s", Right: true}, {Head: "ms a\nstep", Right: true},
		{Head: "ms\nsaved", Right: true}, {Bar: 48, Min: 12},
	}}
	if predicted {
		t.Columns = slices.Insert(t.Columns, 2, ui.Column{Head: "predicted", Right: true})
	}
	row := func(name string, probe bisect.ProbeResult) {
		saved, style := "", ui.Plain
		if !probe.Probe.Baseline() {
			saved = ui.Unknown
			if r.Baseline != nil {
				saved = ui.Number(1e3/r.Baseline.Median - 1e3/probe.Rate.Median)
			}
		}
		if r.Verdict == bisect.InputBound && len(probe.Stages) == 1 && probe.Stages[0] == r.Bottleneck && !probe.Probe.Suffix() {
			style = ui.Bad
		}
		cells := []ui.Cell{{Text: name, Style: style}, {Text: plusMinus(&probe.Rate)}, {Text: ui.Number(1e3 / probe.Rate.Median)},
			{Text: saved}, {Bar: probe.Rate.Median / fastest, Style: style}}
		if predicted {
			cells = slices.Insert(cells, 2, ui.Cell{Text: plusMinus(probe.Predicted)})
		}
		t.Row(cells...)
	}
	for i, probe := range r.Probes {
		last := i == len(r.Probes)-1 && len(r.Stages) > 0 && len(probe.Stages) == len(r.Stages)-1
		row(p.cachedName(probe.After, probe.Checkpoint, last), probe)
	}
	if len(r.Isolated) > 0 {
		t.Section("", ui.Plain)
		t.Section("made free by itself, all else at work", ui.Faint)
	}
	for _, probe := range r.Isolated {
		row(rangeName(probe.Stages), probe)
	}
	if c := r.Control; c != nil {
		t.Section("", ui.Plain)
		t.Section("beside a burner of the stages' CPU time", ui.Faint)
		row("all (control)", bisect.ProbeResult{Probe: c.Probe, Rate: c.Rate})
	}
	fmt.Fprint(p.w, t.Render(p.term))
	more := ""
	if predicted {
		more = " predicted: what the workers' busy time in the baseline alone foretells."
	}
	if r.PageCache != "" {
		more += fmt.Sprintf(" The page cache was %s.", r.PageCache)
	}
	p.prose(ui.Faint, "", fmt.Sprintf("The stages down to the one named don't run: their outputs come from a cache. Where the rate jumps, the "+
		"stages in between are what the step waited for. ms saved: against the baseline. ±: the %s confidence interval%s.%s",
		confidenceText(r.Confidence), open, more))
}

// cachedName names a checkpoint probe in a table by the stage before its cache, and by its checkpoint where that leaves
// room for the numbers.
func (p page) cachedName(after, checkpoint string, ceiling bool) string {
	name := "to " + after
	switch {
	case after == "":
		return "nothing (baseline)"
	case ceiling:
		return "all (ceiling: the step alone)"
	case checkpoint != "" && len(name+checkpoint) < p.term.Width/2:
		return fmt.Sprintf("%s (%s)", name, checkpoint)
	}
	return name
}

// rangeName names consecutive stages.
func rangeName(stages []string) string {
	switch len(stages) {
	case 0:
		return "nothing"
	case 1:
		return stages[0]
	}
	return stages[0] + " … " + stages[len(stages)-1]
}

// stages writes the table of the stages.
func (p page) stages(r *bisect.Report) {
	if !slices.ContainsFunc(r.Stages, func(s bisect.StageResult) bool { return s.StepMS != nil || s.CostMS != nil || s.GainMS != nil }) {
		return
	}
	t := ui.Table{Columns: []ui.Column{
		{Head: "stage", Min: 16}, {Head: "workers", Right: true}, {Head: "ms a\nstep", Right: true}, {Head: "cost", Right: true},
		{Head: "gain", Right: true}, {Head: "busy", Bar: 32, Min: 5}, {Right: true}, {Head: "wait\nin", Right: true},
		{Head: "wait\nout", Right: true},
	}}
	for _, s := range r.Stages {
		style := ui.Plain
		if s.Address == r.Bottleneck {
			style = ui.Bad
			if r.Verdict == bisect.StepBound {
				style = ui.Good
			}
		}
		workers := ui.Unknown
		if s.Workers > 0 {
			workers = fmt.Sprint(s.Workers)
		}
		work := ui.Unknown
		switch {
		case s.StepMS == nil:
		case p.term.Width >= wideWidth:
			work = plusMinus(s.StepMS)
		default:
			work = ui.Number(s.StepMS.Median)
		}
		busy := 0.0
		if s.Busy != nil {
			busy = *s.Busy
		}
		t.Row(ui.Cell{Text: s.Address, Style: style}, ui.Cell{Text: workers}, ui.Cell{Text: work}, ui.Cell{Text: costText(r, s)},
			ui.Cell{Text: gainText(r, s)}, ui.Cell{Bar: busy, Style: style}, ui.Cell{Text: share(s.Busy)}, ui.Cell{Text: share(s.WaitIn)},
			ui.Cell{Text: share(s.WaitOut)})
	}
	p.blank()
	fmt.Fprint(p.w, t.Render(p.term))
	p.prose(ui.Faint, "", "ms a step: work, shared by the workers. cost: share of a step's time that goes if the stage's output "+
		"comes from a cache. gain: speed-up if the stage alone were free. busy, wait in, wait out: shares of the workers' time. "+
		"~ no difference seen, – not known.")
}

// costText words the share of the baseline's time a step that goes away with a stage; for the train stage, the share
// that stays.
func costText(r *bisect.Report, s bisect.StageResult) string {
	switch {
	case s.CostMS == nil || r.Baseline == nil:
		return ui.Unknown
	case nothing(s.CostMS):
		return "~"
	}
	return ui.Percent(s.CostMS.Median / 1e3 * r.Baseline.Median)
}

// gainText words how many times as fast the pipeline runs with a stage made free.
func gainText(r *bisect.Report, s bisect.StageResult) string {
	switch {
	case s.Address == r.Bottleneck && r.SpeedupIfFixed != nil: // as the verdict has it, which is taken round by round
		return ui.Times(r.SpeedupIfFixed.Median)
	case s.GainMS == nil || r.Baseline == nil:
		return ui.Unknown
	case nothing(s.GainMS):
		return "~"
	}
	base := 1e3 / r.Baseline.Median
	return ui.Times(base / (base - s.GainMS.Median))
}

// bounded reports whether an interval has both ends.
func bounded(e *bisect.Estimate) bool { return !math.IsInf(e.Low, 0) && !math.IsInf(e.High, 0) }

// nothing reports whether a difference was measured well enough to say that it may as well be none.
func nothing(e *bisect.Estimate) bool { return bounded(e) && e.Low <= 0 && e.High >= 0 }

func plusMinus(e *bisect.Estimate) string {
	if e == nil {
		return ui.Unknown
	}
	return ui.PlusMinus(e.Median, e.Low, e.High)
}

func share(v *float64) string {
	if v == nil {
		return ui.Unknown
	}
	return ui.Percent(*v)
}

// verdict writes what was found.
func (p page) verdict(r *bisect.Report, a about) {
	lead, text := verdictText(r, a)
	style := ui.Caution
	switch {
	case lead == "Failed:":
		style = ui.Bad
	case r.Verdict == bisect.InputBound:
		style = ui.Bad
	case r.Verdict == bisect.StepBound:
		style = ui.Good
	}
	p.blank()
	p.lead(style, lead, text)
}

// notes writes what the reader must know to judge the verdict, but what the verdict has told already.
func (p page) notes(r *bisect.Report) {
	first := true
	for _, n := range r.Notes {
		if r.Verdict == bisect.Undecided && remedy(n.Code) != "" {
			continue
		}
		if first {
			p.blank()
			first = false
		}
		p.prose(ui.Plain, "Note: ", n.Text)
	}
}

// advice writes what to do.
func (p page) advice(r *bisect.Report) {
	if len(r.Advice) == 0 {
		return
	}
	p.blank()
	fmt.Fprintln(p.w, p.term.Paint(ui.Strong, "What to do"))
	for i, a := range r.Advice {
		text := a.Text
		if a.Address != "" {
			text = a.Address + ": " + text
		}
		p.prose(ui.Plain, fmt.Sprintf("%d. ", i+1), text)
	}
}

// skippedShown is how many skipped items are shown by name.
const skippedShown = 10

// skipped writes which items were left out.
func (p page) skipped(items []engine.SkippedItem) {
	if len(items) == 0 {
		return
	}
	p.blank()
	text := fmt.Sprintf("%d items, which are not in the batches.", len(items))
	if len(items) == 1 {
		text = "1 item, which is not in the batches."
	}
	p.lead(ui.Caution, "Skipped:", text)
	for _, s := range items[:min(len(items), skippedShown)] {
		p.prose(ui.Plain, "  ", fmt.Sprintf("%s: %s: %s", s.Address, s.Item, s.Reason))
	}
	if more := len(items) - skippedShown; more > 0 {
		fmt.Fprintf(p.w, "  … and %d more, which `pipectl show --json` lists\n", more)
	}
}
