package cli

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pipectl/pipectl/internal/stats"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
)

// comparisons shows how many runs differ: its tables and texts, which terminals and Markdown share.
type comparisons struct {
	*results.Comparison
	page    // for its width; the parts are written by others
	changes []results.Change
	now     time.Time // that the reader sees it at
}

func newComparisons(c *results.Comparison, p page, now time.Time) comparisons {
	return comparisons{c, p, c.Changes(), now}
}

// writeComparisons shows how many runs differ, regressions first.
func writeComparisons(w io.Writer, term ui.Terminal, c *results.Comparison, now time.Time) {
	p := page{w, term}
	v := newComparisons(c, p, now)
	fmt.Fprint(w, v.columns().Render(term))
	p.warnings(c.Warnings)
	p.blank()
	fmt.Fprint(w, v.rates().Render(term))
	for _, effect := range []int{-1, +1} {
		if t := v.details(effect); t != nil {
			p.blank()
			fmt.Fprint(w, t.Render(term))
		}
	}
	p.prose(ui.Faint, "", v.legend())
	for _, f := range v.files() {
		p.blank()
		if len(f.lines) == 0 {
			p.prose(ui.Plain, "", f.head)
			continue
		}
		p.prose(ui.Strong, "", f.head)
		for _, line := range f.lines {
			p.prose(ui.Plain, line.sign+" ", line.text)
		}
	}
	p.blank()
	for _, text := range v.results() {
		p.lead(ui.Strong, "Result:", text)
	}
}

