package bisect

import (
	"github.com/pipectl/pipectl/engine"
)

// Verdict is what a session found.
type Verdict string

// The verdicts.
const (
	InputBound Verdict = "input_bound" // a stage before the step holds it up
	StepBound  Verdict = "step_bound"  // the training step itself is the slowest
	Undecided  Verdict = "undecided"
)

// Estimate is a median with its confidence interval.
type Estimate struct {
	Median, Low, High float64
}

// Report is what a session found, in plain data.
type Report struct {
	Experiment string
	Verdict    Verdict
	Bottleneck string // a stage's address; "" if undecided
	Confidence float64
	Starvation *Estimate // share of the baseline's time for which the step waited for data
	Baseline   *Estimate // steps/s; nil if it was not measured
	Ceiling    *Estimate // steps/s
	// SpeedupIfFixed is the baseline's rate with the bottleneck made free, over the baseline's rate.
	SpeedupIfFixed *Estimate
	// Next is the stage that would hold the pipeline up once the bottleneck is fixed; "" if that isn't known.
	Next     string
	Probes   []ProbeResult // baseline first, then the checkpoints in the pipeline's order, ceiling last
	Isolated []ProbeResult // the probes that made a range of stages free while all others ran
	Stages   []StageResult // every stage, in the pipeline's order
	// PageCache is "" where no files are read while the pipeline runs, and where what was asked for didn't come true.
	PageCache PageCache
	Control   *Control // nil if there was none
	Notes     []Note
	Advice    []Advice
}

// ProbeResult is the rate of one probe.
type ProbeResult struct {
	Probe      engine.Probe
	After      string   // the address of the stage before the cache; "" for the baseline
	Checkpoint string   // the name of the checkpoint block there; "" if none stands there
	Stages     []string // the stages it makes free
	Rate       Estimate // steps/s
	// Predicted is what the accounts of the baseline foretell, in steps/s; nil where they weren't asked.
	Predicted *Estimate
	Rounds    []engine.Interval
}

// StageResult is what one stage did in the baseline, and what caching it away is worth.
type StageResult struct {
	Address string
	Workers int
	StepMS  *Estimate // milliseconds of work a step, divided by its workers
	Busy    *float64  // shares of its workers' time, 0 to 1; nil if unknown
	WaitIn  *float64
	WaitOut *float64
	// CostMS is how much the time a step shrinks across the stage, 1/R(k-1) − 1/R(k), in ms; nil where one of the two
	// boundaries wasn't measured. For the train stage it is 1/R(n).
	CostMS *Estimate
	// GainMS is how much the baseline's time a step shrinks if the stage alone is made free, in ms; nil if not measured.
	GainMS *Estimate
}

// Note is something the reader must know to judge the verdict.
type Note struct {
	Code string // stable, for machines: "not_monotone"
	Text string // one or two sentences
}

// Advice is something to do, with the evidence for it.
type Advice struct {
	Code    string // "more_workers", "cheaper_operator", "keep_checkpoint", "pinned", "nothing_to_gain" …
	Address string // the stage it is about; ""
	Text    string
}
