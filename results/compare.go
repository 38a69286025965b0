package results

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/internal/stats"
)

// Comparison is what differs between columns of runs.
type Comparison struct {
	Columns    []Column // the reference, which the others are compared with, is the first
	Confidence float64  // of intervals; differences are called significant at 1 − Confidence
	Groups     []Group  // those with the worst regression of the baseline first
	Geomeans   []Geomean
	Warnings   []Warning
}

// Column is one side of a comparison: runs that count as samples of one version of a pipeline.
type Column struct {
	Label string // "A", "B" …
	Name  string // what the user selected it by
	Runs  []*Stored
}

// Group is what can be compared: runs of one experiment on hosts that are alike, of as many columns as have some.
type Group struct {
	Experiments []string // several where columns have none in common with the reference
	Hosts       []string // their names; "" isn't among them
	Columns     []Column // all, each with its runs here, which may be none
	Unit        Unit
	Pairs       []Pair // none where the reference, or all others, have no runs here
}

// Unit says what the values of a sample are.
type Unit string

// The units. Rounds of one run share whatever came out by chance as it started, so they are no independent samples of what a
// version can do: where a column has several runs, each counts once, with the median of its rounds.
const (
	Rounds Unit = "rounds"
	Runs   Unit = "runs"
)

// Pair compares a column with the reference, which is A.
type Pair struct {
	A, B     Column // with the runs of the group alone
	Probes   []Row  // steps/s: the baseline, the checkpoints in the pipeline's order, the isolated ranges, the ceiling
	Stages   []Row  // ms of work a step in the baseline, divided by the stage's workers; in the pipeline's order
	Settings []SettingChange
}

// Geomean is the geometric mean of how a column's baselines compare with the reference's.
type Geomean struct {
	Label       string
	Change      float64 // of B against A, as a share of A
	Groups      int     // that it is made of, at least one
	Significant bool    // one of the changes in it is
}

// Row compares one measure of a pair.
type Row struct {
	Role       Role     // of the probe; "" for a stage
	Address    string   // the stage, or the one before the probe's cache; "" for the baseline
	Checkpoint string   // the name of the probe's checkpoint, in B if it has one there
	Frees      []string // the stages that cost nothing in the probe
	A, B       *stats.Summary
	Change     *float64 // B's median over A's, less 1; nil unless both are known
	// Low and High are the ends of the confidence interval of the change, which holds 0 where it isn't significant; -1 and +Inf
	// where there are too few values for one.
	Low, High  float64
	Difference *stats.Difference // nil unless both are known
}

// Effect is -1 where B is significantly worse than A, +1 where it is significantly better, and 0 otherwise.
func (r *Row) Effect() int {
	switch {
	case r.Change == nil || !r.Difference.Significant || *r.Change == 0:
		return 0
	case (*r.Change > 0) == (r.Role != ""): // more steps/s, or fewer ms
		return +1
	}
	return -1
}

// Warning is a reason to take a comparison with care.
type Warning struct {
	Code string // stable, for machines: "hosts_differ"
	Text string // one sentence
}

// Label returns the name of the column at an index: A to Z, then AA, AB …
func Label(index int) string {
	label := string(rune('A' + index%26))
	if index >= 26 {
		label = Label(index/26-1) + label
	}
	return label
}

// Compare compares columns, each of which has a run, with the first of them, which is the reference; their labels are set here.
// Intervals are at a confidence between 0 and 1. Like is compared with like: the runs are grouped by experiment, and those by
// host. A column that has none in common with the reference is compared all the same, and a warning says what differs. Everything
// is taken from the rounds, so that runs that were interrupted can be compared too.
func Compare(columns []Column, confidence float64) *Comparison {
	c := &Comparison{Columns: slices.Clone(columns), Confidence: confidence}
	for i := range c.Columns {
		c.Columns[i].Label = Label(i)
	}
	for _, experiment := range split(c.Columns, func(run *Stored) string { return run.Experiment }) {
		for _, columns := range split(experiment, func(run *Stored) string { return run.HostKey }) {
			c.Groups = append(c.Groups, newGroup(columns, confidence))
		}
	}
	c.Warnings = sameRuns(c.Columns)
	for i := range c.Groups {
		for _, w := range c.warnings(&c.Groups[i]) {
			if !slices.Contains(c.Warnings, w) {
				c.Warnings = append(c.Warnings, w)
			}
		}
	}
	slices.SortStableFunc(c.Groups, func(g, h Group) int { return cmp.Compare(g.worst(), h.worst()) })
	for _, column := range c.Columns[1:] {
		if m := c.geomean(column.Label); m.Groups > 0 {
			c.Geomeans = append(c.Geomeans, m)
		}
	}
	return c
}