// writeComparisonMarkdown writes a comparison as GitHub's Markdown has it, the results first.
func writeComparisonMarkdown(w io.Writer, c *results.Comparison, now time.Time) {
	v := newComparisons(c, page{term: ui.Terminal{Width: wideWidth}}, now)
	for _, text := range v.results() {
		fmt.Fprintf(w, "**Result:** %s\n\n", ui.Markdown(text))
	}
	fmt.Fprintln(w, v.columns().Markdown())
	for _, warning := range c.Warnings {
		fmt.Fprintf(w, "**Warning:** %s\n\n", ui.Markdown(warning.Text))
	}
	fmt.Fprintln(w, v.rates().Markdown())
	for _, effect := range []int{-1, +1} {
		if t := v.details(effect); t != nil {
			fmt.Fprintln(w, t.Markdown())
		}
	}
	fmt.Fprintf(w, "%s\n", ui.Markdown(v.legend()))
	for _, f := range v.files() {
		fmt.Fprintf(w, "\n%s\n", ui.Markdown(f.head))
		if len(f.lines) > 0 {
			fmt.Fprintln(w)
		}
		for _, line := range f.lines {
			item := ui.Markdown(strings.TrimSpace(line.sign + " " + line.text))
			if line.sign == "  +" {
				item = `\` + item // else it begins a list of its own
			}
			fmt.Fprintf(w, "- %s\n", item)
		}
	}
}

// columns lists what is compared.
func (v *comparisons) columns() *ui.Table {
	t := &ui.Table{Columns: []ui.Column{{}, {Head: "compared", Min: 10}, {Head: "runs", Min: 10}, {Head: "newest"}, {Head: "experiments", Min: 11}, {Head: "bottleneck", Min: 10}}}
	for _, column := range v.Columns {
		var experiments, bottlenecks []string
		newest := column.Runs[0].Started
		for _, run := range column.Runs {
			if run.Started.After(newest) {
				newest = run.Started
			}
			experiments, bottlenecks = append(experiments, run.Experiment), append(bottlenecks, run.Bottleneck)
		}
		runs := fmt.Sprint(len(column.Runs))
		if len(column.Runs) == 1 {
			runs = column.Runs[0].ID
		}
		t.Row(ui.Cell{Text: column.Label, Style: ui.Strong}, ui.Cell{Text: column.Name}, ui.Cell{Text: runs}, ui.Cell{Text: ui.Ago(newest, v.now)},
			ui.Cell{Text: counts(experiments)}, ui.Cell{Text: counts(bottlenecks)})
	}
	return t
}

// indent stands before rows under the name of a group.
func (v *comparisons) indent() string {
	if len(v.Groups) > 1 {
		return "  "
	}
	return ""
}

// counts lists words, "" left out, and how often each is there, where they aren't all the same.
func counts(words []string) string {
	var list, seen []string
	for _, word := range words {
		if word != "" && !slices.Contains(seen, word) {
			seen = append(seen, word)
		}
	}
	for _, word := range seen {
		n := 0
		for _, w := range words {
			if w == word {
				n++
			}
		}
		if len(seen) > 1 && n > 1 {
			word = fmt.Sprintf("%s (%d)", word, n)
		}
		list = append(list, word)
	}
	return strings.Join(list, ", ")
}

// rates compares the step rates of the whole pipelines, each group's by itself, and their geometric means.
func (v *comparisons) rates() *ui.Table {
	t := &ui.Table{Columns: []ui.Column{{Head: "the whole pipeline", Min: 18}, {Head: "steps/s", Right: true}, {Head: "vs A", Right: true},
		{Head: confidenceText(v.Confidence) + " interval"}, {}}}
	name := func(column results.Column) ui.Cell {
		return ui.Cell{Text: v.indent() + column.Label + "  " + column.Name}
	}
	for i := range v.Groups {
		g := &v.Groups[i]
		if len(g.Pairs) == 0 {
			continue
		}
		if len(v.Groups) > 1 {
			t.Section(g.Name(v.Comparison), ui.Strong)
		}
		for j := range g.Pairs {
			base := baseline(&g.Pairs[j])
			if j == 0 {
				t.Row(name(g.Pairs[j].A), ui.Cell{Text: valueText(base.A)})
			}
			test, interval := "", ""
			if base.Difference != nil {
				test = differenceText(base.Difference)
			}
			if base.Change != nil && !math.IsInf(base.High, 0) {
				interval = ui.Change(base.Low) + " … " + ui.Change(base.High)
			}
			t.Row(name(g.Pairs[j].B), ui.Cell{Text: valueText(base.B)}, changeCell(base), ui.Cell{Text: interval}, ui.Cell{Text: test, Style: ui.Faint})
		}
	}
	if slices.ContainsFunc(v.Geomeans, func(m results.Geomean) bool { return m.Groups > 1 }) {
		t.Section("geometric mean", ui.Strong)
		for _, m := range v.Geomeans {
			change := ui.Cell{Text: "~"}
			if m.Significant {
				change = ui.Cell{Text: ui.Change(m.Change), Style: ui.Strong}
			}
			i := slices.IndexFunc(v.Columns, func(c results.Column) bool { return c.Label == m.Label })
			t.Row(name(v.Columns[i]), ui.Cell{}, change, ui.Cell{}, ui.Cell{Text: fmt.Sprintf("of %d", m.Groups), Style: ui.Faint})
		}
	}
	return t
}

// baseline returns the row of the baselines, or an empty one where neither was measured.
func baseline(pair *results.Pair) *results.Row {
	for i := range pair.Probes {
		if pair.Probes[i].Role == results.Baseline {
			return &pair.Probes[i]
		}
	}
	return &results.Row{Role: results.Baseline}
}

// details lists the probes and stages that differ significantly, for the worse (-1) or for the better (+1). It returns nil where
// there are none.
func (v *comparisons) details(effect int) *ui.Table {
	head := map[int]string{-1: "worse", +1: "better"}[effect]
	t := &ui.Table{Columns: []ui.Column{{Head: head, Min: 16}, {}, {Head: "A", Right: true}, {Right: true}, {Head: "vs A", Right: true}, {}}}
	n := 0
	for i := range v.Groups {
		g, begun := &v.Groups[i], false
		for _, change := range v.changes {
			if change.Group != g || change.Effect() != effect || change.Role == results.Baseline {
				continue
			}
			if !begun && len(v.Groups) > 1 {
				t.Section(g.Name(v.Comparison), ui.Strong)
			}
			begun = true
			n++
			name, unit := change.Address, "ms a step"
			if change.Role != "" {
				name, unit = v.probeName(change.Row), "steps/s"
			}
			if len(g.Pairs) > 1 {
				name = change.Pair.B.Label + "  " + name
			}
			value := valueText
			if v.term.Width < wideWidth {
				value = medianText
			}
			t.Row(ui.Cell{Text: v.indent() + name}, ui.Cell{Text: unit, Style: ui.Faint}, ui.Cell{Text: value(change.A)}, ui.Cell{Text: value(change.B)},
				changeCell(change.Row), ui.Cell{Text: differenceText(change.Difference), Style: ui.Faint})
		}
	}
	if n == 0 {
		return nil
	}
	return t
}

// legend explains the tables, and tells of what isn't in them.
func (v *comparisons) legend() string {
	same, unknown := 0, 0
	units := map[results.Unit]bool{}
	for _, change := range v.changes {
		units[change.Group.Unit] = true
		switch {
		case change.Role == results.Baseline:
		case change.Row.Change == nil:
			unknown++
		case change.Effect() == 0:
			same++
		}
	}
	text := fmt.Sprintf("Medians ± their %s interval, where there are enough values for one. p: how likely so large a difference is by chance; n: ",
		confidenceText(v.Confidence))
	switch {
	case units[results.Runs] && units[results.Rounds]:
		text += "runs, each with the median of its rounds, or the rounds where there is one run a column."
	case units[results.Runs]:
		text += "runs, each with the median of its rounds."
	default:
		text += "rounds of the run."
	}
	text += " ~ no significant difference, – not measured."
	var others []string
	if same > 0 {
		others = append(others, fmt.Sprintf("%d not significantly different", same))
	}
	if unknown > 0 {
		others = append(others, fmt.Sprintf("%d not measured on both sides", unknown))
	}
	if len(others) > 0 {
		text += fmt.Sprintf(" Other probes and stages: %s; --format csv lists them.", strings.Join(others, ", "))
	}
	return text
}

// results says in a sentence how each column compares with the reference.
func (v *comparisons) results() []string {
	var list []string
	for _, column := range v.Columns[1:] {
		if text := v.result(column.Label); text != "" {
			list = append(list, text)
		}
	}
	if len(list) == 0 {
		list = append(list, "there is nothing to compare: no column has runs of an experiment of "+v.Columns[0].Name+".")
	}
	return list
}

// result says in which groups a column differs from the reference; "" where it is compared in none.
func (v *comparisons) result(label string) string {
	outcomes := []string{"slower in", "faster in", "not significantly different in", "measured too little to tell in"}
	groups := make([][]string, len(outcomes))
	compared, only := 0, ""
	for i := range v.Groups {
		g := &v.Groups[i]
		for j := range g.Pairs {
			if g.Pairs[j].B.Label != label {
				continue
			}
			compared++
			only = changeText(&g.Pairs[j], g.Unit, v.Confidence)
			base, name, outcome := baseline(&g.Pairs[j]), g.Name(v.Comparison), 2
			switch {
			case base.Difference == nil || !base.Difference.Detectable:
				outcome = 3
			case base.Effect() < 0:
				outcome, name = 0, fmt.Sprintf("%s (%s)", name, ui.Change(*base.Change))
			case base.Effect() > 0:
				outcome, name = 1, fmt.Sprintf("%s (%s)", name, ui.Change(*base.Change))
			}
			groups[outcome] = append(groups[outcome], name)
		}
	}
	if compared < 2 {
		return only
	}
	var parts []string
	for i, names := range groups {
		if len(names) > 4 {
			names = append(names[:3:3], fmt.Sprintf("%d others", len(names)-3))
		}
		if len(names) > 0 {
			parts = append(parts, outcomes[i]+" "+strings.Join(names, ", "))
		}
	}
	text := fmt.Sprintf("%s is %s.", label, strings.Join(parts, "; "))
	for _, m := range v.Geomeans {
		if m.Label == label && m.Groups > 1 && m.Significant {
			text += fmt.Sprintf(" Geometric mean: %s.", ui.Change(m.Change))
		}
	}
	return text
}

// valueText words a median, with its interval where it has one.
func valueText(s *stats.Summary) string {
	if s == nil || !s.Bounded() {
		return medianText(s)
	}
	return summaryText(s)
}

func medianText(s *stats.Summary) string {
	if s == nil {
		return ui.Unknown
	}
	return ui.Number(s.Median)
}
