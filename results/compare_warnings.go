package results

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
)

// sameRuns warns of runs that stand on both sides of a comparison.
func sameRuns(columns []Column) []Warning {
	var out []Warning
	for _, column := range columns[1:] {
		for _, run := range column.Runs {
			if slices.ContainsFunc(columns[0].Runs, func(r *Stored) bool { return r.ID == run.ID }) {
				out = append(out, Warning{"same_run", fmt.Sprintf("Run %s is compared with itself.", run.ID)})
			}
		}
	}
	return out
}

// warnings says why to take what a group compares with care.
func (c *Comparison) warnings(g *Group) []Warning {
	var out []Warning
	columns, confidence := g.Columns, c.Confidence
	warn := func(code, format string, args ...any) { out = append(out, Warning{code, fmt.Sprintf(format, args...)}) }
	if len(g.Pairs) == 0 {
		var labels []string
		for _, column := range columns {
			if len(column.Runs) > 0 {
				labels = append(labels, column.Label)
			}
		}
		warn("not_compared", "Only %s has runs of %s, which are compared with none.", strings.Join(labels, ", "), g.Name(c))
		return out
	}
	if text := spread(columns, func(run *Stored) string { return run.Experiment }); text != "" {
		warn("experiments_differ", "The runs are of different experiments, %s.", text)
	}
	for _, column := range columns {
		for _, run := range column.Runs {
			switch run.Status {
			case Running:
				warn("unfinished", "Run %s is still running: what it has measured so far is compared.", run.ID)
			case Interrupted, Failed:
				warn("unfinished", "Run %s was not finished (%s): what it had measured by then is compared.", run.ID, run.Status)
			}
		}
	}
	var facts []string
	for i, f := range columns[0].Runs[0].Host.facts() {
		if text := spread(columns, func(run *Stored) string { return run.Host.facts()[i].value }); text != "" {
			facts = append(facts, f.name+" "+text)
		}
	}
	if len(facts) > 0 {
		warn("hosts_differ", "The hosts differ: %s.", strings.Join(facts, "; "))
	}
	if text := spread(columns, func(run *Stored) string { return run.Version }); text != "" {
		warn("versions_differ", "The runs were made by different versions of pipectl, %s.", text)
	}
	if text := spread(columns, batchSize); text != "" {
		warn("batch_sizes_differ", "The batch sizes differ, %s: a step does not stand for the same number of samples.", text)
	}
	if text := spread(columns, pageCache); text != "" {
		warn("page_caches_differ", "The data was read from page caches that differ, %s: what reads files is faster from a warm one.", text)
	}
	for _, column := range columns {
		if names := mixed(column.Runs); len(names) > 0 {
			warn("mixed_column", "The runs of %s count as samples of one version, but differ in %s.", column.Label, several(names))
		}
	}
	for i := range g.Pairs {
		p := &g.Pairs[i]
		base := p.Baseline()
		if base == nil || base.Difference.Detectable {
			continue
		}
		if d := base.Difference; g.Unit == Rounds && len(c.Columns) == 2 && len(c.Groups) == 1 {
			warn("few_rounds", "With %d and %d rounds of the baseline, no difference can be significant at confidence %g.", d.N1, d.N2, confidence)
		} else {
			warn("few_"+string(g.Unit), "With %d+%d %s of %s and %s, no difference in %s can be significant at confidence %g: %s.",
				d.N1, d.N2, g.Unit, p.A.Label, p.B.Label, g.Name(c), confidence, g.Unit.remedy())
		}
	}
	if g.Unit == Rounds && len(g.Pairs) > 1 {
		warn("one_run", "There is one run of %s a column: its rounds tell whether these runs differ, not whether others would.", g.Name(c))
	}
	return out
}

// spread words the values that runs have where these differ: "8 and 64", or "8 (A, C) and 64 (B)" where there are more than two
// runs. Values that aren't known, "", don't count. It returns "" where there are fewer than two.
func spread(columns []Column, value func(*Stored) string) string {
	values := present(columns, value)
	if len(values) < 2 {
		return ""
	}
	runs := 0
	for _, column := range columns {
		runs += len(column.Runs)
	}
	if runs == 2 {
		return values[0] + " and " + values[1]
	}
	if len(values) > 4 {
		return fmt.Sprintf("%s and %d others", values[0], len(values)-1)
	}
	for i, v := range values {
		var labels []string
		for _, column := range columns {
			if slices.ContainsFunc(column.Runs, func(run *Stored) bool { return value(run) == v }) {
				labels = append(labels, column.Label)
			}
		}
		values[i] = fmt.Sprintf("%s (%s)", v, strings.Join(labels, ", "))
	}
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " and " + values[last]
}

// mixed returns the names of the attributes in which runs differ.
func mixed(runs []*Stored) []string {
	var names []string
	for i, run := range runs {
		if i == 0 || run.Fingerprint != "" && run.Fingerprint == runs[0].Fingerprint {
			continue
		}
		for _, change := range settingChanges(runs[0].Settings, run.Settings) {
			name := strings.TrimPrefix(change.Address+"."+change.Attribute, ".")
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func batchSize(run *Stored) string { return run.setting(engine.BatchBlock, "size") }

// pageCache returns what kind of page cache a run's data was read from, "" where that doesn't matter or isn't known.
func pageCache(run *Stored) string {
	switch {
	case run.Report != nil:
		return string(run.Report.PageCache)
	case run.setting(engine.BisectBlock, "cold") == "true":
		return string(bisect.Cold)
	}
	return ""
}

// setting returns the effective value of an attribute, as HCL; "" where the run has none.
func (run *Stored) setting(address, attribute string) string {
	for _, s := range run.Settings {
		if s.Address == address && s.Attribute == attribute {
			return s.Value
		}
	}
	return ""
}
