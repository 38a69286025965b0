package cli

import (
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/results"
)

// header begins every event of `pipectl run --json`.
type header struct {
	FormatVersion int    `json:"format_version"`
	Type          string `json:"type"`
	Time          string `json:"time"`
}

func newHeader(typ string) header { return header{formatVersion, typ, timestamp(time.Now())} }

// emit writes an event, where JSON is asked for.
func (s *state) emit(event any) {
	if s.json {
		s.writeJSON(event)
	}
}

// runStartedEvent says that a run is stored and begins to measure.
type runStartedEvent struct {
	header
	Run        string       `json:"run"`
	Experiment string       `json:"experiment"`
	Kind       results.Kind `json:"kind"`
	Database   string       `json:"database"`
	Device     deviceView   `json:"device"`
	Plan       planView     `json:"plan"`
}

type deviceView struct {
	Kind   string  `json:"kind"`
	Name   string  `json:"name"`
	Memory *uint64 `json:"memory_bytes"`
	Why    string  `json:"why"`
}

func (r *session) runStarted(memory int64) runStartedEvent {
	info := r.pipeline.Device()
	device := deviceView{Kind: info.Kind, Name: info.Name, Why: info.Why}
	if info.Memory > 0 {
		device.Memory = &info.Memory
	}
	return runStartedEvent{newHeader("run_started"), r.stored.ID(), r.experiment.Name, r.options.kind(), r.store.Path(), device,
		newPlanView(r.pipeline.Plan, memory)}
}

// probeStartedEvent says that a probe is measured for the first time.
type probeStartedEvent struct {
	header
	Run      string      `json:"run"`
	Probe    probeTarget `json:"probe"`
	Number   int         `json:"number"`          // from 1
	Expected int         `json:"expected_probes"` // that the session is expected to need
}

// probeTarget says which probe is meant.
type probeTarget struct {
	After      *string  `json:"after"` // the stage before the cache; null for the baseline
	Checkpoint *string  `json:"checkpoint"`
	Frees      []string `json:"frees"`   // the stages that cost nothing
	BurnMS     float64  `json:"burn_ms"` // of CPU time, beside each step
}

func (r *session) target(p engine.Probe) probeTarget {
	t := probeTarget{Frees: []string{}, BurnMS: 1e3 * p.Burn.Seconds()}
	if p.Baseline() {
		return t
	}
	stages := r.pipeline.Plan.Experiment.Stages
	t.After = &stages[p.To-1].Address
	if c := stages[p.To-1].Checkpoint; c != nil {
		t.Checkpoint = &c.Name
	}
	for _, s := range stages[p.From:p.To] {
		t.Frees = append(t.Frees, s.Address)
	}
	return t
}

func (r *session) probeStarted(e bisect.ProbeStarted) probeStartedEvent {
	return probeStartedEvent{newHeader("probe_started"), r.stored.ID(), r.target(e.Probe), e.Number, e.Expected}
}

// roundEvent says that an interval of a probe was measured and is stored.
type roundEvent struct {
	header
	Run   string      `json:"run"`
	Probe probeTarget `json:"probe"`
	Round int         `json:"round"` // of this probe, from 1
	roundView
	Stages   []accountView `json:"stages"`
	Done     int           `json:"done_rounds"`     // of the session
	Expected int           `json:"expected_rounds"` // that the session is expected to need
}

// accountView is what the workers of a stage did in an interval. Shares are of their time, from 0 to 1.
type accountView struct {
	Address string   `json:"address"`
	Workers int      `json:"workers"`
	Items   int64    `json:"items"`
	Busy    *float64 `json:"busy"`
	WaitIn  *float64 `json:"wait_in"`
	WaitOut *float64 `json:"wait_out"`
	Queue   *float64 `json:"queue"` // mean occupancy of the queue behind it; null where there is none
}

func newAccountViews(iv engine.Interval) []accountView {
	views := []accountView{}
	for _, a := range iv.Stages {
		share := func(d time.Duration) *float64 {
			if a.Items == 0 {
				return nil // it didn't run
			}
			return finite(d.Seconds() / iv.Elapsed.Seconds() / float64(a.Workers))
		}
		v := accountView{a.Address, a.Workers, a.Items, share(a.Busy), share(a.WaitIn), share(a.WaitOut), nil}
		if a.Queue >= 0 {
			v.Queue = finite(a.Queue)
		}
		views = append(views, v)
	}
	return views
}

func (r *session) roundDone(e bisect.RoundDone) roundEvent {
	return roundEvent{newHeader("round"), r.stored.ID(), r.target(e.Probe), e.Round, newRoundView(e.Interval), newAccountViews(e.Interval),
		e.Done, e.Expected}
}

// noteEvent says what the reader must know to judge the verdict.
type noteEvent struct {
	header
	Run string `json:"run"`
	noteView
}

func (r *session) noted(n bisect.Note) noteEvent {
	return noteEvent{newHeader("note"), r.stored.ID(), noteView(n)}
}

// skippedEvent says that an item was left out.
type skippedEvent struct {
	header
	Run     string `json:"run"`
	Address string `json:"address"`
	Index   int    `json:"index"` // of the item in the data set, from 0
	Item    string `json:"item"`
	Reason  string `json:"reason"`
}

func (r *session) skipped(item engine.SkippedItem) skippedEvent {
	return skippedEvent{newHeader("skipped"), r.stored.ID(), item.Address, item.Index, item.Item, item.Reason}
}

// epochEvent says that an epoch of --epochs has ended.
type epochEvent struct {
	header
	Run              string   `json:"run"`
	Epoch            int      `json:"epoch"` // from 1
	Epochs           int      `json:"epochs"`
	Steps            int      `json:"steps"`
	Samples          int64    `json:"samples"`
	Seconds          float64  `json:"seconds"`
	SamplesPerSecond *float64 `json:"samples_per_second"`
	Starvation       *float64 `json:"starvation"` // share of the time for which the step waited for data
	Loss             *float64 `json:"loss"`       // mean over the epoch's samples; null where the step doesn't learn
}

// expectationEvent says whether a threshold of the expect block is met.
type expectationEvent struct {
	header
	Run       string `json:"run"`
	Attribute string `json:"attribute"`
	Met       bool   `json:"met"`
	Near      bool   `json:"near"` // the interval includes the threshold: another run may come out otherwise
	Text      string `json:"text"`
}

func (r *session) expectation(x expectation) expectationEvent {
	return expectationEvent{newHeader("expectation"), r.stored.ID(), x.attribute, x.met, x.near, x.text}
}
