package bisect

import "github.com/pipectl/pipectl/engine"

// Event is what a search tells while it runs: a ProbeStarted, a RoundDone, a Restarted or a Noted.
type Event interface{ event() }

// ProbeStarted says that a probe is measured for the first time.
type ProbeStarted struct {
	Probe      engine.Probe
	After      string // the address of the stage before the cache; "" for the baseline
	Checkpoint string // the name of the checkpoint block there, or ""
	Number     int    // from 1
	Expected   int    // probes that the session is expected to need, at least Number
}

// RoundDone says that one interval of a probe was measured.
type RoundDone struct {
	Probe    engine.Probe
	Round    int // of this probe, from 1
	Interval engine.Interval
	Done     int // intervals measured in the session
	Expected int // intervals that the session is expected to need, at least Done
}

// Restarted says that what was measured so far doesn't count: all is measured again.
type Restarted struct{}

// Noted says that a note was added to the report.
type Noted struct{ Note Note }

func (ProbeStarted) event() {}
func (RoundDone) event()    {}
func (Restarted) event()    {}
func (Noted) event()        {}

func (s *session) observe(e Event) {
	if s.options.Observe != nil {
		s.options.Observe(e)
	}
}
