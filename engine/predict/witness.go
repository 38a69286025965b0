package predict

import (
	"fmt"
	"math"
	"slices"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/internal/stats"
)

// Disagrees is the code of the note on probes that were measured to be much faster or slower than foretold.
const Disagrees = "prediction_disagrees"

const (
	large = 0.25 // difference of a prediction to what was measured, relative, that a reader is to know of
	// matters is the difference of a step's time, as a share of the baseline's, below which it isn't told.
	matters = 0.1
	seen    = 0.1 // change of a stage's work, relative, that explains something
)

// Witness puts into a report what the accounts of its baseline foretell of each probe. It returns notes on large disagreements, with
// what explains them. Where the baseline has no accounts it does nothing.
func Witness(plan *engine.Plan, r *bisect.Report, cores float64) []bisect.Note {
	at := slices.IndexFunc(r.Probes, func(p bisect.ProbeResult) bool { return p.Probe.Baseline() })
	if at < 0 {
		return nil
	}
	base := &r.Probes[at]
	m, err := Learn(plan, base.Rounds, Options{Cores: cores, Confidence: r.Confidence})
	if err != nil {
		return nil // without accounts there is nothing to witness
	}
	var worst *bisect.ProbeResult
	var off float64
	others := 0
	for _, list := range [][]bisect.ProbeResult{r.Probes, r.Isolated} {
		for i := range list {
			p := &list[i]
			rate := m.Probe(p.Probe).Rate
			p.Predicted = &rate
			c := Comparison{p.Probe, rate, p.Rate}
			apart := math.Abs(1/rate.Median-1/p.Rate.Median) > matters/base.Rate.Median
			if c.Apart() && c.Error() > large && apart && !p.Probe.Baseline() {
				others++
				if worst == nil || c.Error() > off {
					worst, off = p, c.Error()
				}
			}
		}
	}
	if worst == nil {
		return nil
	}
	text := fmt.Sprintf("%s the step rate is %.4g/s, where the accounts of the baseline foretell %.4g/s. %s",
		m.words(worst.Probe), worst.Rate.Median, worst.Predicted.Median, m.explain(worst, base.Rounds))
	switch others--; {
	case others == 1:
		text += fmt.Sprintf(" Another probe is off by more than %.0f %% too.", 100*large)
	case others > 1:
		text += fmt.Sprintf(" So are %d other probes, by more than %.0f %%.", others, 100*large)
	}
	return []bisect.Note{{Code: Disagrees, Text: text}}
}

// words starts a sentence about a probe.
func (m *Model) words(p engine.Probe) string {
	list := m.plan.Experiment.Stages
	switch {
	case p.Suffix():
		return "With the cache after " + list[p.To-1].Address
	case p.To-p.From == 1:
		return "With " + list[p.From].Address + " made free"
	}
	return fmt.Sprintf("With %s to %s made free", list[p.From].Address, list[p.To-1].Address)
}