func newPair(a, b Column, unit Unit, confidence float64) Pair {
	// What a file says is taken from the newest run. That others of a column differ from it is warned of.
	newA, newB := newest(a.Runs), newest(b.Runs)
	pair := Pair{A: a, B: b, Settings: append(orderChange(newA.Stages, newB.Stages), settingChanges(newA.Settings, newB.Settings)...)}
	probe := func(p Probe) string { return string(p.Role) + " " + p.match() }
	for _, either := range pairs(union(a.Runs, orderProbes, probe), union(b.Runs, orderProbes, probe), probe) {
		p := either.either()
		rates := func(run *Stored) []float64 {
			i := slices.IndexFunc(run.Probes, func(q Probe) bool { return probe(q) == probe(*p) })
			if i < 0 {
				return nil
			}
			return run.Probes[i].rates()
		}
		row := Row{Role: p.Role, Address: p.After, Checkpoint: p.Checkpoint, Frees: p.Frees}
		pair.Probes = append(pair.Probes, row.measure(unit.sample(a.Runs, rates), unit.sample(b.Runs, rates), confidence))
	}
	slices.SortStableFunc(pair.Probes, func(p, q Row) int { return p.Role.order() - q.Role.order() })
	stage := func(s Stage) string { return s.Address }
	pipeline := func(run *Stored) []Stage { return run.Stages }
	for _, either := range pairs(union(a.Runs, pipeline, stage), union(b.Runs, pipeline, stage), stage) {
		row := Row{Address: either.either().Address}
		work := func(run *Stored) []float64 { return run.stepMS(row.Address) }
		pair.Stages = append(pair.Stages, row.measure(unit.sample(a.Runs, work), unit.sample(b.Runs, work), confidence))
	}
	return pair
}

// newest returns the run that began last.
func newest(runs []*Stored) *Stored {
	return slices.MaxFunc(runs, func(a, b *Stored) int { return a.Started.Compare(b.Started) })
}

// union returns what lists of several runs have, each key once, in an order that agrees with theirs where they agree.
func union[T any](runs []*Stored, list func(*Stored) []T, key func(T) string) []T {
	var all []T
	for _, run := range runs {
		var merged []T
		for _, p := range pairs(all, list(run), key) {
			merged = append(merged, *p.either())
		}
		all = merged
	}
	return all
}

// sample returns the values of a measure, given those of each round of a run.
func (u Unit) sample(runs []*Stored, rounds func(*Stored) []float64) []float64 {
	if u == Rounds {
		return rounds(runs[0])
	}
	var values []float64
	for _, run := range runs {
		if s := stats.Summarize(rounds(run), unreportedConfidence); s.N > 0 {
			values = append(values, s.Median)
		}
	}
	return values
}

// worst returns the largest significant loss of a baseline in a group, a negative share, or 0.
func (g *Group) worst() float64 {
	worst := 0.0
	for i := range g.Pairs {
		if r := g.Pairs[i].Baseline(); r != nil && r.Effect() < 0 {
			worst = min(worst, *r.Change)
		}
	}
	return worst
}

