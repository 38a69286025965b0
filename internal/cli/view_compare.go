package cli

import (
	"fmt"
	"io"
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
	for i, run := range []*results.Summary{&c.A, &c.B} {
		result, style := resultText(run)
		t.Row(ui.Cell{Text: string(rune('A' + i)), Style: ui.Strong}, ui.Cell{Text: run.ID}, ui.Cell{Text: ui.Ago(run.Started, now)},
			ui.Cell{Text: run.Experiment}, ui.Cell{Text: result, Style: style}, ui.Cell{Text: run.Bottleneck}, ui.Cell{Text: strings.Join(run.Tags, " ")})
	}
	fmt.Fprint(w, t.Render(term))
	for _, warning := range c.Warnings {
		p.lead(ui.Caution, "Warning:", warning.Text)
	}
	if len(c.Probes) > 0 {
		p.blank()
		p.rows("steps/s, served from memory", c.Probes, p.probeName, +1)
	}
	if len(c.Stages) > 0 {
		p.blank()
		p.rows("ms a step, of work", c.Stages, func(r results.Row) string { return r.Address }, -1)
	}
	p.prose(ui.Faint, "", fmt.Sprintf("Medians ± their %s interval. p: how likely so large a difference is by chance; n: rounds. ~ no significant "+
		"difference, – not measured.", confidenceText(c.Confidence)))
	p.blank()
	p.changes(c.Settings)
	p.blank()
	p.lead(ui.Strong, "Result:", join(changeText(c), movedText(&c.A, &c.B)))
}

func (p page) probeName(r results.Row) string {
	if r.Role == results.Isolated {
		return "without " + rangeName(r.Frees)
	}
	return p.cachedName(r.Address, r.Checkpoint, r.Role == results.Ceiling)
}

// rows writes a table of what changed. better is +1 where more is better, or -1 where less is.
func (p page) rows(head string, rows []results.Row, name func(results.Row) string, better float64) {
	t := ui.Table{Columns: []ui.Column{{Head: head, Min: 24}, {Head: "A", Right: true}, {Head: "B", Right: true}, {Head: "change", Right: true}, {}}}
	for _, r := range rows {
		change, test, style := ui.Unknown, "", ui.Plain
		if d := r.Difference; d != nil {
			change, test = "~", differenceText(d)
			if d.Significant && r.Change != nil {
				change, style = ui.Change(*r.Change), ui.Good
				if *r.Change*better < 0 {
					style = ui.Bad
				}
			}
		}
		t.Row(ui.Cell{Text: name(r)}, ui.Cell{Text: summaryText(r.A)}, ui.Cell{Text: summaryText(r.B)},
			ui.Cell{Text: change, Style: style}, ui.Cell{Text: test, Style: ui.Faint})
	}
	fmt.Fprint(p.w, t.Render(p.term))
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

// baselines returns the row of the baselines, or nil where it isn't known of both runs.
func baselines(c *results.Comparison) *results.Row {
	for i, r := range c.Probes {
		if r.Role == results.Baseline && r.Change != nil && r.Difference != nil {
			return &c.Probes[i]
		}
	}
	return nil
}

// changeText says in one sentence whether B is faster than A.
func changeText(c *results.Comparison) string {
	base := baselines(c)
	if base == nil {
		return "the baseline was not measured in both runs, so their speed can't be compared."
	}
	p := pText(base.Difference)
	switch change := *base.Change; {
	case !base.Difference.Detectable:
		return fmt.Sprintf("there are too few rounds to show a difference (n=%d+%d).", base.Difference.N1, base.Difference.N2)
	case !base.Difference.Significant:
		return fmt.Sprintf("there is no significant difference between A and B (%s): %s and %s steps/s.", p, summaryText(base.A), summaryText(base.B))
	case change >= 0.5:
		return fmt.Sprintf("B is %s as fast as A (%s): %s steps/s instead of %s.", ui.Times(1+change), p, ui.Number(base.B.Median), ui.Number(base.A.Median))
	case change >= 0:
		return fmt.Sprintf("B is %s faster than A (%s): %s steps/s instead of %s.", ui.Percent(change), p, ui.Number(base.B.Median), ui.Number(base.A.Median))
	default:
		return fmt.Sprintf("B is %s slower than A (%s): %s steps/s instead of %s.", ui.Percent(-change), p, ui.Number(base.B.Median), ui.Number(base.A.Median))
	}
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

// comparisonView is the output of `pipectl compare`.
type comparisonView struct {
	FormatVersion int                 `json:"format_version"`
	Type          string              `json:"type"` // "comparison"
	A             summaryView         `json:"a"`
	B             summaryView         `json:"b"`
	Confidence    float64             `json:"confidence"`
	Probes        []probeChangeView   `json:"probes"` // steps/s
	Stages        []stageChangeView   `json:"stages"` // ms of work a step
	Settings      []settingChangeView `json:"settings"`
	Warnings      []noteView          `json:"warnings"`
}

type probeChangeView struct {
	Role       results.Role `json:"role"`
	After      *string      `json:"after"`
	Checkpoint *string      `json:"checkpoint"`
	Frees      []string     `json:"frees"`
	changeView
}

type stageChangeView struct {
	Address string `json:"address"`
	changeView
}

// changeView compares one measure of two runs. What needs both is null where one doesn't have it.
type changeView struct {
	A           *sampleView `json:"a"`
	B           *sampleView `json:"b"`
	Change      *float64    `json:"change"` // of B against A, as a share of A
	P           *float64    `json:"p"`
	Significant *bool       `json:"significant"`
	Detectable  *bool       `json:"detectable"` // so many rounds could show a difference
}

type sampleView struct {
	Median *float64 `json:"median"`
	Low    *float64 `json:"low"`
	High   *float64 `json:"high"`
	N      int      `json:"n"`
}

type settingChangeView struct {
	Address   string  `json:"address"`
	Attribute string  `json:"attribute"`
	A         *string `json:"a"` // as HCL
	B         *string `json:"b"`
}

func newComparisonView(c *results.Comparison) comparisonView {
	v := comparisonView{
		formatVersion, "comparison", newSummaryView(&c.A), newSummaryView(&c.B), c.Confidence,
		[]probeChangeView{}, []stageChangeView{}, []settingChangeView{}, []noteView{},
	}
	for _, r := range c.Probes {
		v.Probes = append(v.Probes, probeChangeView{r.Role, orNull(r.Address), orNull(r.Checkpoint), append([]string{}, r.Frees...), newChangeView(r)})
	}
	for _, r := range c.Stages {
		v.Stages = append(v.Stages, stageChangeView{r.Address, newChangeView(r)})
	}
	for _, s := range c.Settings {
		v.Settings = append(v.Settings, settingChangeView(s))
	}
	for _, w := range c.Warnings {
		v.Warnings = append(v.Warnings, noteView(w))
	}
	return v
}

func newChangeView(r results.Row) changeView {
	sample := func(s *stats.Summary) *sampleView {
		if s == nil {
			return nil
		}
		return &sampleView{finite(s.Median), finite(s.Low), finite(s.High), s.N}
	}
	v := changeView{A: sample(r.A), B: sample(r.B)}
	if r.Change != nil {
		v.Change = finite(*r.Change)
	}
	if d := r.Difference; d != nil {
		v.P, v.Significant, v.Detectable = finite(d.P), &d.Significant, &d.Detectable
	}
	return v
}
