package bisect

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pipectl/pipectl/engine"
)

// Control parts what the pipeline is slower than the step alone into waiting for data and fighting for the CPU. It was measured on
// the step alone, beside a burner of as much CPU time as the stages take.
type Control struct {
	BurnMS         float64   // of CPU time a step that the stages take, and the burner was to burn
	BurnedMS       float64   // that it burned: less where a step doesn't leave time for it
	Rate           Estimate  // steps/s
	WaitingMS      *Estimate // a step that the pipeline is slower even so
	InterferenceMS *Estimate // a step that the step alone is slower beside the burner
	Probe          engine.Probe
	Rounds         []engine.Interval
}

// trifling is the share of the step's time up to which the stages' CPU time can't slow it down noticeably.
const trifling = 0.01

// measureControl measures the control, where the experiment asks for one.
func (s *session) measureControl(ctx context.Context) error {
	if !s.cfg.Control {
		return nil
	}
	whole, okWhole := cpuTime(s.baseline())
	alone, okAlone := cpuTime(s.ceiling())
	removed := whole - alone
	switch {
	case !okWhole || !okAlone:
		s.note(Controlled, "There is no control: how much CPU time the stages take is unknown.")
		return nil
	case removed < trifling*median(s.ceiling().times()):
		s.note(Controlled, "There is no need of a control: the stages take %.2g ms of CPU time a step, too little to slow the step down.", 1e3*max(removed, 0))
		return nil
	case !slices.ContainsFunc(s.plan.Segments, func(g engine.Segment) bool { return g.First < s.train() && g.Workers > 0 }):
		return nil // nothing works beside the step
	}
	s.control = &series{probe: engine.Probe{To: s.train(), Burn: time.Duration(removed * 1e9)}, steps: s.ceiling().steps}
	if err := s.topUp(ctx, s.cfg.Rounds, s.ceiling(), s.control); err != nil {
		return err
	}
	s.weighControl(removed)
	return nil
}

// weighControl puts what the control shows into the report.
func (s *session) weighControl(removed float64) {
	base, ceiling, x := s.baseline(), s.ceiling(), s.control
	c := &Control{
		BurnMS: 1e3 * removed, BurnedMS: 1e3 * removed, Rate: *s.estimate(rates(x)), Probe: x.probe, Rounds: x.intervals,
		WaitingMS: s.estimate(scaled(differences(base, x), 1e3)), InterferenceMS: s.estimate(scaled(differences(x, ceiling), 1e3)),
	}
	s.report.Control = c
	if with, ok := cpuTime(x); ok {
		alone, _ := cpuTime(ceiling)
		c.BurnedMS = min(max(1e3*(with-alone), 0), c.BurnMS)
	}
	beside := fmt.Sprintf("Beside a burner of as much CPU time as the stages take, %.3g ms a step", c.BurnMS)
	if c.BurnedMS < 0.9*c.BurnMS {
		beside += fmt.Sprintf(" (of which it got to burn %.3g)", c.BurnedMS)
	}
	alone, whole := 1e3*median(ceiling.times()), 1e3*s.baseTime()
	slower := whole - alone
	instead := fmt.Sprintf("takes %.3g ms instead of %.3g", 1e3*median(x.times()), alone)
	fights, waits := c.InterferenceMS, c.WaitingMS
	switch {
	case fights.High < s.cfg.MinEffect*alone:
		s.note(Controlled, "%s, the step alone is no slower: what the pipeline takes longer, %.3g ms a step, is waiting for data.", beside, max(slower, 0))
	case !(fights.Low > 0):
		s.note(Controlled, "%s, the step alone %s, but the rounds differ too much to tell whether it is slower (%.3g to %.3g ms). More rounds may tell.",
			beside, instead, fights.Low, fights.High)
	case waits.High < s.cfg.MinEffect*whole:
		s.note(Controlled, "%s, the step alone %s: that is all that the pipeline takes longer. The step fights for the CPU with the stages and doesn't wait for data: it gets faster where they compute less, and not by more workers.",
			beside, instead)
	default:
		s.note(Controlled, "%s, the step alone %s. Of the %.3g ms a step that the pipeline takes longer, %.0f %% is fighting for the CPU, and the rest waiting for data.",
			beside, instead, slower, 100*min(fights.Median/slower, 1))
	}
}

// cpuTime returns the CPU time a step of a series, in seconds; ok is false where it isn't known.
func cpuTime(x *series) (seconds float64, ok bool) {
	for _, iv := range x.intervals {
		if iv.CPU < 0 {
			return 0, false
		}
	}
	return median(each(x, func(iv engine.Interval) float64 { return iv.CPU * iv.Elapsed.Seconds() / float64(iv.Steps) })), true
}