// geomean sums up how the baselines of a column compare with the reference's.
func (c *Comparison) geomean(label string) Geomean {
	m := Geomean{Label: label}
	logs := 0.0
	for i := range c.Groups {
		for j := range c.Groups[i].Pairs {
			p := &c.Groups[i].Pairs[j]
			if r := p.Baseline(); p.B.Label == label && r != nil && r.B.Median > 0 {
				logs += math.Log1p(*r.Change)
				m.Groups++
				m.Significant = m.Significant || r.Effect() != 0
			}
		}
	}
	m.Change = math.Expm1(logs / float64(max(m.Groups, 1)))
	return m
}

// Baseline returns the row of the baselines, or nil where one of the two wasn't measured.
func (p *Pair) Baseline() *Row {
	for i := range p.Probes {
		if r := &p.Probes[i]; r.Role == Baseline && r.Change != nil {
			return r
		}
	}
	return nil
}

// measure fills in the statistics of two samples.
func (r Row) measure(a, b []float64, confidence float64) Row {
	summarize := func(sample []float64) *stats.Summary {
		if len(sample) == 0 {
			return nil
		}
		s := stats.Summarize(sample, confidence)
		return &s
	}
	r.A, r.B = summarize(a), summarize(b)
	if r.A == nil || r.B == nil {
		return r
	}
	d := stats.Compare(a, b, 1-confidence)
	r.Difference = &d
	if r.A.Median != 0 {
		change := r.B.Median/r.A.Median - 1
		r.Change = &change
		low, high := stats.Ratio(a, b, confidence)
		r.Low, r.High = low-1, high-1
	}
	return r
}

func (r Role) order() int { return slices.Index([]Role{Baseline, Cached, Isolated, Ceiling}, r) }

// match identifies what a probe measures among those of its role, in words that hold for other pipelines too.
func (p *Probe) match() string {
	switch p.Role {
	case Cached:
		return p.After
	case Isolated:
		return strings.Join(p.Frees, " ")
	}
	return ""
}

// orderProbes returns a run's probes in the order in which they are shown. Controls aren't: how much is burned beside them differs from
// run to run.
func orderProbes(run *Stored) []Probe {
	probes := slices.DeleteFunc(slices.Clone(run.Probes), func(p Probe) bool { return p.Role == Control })
	slices.SortFunc(probes, func(p, q Probe) int {
		return cmp.Or(p.Role.order()-q.Role.order(), p.To-q.To, p.From-q.From)
	})
	return probes
}

// rates returns the steps/s of each round.
func (p *Probe) rates() []float64 {
	if p == nil {
		return nil
	}
	var out []float64
	for _, iv := range p.Rounds {
		out = append(out, iv.Rate())
	}
	return out
}

// stepMS returns the milliseconds of work that a step cost each worker of a stage in each round of the baseline, as a report
// has them.
func (run *Stored) stepMS(address string) []float64 {
	baseline := run.probe(engine.Probe{})
	if baseline == nil {
		return nil
	}
	var out []float64
	for _, iv := range baseline.Rounds {
		i := slices.IndexFunc(iv.Stages, func(a engine.Account) bool { return a.Address == address })
		if i >= 0 && iv.Stages[i].Workers > 0 && iv.Steps > 0 {
			out = append(out, bisect.StepMS(iv, i))
		}
	}
	return out
}

// pair is what two lists have under one key; one of the two may be nil.
type pair[T any] struct{ a, b *T }

func (p pair[T]) either() *T { return cmp.Or(p.b, p.a) }

// pairs matches the elements of two lists by key, in the order of b. What a alone has comes after the element that it
// follows in a.
func pairs[T any](a, b []T, key func(T) string) []pair[T] {
	var out []pair[T]
	for i := range b {
		out = append(out, pair[T]{b: &b[i]})
	}
	at := 0 // where the next element that a alone has goes
	for i := range a {
		j := slices.IndexFunc(out, func(p pair[T]) bool { return p.b != nil && p.a == nil && key(*p.b) == key(a[i]) })
		if j >= 0 {
			out[j].a = &a[i]
			at = j + 1
			continue
		}
		out = slices.Insert(out, at, pair[T]{a: &a[i]})
		at++
	}
	return out
}
