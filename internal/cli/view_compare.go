package cli

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/internal/stats"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
)

// writeComparison shows how two runs differ. now is the time that the reader sees it at.
func writeComparison(w io.Writer, term ui.Terminal, c *results.Comparison, now time.Time) {
	p := page{w, term}
	t := ui.Table{Columns: []ui.Column{{}, {}, {}, {Min: 10}, {}, {Min: 10}, {Min: 6}}}
	for _, column := range c.Columns {
		run := &column.Runs[0].Summary
		result, style := resultText(run)
		t.Row(ui.Cell{Text: column.Label, Style: ui.Strong}, ui.Cell{Text: run.ID}, ui.Cell{Text: ui.Ago(run.Started, now)},
			ui.Cell{Text: run.Experiment}, ui.Cell{Text: result, Style: style}, ui.Cell{Text: run.Bottleneck}, ui.Cell{Text: strings.Join(run.Tags, " ")})
	}
	fmt.Fprint(w, t.Render(term))
	p.warnings(c.Warnings)
	pair := &c.Groups[0].Pairs[0]
	if len(pair.Probes) > 0 {
		p.blank()
		p.rows("steps/s, served from cache", pair.Probes, p.probeName)
	}
	if len(pair.Stages) > 0 {
		p.blank()
		p.rows("ms a step, of work", pair.Stages, func(r *results.Row) string { return r.Address })
	}
	p.prose(ui.Faint, "", fmt.Sprintf("Medians ± their %s interval. p: how likely so large a difference between these two runs is by chance; n: their "+
		"rounds. ~ no significant difference, – not measured.", confidenceText(c.Confidence)))
	p.blank()
	p.changes(pair.Settings)
	p.blank()
	p.lead(ui.Strong, "Result:", join(changeText(pair, results.Rounds, c.Confidence), movedText(&pair.A.Runs[0].Summary, &pair.B.Runs[0].Summary)))
}

func (p page) warnings(list []results.Warning) {
	for _, warning := range list {
		p.lead(ui.Caution, "Warning:", warning.Text)
	}
}

func (p page) probeName(r *results.Row) string {
	if r.Role == results.Isolated {
		return "without " + rangeName(r.Frees)
	}
	return p.cachedName(r.Address, r.Checkpoint, r.Role == results.Ceiling)
}

// rows writes a table of what changed.
func (p page) rows(head string, rows []results.Row, name func(*results.Row) string) {
	t := ui.Table{Columns: []ui.Column{{Head: head, Min: 24}, {Head: "A", Right: true}, {Head: "B", Right: true}, {Head: "change", Right: true}, {}}}
	for i := range rows {
		r := &rows[i]
		test := ""
		if r.Difference != nil {
			test = differenceText(r.Difference)
		}
		t.Row(ui.Cell{Text: name(r)}, ui.Cell{Text: summaryText(r.A)}, ui.Cell{Text: summaryText(r.B)}, changeCell(r), ui.Cell{Text: test, Style: ui.Faint})
	}
	fmt.Fprint(p.w, t.Render(p.term))
}

// changeCell words how B differs from A: "~" where it doesn't significantly.
func changeCell(r *results.Row) ui.Cell {
	switch effect := r.Effect(); {
	case r.Difference == nil:
		return ui.Cell{Text: ui.Unknown}
	case effect < 0:
		return ui.Cell{Text: ui.Change(*r.Change), Style: ui.Bad}
	case effect > 0:
		return ui.Cell{Text: ui.Change(*r.Change), Style: ui.Good}
	}
	return ui.Cell{Text: "~"}
}

func summaryText(s *stats.Summary) string {
	if s == nil {
		return ui.Unknown
	}
	return ui.PlusMinus(s.Median, s.Low, s.High)
}

// differenceText words a test as benchstat does: "p=0.002 n=6+6".
func differenceText(d *stats.Difference) string {
	return fmt.Sprintf("%s n=%d+%d", pText(d), d.N1, d.N2)
}

func pText(d *stats.Difference) string {
	if d.P < 0.0005 {
		return "p<0.001"
	}
	return fmt.Sprintf("p=%.3f", d.P)
}

// changes writes what differs in the files.
func (p page) changes(settings []results.SettingChange) {
	if len(settings) == 0 {
		fmt.Fprintln(p.w, "The files say the same.")
		return
	}
	fmt.Fprintln(p.w, p.term.Paint(ui.Strong, "In the files"))
	for _, s := range settings {
		name := settingName(s.Address, s.Attribute)
		switch {
		case s.A == nil:
			p.prose(ui.Plain, "  + ", name+" = "+*s.B)
		case s.B == nil:
			p.prose(ui.Plain, "  − ", name+" = "+*s.A)
		default:
			p.prose(ui.Plain, "    ", fmt.Sprintf("%s: %s → %s", name, *s.A, *s.B))
		}
	}
}

// changeText says in one sentence whether B is faster than A. Intervals are at a confidence.
func changeText(pair *results.Pair, unit results.Unit, confidence float64) string {
	a, b, base := pair.A.Label, pair.B.Label, pair.Baseline()
	if base == nil {
		return fmt.Sprintf("the baseline was not measured in both %s and %s, so their speed can't be compared.", a, b)
	}
	p, change := pText(base.Difference), *base.Change
	switch {
	case !base.Difference.Detectable:
		return fmt.Sprintf("there are too few %s to show a difference between %s and %s (n=%d+%d).", unit, a, b, base.Difference.N1, base.Difference.N2)
	case base.Effect() == 0:
		return fmt.Sprintf("there is no significant difference between %s and %s (%s): %s and %s steps/s.", a, b, p, summaryText(base.A), summaryText(base.B))
	}
	interval := func(low, high string) string {
		if math.IsInf(base.High, 0) {
			return p
		}
		return fmt.Sprintf("%s interval %s … %s, %s", confidenceText(confidence), low, high, p)
	}
	var text string
	switch {
	case change >= 0.5:
		text = fmt.Sprintf("%s as fast as %s (%s)", ui.Times(1+change), a, interval(ui.Times(1+base.Low), ui.Times(1+base.High)))
	case change >= 0:
		text = fmt.Sprintf("%s faster than %s (%s)", ui.Percent(change), a, interval(ui.Percent(base.Low), ui.Percent(base.High)))
	default:
		text = fmt.Sprintf("%s slower than %s (%s)", ui.Percent(-change), a, interval(ui.Percent(-base.High), ui.Percent(-base.Low)))
	}
	return fmt.Sprintf("%s is %s: %s steps/s instead of %s.", b, text, ui.Number(base.B.Median), ui.Number(base.A.Median))
}

// movedText says how the verdicts differ.
func movedText(a, b *results.Summary) string {
	words := func(r *results.Summary) string {
		switch r.Verdict {
		case bisect.InputBound:
			return "held back by " + r.Bottleneck
		case bisect.StepBound:
			return "step-bound"
		case bisect.Undecided:
			return "undecided"
		}
		return ""
	}
	switch was, is := words(a), words(b); {
	case was == "" || is == "":
		return ""
	case was == is:
		return fmt.Sprintf("Both are %s.", is)
	default:
		return fmt.Sprintf("A was %s; B is %s.", was, is)
	}
}
