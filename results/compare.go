package results

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/internal/stats"
)

// Comparison is what differs between two runs, A being the older or the reference.
type Comparison struct {
	A, B       Summary
	Confidence float64
	Probes     []Row // steps/s: the baseline, the checkpoints in the pipeline's order, the isolated ranges, the ceiling
	Stages     []Row // ms of work a step in the baseline, divided by the stage's workers; in the pipeline's order
	Settings   []SettingChange
	Warnings   []Warning
}

// Row compares one measure of two runs.
type Row struct {
	Role       Role     // of the probe; "" for a stage
	Address    string   // the stage, or the one before the probe's cache; "" for the baseline
	Checkpoint string   // the name of the probe's checkpoint, in B if it has one there
	Frees      []string // the stages that cost nothing in the probe
	A, B       *stats.Summary
	Change     *float64          // B's median over A's, less 1; nil unless both are known
	Difference *stats.Difference // nil unless both are known
}

// SettingChange is an attribute whose effective value differs.
type SettingChange struct {
	Address, Attribute string
	A, B               *string // as HCL; nil where a run doesn't have it
}

// Warning is a reason to take a comparison with care.
type Warning struct {
	Code string // stable, for machines: "hosts_differ"
	Text string // one sentence
}

// Compare compares two runs, with intervals at a confidence between 0 and 1 and differences called significant at
// 1 − confidence. Everything is taken from the rounds, so that runs that were interrupted can be compared too.
func Compare(a, b *Stored, confidence float64) *Comparison {
	c := &Comparison{A: a.Summary, B: b.Summary, Confidence: confidence,
		Settings: append(orderChange(a.Stages, b.Stages), settingChanges(a.Settings, b.Settings)...)}
	for _, pair := range pairs(orderProbes(a), orderProbes(b), func(p Probe) string { return string(p.Role) + " " + p.match() }) {
		p := pair.either()
		row := Row{Role: p.Role, Address: p.After, Checkpoint: p.Checkpoint, Frees: p.Frees}
		c.Probes = append(c.Probes, row.measure(pair.a.rates(), pair.b.rates(), confidence))
	}
	slices.SortStableFunc(c.Probes, func(p, q Row) int { return p.Role.order() - q.Role.order() })
	for _, pair := range pairs(a.Stages, b.Stages, func(s Stage) string { return s.Address }) {
		row := Row{Address: pair.either().Address}
		c.Stages = append(c.Stages, row.measure(a.stepMS(row.Address), b.stepMS(row.Address), confidence))
	}
	c.Warnings = warnings(a, b)
	if base := c.baseline(); base != nil && !base.Difference.Detectable {
		c.Warnings = append(c.Warnings, Warning{"few_rounds", fmt.Sprintf(
			"With %d and %d rounds of the baseline, no difference can be significant at confidence %g.",
			base.Difference.N1, base.Difference.N2, confidence)})
	}
	return c
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
	}
	return r
}

// Regressed reports whether B's baseline is slower than A's by more than threshold, a share of A's step rate from 0 to 1,
// and significantly so. It returns an error where the runs can't tell.
func (c *Comparison) Regressed(threshold float64) (bool, error) {
	base := c.baseline()
	if base == nil {
		return false, errors.New("the baseline was not measured in both runs, so a regression can't be judged: run both again")
	}
	if !base.Difference.Detectable {
		return false, fmt.Errorf("%d and %d rounds of the baseline are too few to judge a regression at confidence %g: run with more rounds",
			base.Difference.N1, base.Difference.N2, c.Confidence)
	}
	return base.Difference.Significant && -*base.Change > threshold, nil
}

// baseline returns the row of the baselines if both were measured.
func (c *Comparison) baseline() *Row {
	for i := range c.Probes {
		if r := &c.Probes[i]; r.Role == Baseline && r.Change != nil {
			return r
		}
	}
	return nil
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

// orderProbes returns a run's probes in the order in which they are shown.
func orderProbes(run *Stored) []Probe {
	probes := slices.Clone(run.Probes)
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

func settingChanges(a, b []engine.Setting) []SettingChange {
	var out []SettingChange
	for _, p := range pairs(a, b, func(s engine.Setting) string { return s.Address + " " + s.Attribute }) {
		if p.a != nil && p.b != nil && p.a.Value == p.b.Value {
			continue
		}
		change := SettingChange{Address: p.either().Address, Attribute: p.either().Attribute}
		if p.a != nil {
			change.A = &p.a.Value
		}
		if p.b != nil {
			change.B = &p.b.Value
		}
		out = append(out, change)
	}
	return out
}

// orderChange tells where the stages that both runs have stand in another order. Stages that only one has show as
// settings, and stages that stand alike at both ends are left out.
func orderChange(a, b []Stage) []SettingChange {
	var inA, inB []string
	for _, p := range pairs(a, b, func(s Stage) string { return s.Address }) {
		if p.a != nil && p.b != nil {
			inA, inB = append(inA, p.a.Address), append(inB, p.a.Address)
		}
	}
	place := func(stages []Stage) func(x, y string) int {
		at := func(address string) int {
			return slices.IndexFunc(stages, func(s Stage) bool { return s.Address == address })
		}
		return func(x, y string) int { return at(x) - at(y) }
	}
	slices.SortFunc(inA, place(a))
	slices.SortFunc(inB, place(b))
	if slices.Equal(inA, inB) {
		return nil
	}
	for inA[0] == inB[0] {
		inA, inB = inA[1:], inB[1:]
	}
	for n := len(inA) - 1; inA[n] == inB[n]; n-- {
		inA, inB = inA[:n], inB[:n]
	}
	before, after := strings.Join(inA, ", "), strings.Join(inB, ", ")
	return []SettingChange{{Attribute: "order", A: &before, B: &after}}
}

func warnings(a, b *Stored) []Warning {
	var out []Warning
	warn := func(code, format string, args ...any) { out = append(out, Warning{code, fmt.Sprintf(format, args...)}) }
	if a.ID == b.ID {
		warn("same_run", "Run %s is compared with itself.", a.ID)
	}
	if a.Experiment != b.Experiment {
		warn("experiments_differ", "The runs are of different experiments, %s and %s.", a.Experiment, b.Experiment)
	}
	for _, run := range []*Stored{a, b} {
		switch run.Status {
		case Running:
			warn("unfinished", "Run %s is still running: what it has measured so far is compared.", run.ID)
		case Interrupted, Failed:
			warn("unfinished", "Run %s was not finished (%s): what it had measured by then is compared.", run.ID, run.Status)
		}
	}
	var facts []string
	for i, f := range a.Host.facts() {
		if g := b.Host.facts()[i]; f.value != "" && g.value != "" && f.value != g.value {
			facts = append(facts, fmt.Sprintf("%s %s and %s", f.name, f.value, g.value))
		}
	}
	if len(facts) > 0 {
		warn("hosts_differ", "The hosts differ: %s.", strings.Join(facts, "; "))
	}
	if a.Version != b.Version {
		warn("versions_differ", "The runs were made by different versions of pipectl, %s and %s.", a.Version, b.Version)
	}
	if x, y := batchSize(a), batchSize(b); x != y && x != "" && y != "" {
		warn("batch_sizes_differ", "The batch sizes differ, %s and %s: a step does not stand for the same number of samples.", x, y)
	}
	return out
}

func batchSize(run *Stored) string {
	for _, s := range run.Settings {
		if s.Address == engine.BatchBlock && s.Attribute == "size" {
			return s.Value
		}
	}
	return ""
}