// explain says which contention makes a probe faster or slower than foretold.
//
// The stages that run in it do the same work as in the baseline. Where they take longer for it there is contention: for cores
// where these are used up, by other processes where the work takes no more CPU time than before, and for memory or caches where
// it does, since a core that waits for memory counts as busy.
func (m *Model) explain(p *bisect.ProbeResult, baseline []engine.Interval) string {
	stage, ratio := m.changedMost(p, baseline)
	slower := p.Rate.Median < p.Predicted.Median
	usage := func(list []engine.Interval) float64 {
		return median(list, func(iv engine.Interval) float64 { return iv.CPU }) / m.cores
	}
	cpu := func(list []engine.Interval) float64 {
		return median(list, func(iv engine.Interval) float64 { return iv.CPU * iv.Elapsed.Seconds() / float64(iv.Steps) })
	}
	typical := m.rounds[byCPU][middle(m.rates)]
	foretold := m.step(&typical, variant{segments: m.segments, probe: p.Probe}, m.varies).used
	known := m.cores > 0 && typical.cores > 0 && usage(p.Rounds) >= 0
	address := ""
	if stage >= 0 {
		address = m.plan.Experiment.Stages[stage].Address
	}
	switch {
	case slower && known && usage(p.Rounds) >= crowded:
		return fmt.Sprintf("The cores explain it: they are %.0f %% busy in this probe.", 100*usage(p.Rounds))
	case !slower && known && usage(baseline) >= crowded:
		return fmt.Sprintf("The cores explain it: they are %.0f %% busy in the baseline, so that all stages hold one another up there.", 100*usage(baseline))
	case stage < 0 || slower != (ratio > 1) || math.Abs(ratio-1) < seen:
		return "No stage's work explains it: it is something that isn't accounted for, such as replaying the cache or copying to the device."
	case !known:
		return fmt.Sprintf("%s takes %.2f times as long as in the baseline. How much CPU time was used isn't known, so it may compete for cores, for memory, or with other processes.",
			address, ratio)
	case math.Abs(cpu(p.Rounds)/foretold-1) >= seen && slower == (cpu(p.Rounds) > foretold):
		return fmt.Sprintf("Memory or caches may explain it: %s takes %.2f times as long as in the baseline, and a step %.2f times the CPU time foretold, while cores are free.",
			address, ratio, cpu(p.Rounds)/foretold)
	}
	disturbed := p.Rounds
	if !slower {
		disturbed = baseline
	}
	others := ""
	if n := median(disturbed, func(iv engine.Interval) float64 { return iv.Others }); n > 0.05 {
		others = fmt.Sprintf(", which kept %.2g cores busy in the slower of the two", n)
	}
	return fmt.Sprintf("Other processes may explain it%s: %s takes %.2f times as long as in the baseline, for no other CPU time.", others, address, ratio)
}

// changedMost looks at the segment that does most in the slower of a probe and the baseline, and returns its stage whose work a step
// differs most between the two, and by which factor. The stage is -1 where none ran in both.
func (m *Model) changedMost(p *bisect.ProbeResult, baseline []engine.Interval) (stage int, ratio float64) {
	slow := p.Rounds
	if p.Rate.Median > p.Predicted.Median {
		slow = baseline
	}
	work := func(list []engine.Interval, i int) float64 {
		return median(list, func(iv engine.Interval) float64 {
			if len(iv.Stages) != len(m.natures) {
				return math.NaN()
			}
			return bisect.StepMS(iv, i)
		})
	}
	stage, most := -1, 0.0
	for _, g := range m.segments {
		all, change, at := 0.0, -1.0, -1
		for i := g.First; i <= g.Last; i++ {
			if p.Probe.From <= i && i < p.Probe.To {
				continue
			}
			all += work(slow, i)
			if d := math.Abs(work(p.Rounds, i) - work(baseline, i)); d > change && work(baseline, i) > 0 {
				change, at = d, i
			}
		}
		if at >= 0 && all > most {
			stage, ratio, most = at, work(p.Rounds, at)/work(baseline, at), all
		}
	}
	return stage, ratio
}

// median returns the median of a value of some intervals.
func median(list []engine.Interval, value func(engine.Interval) float64) float64 {
	var values []float64
	for _, iv := range list {
		values = append(values, value(iv))
	}
	return stats.Summarize(values, 0.5).Median
}

// Comparison is a rate foretold beside the one measured, in steps/s.
type Comparison struct {
	Probe     engine.Probe
	Predicted bisect.Estimate
	Measured  bisect.Estimate
}

// Compare lists the predictions in a report that Witness has filled, but for the baseline's: they start from that.
func Compare(r *bisect.Report) []Comparison {
	var list []Comparison
	for _, p := range slices.Concat(r.Probes, r.Isolated) {
		if p.Predicted != nil && !p.Probe.Baseline() {
			list = append(list, Comparison{p.Probe, *p.Predicted, p.Rate})
		}
	}
	return list
}

// Error returns by how much the prediction is off, relative to what was measured.
func (c Comparison) Error() float64 { return math.Abs(c.Predicted.Median/c.Measured.Median - 1) }

// Apart reports whether the two intervals have nothing in common.
func (c Comparison) Apart() bool {
	return c.Predicted.Low > c.Measured.High || c.Predicted.High < c.Measured.Low
}
