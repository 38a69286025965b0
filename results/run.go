package results

import (
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
)

// Kind says what a run was asked to do.
type Kind string

// The kinds of run.
const (
	Session  Kind = "session" // run: the whole bisection
	OneProbe Kind = "probe"   // run --probe
	Epochs   Kind = "epochs"  // run --epochs
)

// Status says how a run ended.
type Status string

// The statuses. A run whose process ended without a word is Interrupted.
const (
	Running     Status = "running"
	Done        Status = "done"
	Failed      Status = "failed"
	Interrupted Status = "interrupted"
)

// Summary is what a list shows of a run.
type Summary struct {
	ID         string
	Tags       []string
	Experiment string
	Kind       Kind
	Status     Status
	Started    time.Time
	Finished   time.Time // zero while it runs, and where its process ended without a word
	Error      string    // why it failed
	Verdict    bisect.Verdict
	Bottleneck string
	Baseline   *bisect.Estimate // steps/s; nil if it isn't known
	Hostname   string
	HostKey    string // the same for hosts alike in what bears on speed
	Version    string // of pipectl
	Part       *Part  // nil where it stands for itself
}

// Part says of which session a run is a part. "latest" doesn't count such runs, nor do versions.
type Part struct {
	Session string // its run's id
	Change  string // what is different from that run's pipeline, or ""
}

// Duration returns how long the run took; ok is false where that isn't known.
func (s *Summary) Duration() (d time.Duration, ok bool) {
	if s.Finished.IsZero() {
		return 0, false
	}
	return s.Finished.Sub(s.Started), true
}

// Stored is everything that is stored of a run.
type Stored struct {
	Summary
	Args        []string
	Seed        uint64
	Path        string // of the experiment's file or folder
	File        string // its text
	Fingerprint string // of Settings
	Host        Host
	Settings    []engine.Setting
	Stages      []Stage
	Report      *bisect.Report       // nil if the run didn't get that far
	Probes      []Probe              // in the order in which they were first measured
	Skipped     []engine.SkippedItem // each once
	Notes       []bisect.Note
}

// Stage is a stage of a stored run's pipeline.
type Stage struct {
	Address    string
	Checkpoint string // the name of the one that stands after it, or ""
}

// Role says what a probe is for.
type Role string

// The roles of probes.
const (
	Baseline Role = "baseline" // the pipeline as it is
	Cached   Role = "cached"   // a checkpoint, with nothing running above it
	Isolated Role = "isolated" // a range of stages made free
	Ceiling  Role = "ceiling"  // the training step alone
	Control  Role = "control"  // the same beside a burner of CPU time
)

// Probe is a probe with the intervals measured.
type Probe struct {
	engine.Probe
	Role       Role
	After      string   // the address of the stage before the cache; "" for the baseline
	Checkpoint string   // the name of the checkpoint block there, or ""
	Frees      []string // the addresses of the stages that cost nothing in it
	Rounds     []engine.Interval
}

// describe returns p in the words of a pipeline, without its rounds.
func describe(p engine.Probe, pipeline []Stage) Probe {
	d := Probe{Probe: p, Role: Isolated}
	switch {
	case p.Baseline():
		d.Role = Baseline
		return d
	case p.Burn > 0:
		d.Role = Control
	case p.Suffix() && p.To == len(pipeline)-1:
		d.Role = Ceiling
	case p.Suffix():
		d.Role = Cached
	}
	d.After, d.Checkpoint = pipeline[p.To-1].Address, pipeline[p.To-1].Checkpoint
	for _, s := range pipeline[p.From:p.To] {
		d.Frees = append(d.Frees, s.Address)
	}
	return d
}
