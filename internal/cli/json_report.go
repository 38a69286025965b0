package cli

import (
	"math"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
)

// verdictEvent is the last line of a finished session.
type verdictEvent struct {
	header
	reportView
}

func newVerdictEvent(r *bisect.Report, run string, at time.Time) verdictEvent {
	return verdictEvent{header{formatVersion, "verdict", timestamp(at)}, newReportView(r, run)}
}

// reportView is a report as JSON objects give it. What isn't known is null, a list never is.
type reportView struct {
	Run            string           `json:"run"`
	Experiment     string           `json:"experiment"`
	Verdict        *bisect.Verdict  `json:"verdict"` // null where the run wasn't to find one
	Bottleneck     *string          `json:"bottleneck"`
	Confidence     float64          `json:"confidence"`
	Starvation     *float64         `json:"starvation"` // share of the baseline's time
	Baseline       *rateView        `json:"baseline"`
	Ceiling        *rateView        `json:"ceiling"`
	SpeedupIfFixed *bisect.Estimate `json:"speedup_if_fixed"`
	Next           *string          `json:"next"`
	Probes         []probeView      `json:"probes"`
	Isolated       []probeView      `json:"isolated"`
	Stages         []stageView      `json:"stages"`
	PageCache      *string          `json:"page_cache"` // "cold" or "warm"
	Control        *controlView     `json:"control"`
	Notes          []noteView       `json:"notes"`
	Advice         []adviceView     `json:"advice"`
}

type rateView struct {
	StepsPerSecond bisect.Estimate `json:"steps_per_second"`
}

type probeView struct {
	After          *string          `json:"after"` // the stage before the cache; null for the baseline
	Checkpoint     *string          `json:"checkpoint"`
	Frees          []string         `json:"frees"` // the stages that cost nothing
	StepsPerSecond bisect.Estimate  `json:"steps_per_second"`
	Predicted      *bisect.Estimate `json:"predicted_steps_per_second"`
	Rounds         []roundView      `json:"rounds"`
}

type roundView struct {
	Start          string   `json:"start"`
	Steps          int      `json:"steps"`
	Samples        int64    `json:"samples"`
	Seconds        float64  `json:"seconds"`
	StepsPerSecond *float64 `json:"steps_per_second"`
	Starvation     *float64 `json:"starvation"`
	FirstBatchMS   float64  `json:"first_batch_ms"`
	Skipped        int64    `json:"skipped"`
	CPU            *float64 `json:"cpu"`      // cores kept busy
	Resident       *float64 `json:"resident"` // share of the data set's pages
}

// controlView is the step alone beside a burner of CPU time.
type controlView struct {
	BurnMS         float64          `json:"burn_ms"`
	BurnedMS       float64          `json:"burned_ms"`
	StepsPerSecond bisect.Estimate  `json:"steps_per_second"`
	WaitingMS      *bisect.Estimate `json:"waiting_ms"`
	InterferenceMS *bisect.Estimate `json:"interference_ms"`
	Rounds         []roundView      `json:"rounds"`
}

type stageView struct {
	Address string           `json:"address"`
	Workers int              `json:"workers"`
	StepMS  *bisect.Estimate `json:"step_ms"`
	Busy    *float64         `json:"busy"`
	WaitIn  *float64         `json:"wait_in"`
	WaitOut *float64         `json:"wait_out"`
	CostMS  *bisect.Estimate `json:"cost_ms"`
	GainMS  *bisect.Estimate `json:"gain_ms"`
}

type noteView struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

type adviceView struct {
	Code    string  `json:"code"`
	Address *string `json:"address"`
	Text    string  `json:"text"`
}

func newReportView(r *bisect.Report, run string) reportView {
	v := reportView{
		Run:            run,
		Experiment:     r.Experiment,
		Bottleneck:     orNull(r.Bottleneck),
		Confidence:     r.Confidence,
		Baseline:       newRateView(r.Baseline),
		Ceiling:        newRateView(r.Ceiling),
		SpeedupIfFixed: r.SpeedupIfFixed,
		Next:           orNull(r.Next),
		Probes:         newProbeViews(r.Probes),
		Isolated:       newProbeViews(r.Isolated),
		Stages:         []stageView{},
		PageCache:      orNull(string(r.PageCache)),
		Notes:          newNoteViews(r.Notes),
		Advice:         []adviceView{},
	}
	if r.Verdict != "" {
		v.Verdict = &r.Verdict
	}
	if c := r.Control; c != nil {
		v.Control = &controlView{c.BurnMS, c.BurnedMS, c.Rate, c.WaitingMS, c.InterferenceMS, newRoundViews(c.Rounds)}
	}
	if r.Starvation != nil {
		v.Starvation = finite(r.Starvation.Median)
	}
	for _, s := range r.Stages {
		v.Stages = append(v.Stages, stageView{s.Address, s.Workers, s.StepMS, s.Busy, s.WaitIn, s.WaitOut, s.CostMS, s.GainMS})
	}
	for _, a := range r.Advice {
		v.Advice = append(v.Advice, adviceView{a.Code, orNull(a.Address), a.Text})
	}
	return v
}

func newRateView(e *bisect.Estimate) *rateView {
	if e == nil {
		return nil
	}
	return &rateView{*e}
}

func newProbeViews(probes []bisect.ProbeResult) []probeView {
	views := []probeView{}
	for _, p := range probes {
		v := probeView{orNull(p.After), orNull(p.Checkpoint), append([]string{}, p.Stages...), p.Rate, p.Predicted, newRoundViews(p.Rounds)}
		views = append(views, v)
	}
	return views
}

func newRoundView(iv engine.Interval) roundView {
	v := roundView{
		Start:          timestamp(iv.Start),
		Steps:          iv.Steps,
		Samples:        iv.Samples,
		Seconds:        iv.Elapsed.Seconds(),
		StepsPerSecond: finite(iv.Rate()),
		Starvation:     finite(iv.Starved.Seconds() / iv.Elapsed.Seconds()),
		FirstBatchMS:   1e3 * iv.FirstBatch.Seconds(),
		Skipped:        iv.Skipped,
	}
	if iv.CPU >= 0 {
		v.CPU = finite(iv.CPU)
	}
	if iv.Resident >= 0 {
		v.Resident = finite(iv.Resident)
	}
	return v
}

func newRoundViews(rounds []engine.Interval) []roundView {
	views := []roundView{}
	for _, iv := range rounds {
		views = append(views, newRoundView(iv))
	}
	return views
}

func newNoteViews(notes []bisect.Note) []noteView {
	views := []noteView{}
	for _, n := range notes {
		views = append(views, noteView(n))
	}
	return views
}

// orNull returns nil, which JSON has as null, where text is "".
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// finite returns nil, which JSON has as null, where v is not a finite number.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
