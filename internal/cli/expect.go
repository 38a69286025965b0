package cli

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/results"
)

// expectation is a threshold of an expect block, held against a report.
type expectation struct {
	attribute string
	met       bool
	near      bool   // the interval includes the threshold
	text      string // what was found, in full sentences
}

// expectations holds the expect block against the report of a run that is done. Of a probe measured alone only what it
// tells can be judged; training by --epochs isn't judged.
func (r *session) expectations(report *bisect.Report, status results.Status) []expectation {
	kind := r.options.kind()
	if status != results.Done || kind == results.Epochs || kind == results.OneProbe && report.Baseline == nil {
		return nil
	}
	return expect(r.experiment.Expect, report, kind == results.Session)
}

// expect holds thresholds against a report. It is the medians that count. A bottleneck counts only where it was looked
// for.
func expect(want engine.Expect, r *bisect.Report, searched bool) []expectation {
	var list []expectation
	number := func(attribute string, threshold *float64, found *bisect.Estimate, met func(median float64) bool, format string) {
		if threshold == nil {
			return
		}
		x := expectation{attribute: attribute, text: fmt.Sprintf("%s wasn't measured.", attribute)}
		if found != nil {
			x.met = met(found.Median)
			x.near = found.Low <= *threshold && *threshold <= found.High
			interval := intervalText(found, r.Confidence)
			if interval != "" {
				interval = " (" + interval + ")"
			}
			x.text = fmt.Sprintf(format, found.Median, interval, *threshold)
			if x.near {
				x.text += " The interval includes the threshold: another run may come out otherwise."
			}
		}
		list = append(list, x)
	}
	number("steps_per_second", want.StepsPerSecond, r.Baseline, func(m float64) bool { return m >= *want.StepsPerSecond },
		"The pipeline makes %.4g steps/s%s; at least %g are expected.")
	number("max_starvation", want.MaxStarvation, r.Starvation, func(m float64) bool { return m <= *want.MaxStarvation },
		"The share of the time for which the step waits for data is %.4g%s; at most %g is expected.")
	if want.Bottleneck != "" && searched {
		x := expectation{attribute: "bottleneck", met: r.Bottleneck == want.Bottleneck}
		x.text = fmt.Sprintf("The bottleneck is %s; %s is expected.", r.Bottleneck, want.Bottleneck)
		if r.Bottleneck == "" {
			x.text = fmt.Sprintf("The run couldn't decide on a bottleneck; %s is expected.", want.Bottleneck)
		}
		list = append(list, x)
	}
	return list
}

// unjudged says what of an expect block a run of this kind can't check, and at which attribute, "" for the block. The text
// is "" where it checks all.
func unjudged(want engine.Expect, kind results.Kind, probe engine.Probe) (attribute, text string) {
	switch {
	case want == engine.Expect{} || kind == results.Session:
		return "", ""
	case kind == results.Epochs:
		return "", "Training with --epochs checks nothing of what is expected. Run without it, or with --probe baseline, for that."
	case !probe.Baseline():
		return "", "This probe alone checks nothing of what is expected. Run without --probe, or with --probe baseline, for that."
	case want.Bottleneck != "":
		return "bottleneck", "With --probe no bottleneck is looked for, so this isn't checked. Run without it for that."
	}
	return "", ""
}

// judge shows the thresholds that aren't met, and those met so narrowly that it may be chance. It returns an error where
// one isn't met.
func (r *session) judge(list []expectation) error {
	var diags hcl.Diagnostics
	for _, x := range list {
		switch {
		case !x.met:
			diags = append(diags, r.config.Diagnostic(r.experiment.Name, "expect", x.attribute, "Not as expected", x.text, hcl.DiagError))
		case x.near:
			diags = append(diags, r.config.Diagnostic(r.experiment.Name, "expect", x.attribute, "Narrowly as expected", x.text, hcl.DiagWarning))
		}
	}
	r.showDiagnostics(diags, r.config.Files)
	if diags.HasErrors() {
		return &toldError{exitExpect}
	}
	return nil
}
