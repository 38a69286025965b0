package improve

import "github.com/pipectl/pipectl/engine"

// Event is what a search for improvements tells while it runs: a TryStarted, a RoundDone or a TryDone.
type Event interface{ event() }

// TryStarted says that a changed pipeline is about to be measured in alternation with the one that it was. Number is 0 where all that
// was kept is compared with the pipeline as it was at first; no TryDone follows then.
type TryStarted struct {
	Try      Try
	From, To *Variant
}

// RoundDone says that one interval of a variant was measured.
type RoundDone struct {
	Variant  *Variant
	Round    int // from 1
	Interval engine.Interval
}

// TryDone says what came of a try.
type TryDone struct{ Try Try }

func (TryStarted) event() {}
func (RoundDone) event()  {}
func (TryDone) event()    {}

func (s *search) observe(e Event) {
	if s.Observe != nil {
		s.Observe(e)
	}
}
