package cli

import (
	"cmp"
	"slices"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/internal/stats"
	"github.com/pipectl/pipectl/results"
)

// defaultConfidence is that of intervals where no report says which was asked for.
const defaultConfidence = 0.95

// reportOf returns a run's report. Where it has none, because it wasn't to find a bottleneck or ended before it could
// report, what is returned has no verdict and sums up the rounds that are stored.
func reportOf(run *results.Stored) *bisect.Report {
	if run.Report != nil {
		return run.Report
	}
	r := &bisect.Report{Experiment: run.Experiment, Confidence: defaultConfidence, Notes: run.Notes}
	probes := slices.Clone(run.Probes)
	slices.SortFunc(probes, func(p, q results.Probe) int { return cmp.Or(p.From-q.From, p.To-q.To) })
	var baseline []engine.Interval
	for _, p := range probes {
		rate := summarize(p.Rounds, engine.Interval.Rate)
		if rate == nil {
			continue
		}
		result := bisect.ProbeResult{Probe: p.Probe, After: p.After, Checkpoint: p.Checkpoint, Stages: p.Frees, Rate: *rate, Rounds: p.Rounds}
		switch p.Role {
		case results.Isolated:
			r.Isolated = append(r.Isolated, result)
			continue
		case results.Control:
			continue // it tells something beside the report's other probes alone
		}
		r.Probes = append(r.Probes, result)
		switch p.Role {
		case results.Baseline:
			baseline, r.Baseline = p.Rounds, rate
			r.Starvation = summarize(p.Rounds, func(iv engine.Interval) float64 { return iv.Starved.Seconds() / iv.Elapsed.Seconds() })
		case results.Ceiling:
			r.Ceiling = rate
		}
	}
	for i, s := range run.Stages {
		r.Stages = append(r.Stages, accountOf(baseline, i, s.Address))
	}
	return r
}

// accountOf sums up what a stage did in the intervals that have accounts.
func accountOf(intervals []engine.Interval, stage int, address string) bisect.StageResult {
	r := bisect.StageResult{Address: address}
	intervals = slices.DeleteFunc(slices.Clone(intervals), func(iv engine.Interval) bool {
		return stage >= len(iv.Stages) || iv.Stages[stage].Address != address || iv.Stages[stage].Workers < 1
	})
	if len(intervals) == 0 {
		return r
	}
	share := func(part func(engine.Account) time.Duration) *float64 {
		e := summarize(intervals, func(iv engine.Interval) float64 {
			a := iv.Stages[stage]
			return part(a).Seconds() / (float64(a.Workers) * iv.Elapsed.Seconds())
		})
		return &e.Median
	}
	r.Workers = intervals[0].Stages[stage].Workers
	r.StepMS = summarize(intervals, func(iv engine.Interval) float64 { return bisect.StepMS(iv, stage) })
	r.Busy = share(func(a engine.Account) time.Duration { return a.Busy })
	r.WaitIn = share(func(a engine.Account) time.Duration { return a.WaitIn })
	r.WaitOut = share(func(a engine.Account) time.Duration { return a.WaitOut })
	return r
}

// summarize returns the median of a value of some intervals, or nil where it isn't known of any.
func summarize(intervals []engine.Interval, value func(engine.Interval) float64) *bisect.Estimate {
	return summarizeAt(defaultConfidence, intervals, value)
}

// summarizeAt does so at a confidence.
func summarizeAt(confidence float64, intervals []engine.Interval, value func(engine.Interval) float64) *bisect.Estimate {
	var values []float64
	for _, iv := range intervals {
		values = append(values, value(iv))
	}
	s := stats.Summarize(values, confidence)
	if s.N == 0 {
		return nil
	}
	return &bisect.Estimate{Median: s.Median, Low: s.Low, High: s.High}
}
