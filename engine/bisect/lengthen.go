package bisect

import (
	"context"
	"slices"
	"time"

	"github.com/pipectl/pipectl/engine"
)

const (
	// restless is the scatter of a probe's intervals, as a share of their median, from which on they may be too short for what they are to
	// even out: bursts in the data, items of very different sizes, others' work on the machine.
	restless = 0.04
	// longer is how many times as long intervals are then, and how many times as much of the data set the caches hold.
	longer = 3
	// soon is how long a session may have taken for it to be begun anew, so that it ends within minutes.
	soon = 45 * time.Second
	// quiet is how many cores others may keep busy: what they do is no smoother over longer times.
	quiet = 0.2
)

// Enlarger is a Bench whose caches can be made to hold so many times as much of the data set.
type Enlarger interface{ Enlarge(times int) }

// lengthen has all measured again in longer intervals, where those of list scatter so much that more of the same would hardly settle
// anything, unless the experiment says how long they are, others use the machine, or there is no time for it. It is done once: then it reports true, and the baseline
// and the ceiling have as many rounds as a look takes.
func (s *session) lengthen(ctx context.Context, list ...*series) (restarted bool, err error) {
	spent := time.Since(s.began)
	if s.again > 0 || s.cfg.Steps > 0 || s.cfg.Budget > 0 && s.cfg.Budget-spent < longer*spent ||
		spent > soon || median(each(s.baseline(), func(iv engine.Interval) float64 { return iv.Others })) > quiet {
		return false, nil
	}
	scatter := 0.0
	for _, x := range append(list, s.baseline()) {
		t := x.times()
		scatter = max(scatter, (slices.Max(t)-slices.Min(t))/median(t))
	}
	if scatter < restless {
		return false, nil
	}
	s.note(Lengthened, "Intervals of %v scattered by up to %.0f %%: all is measured again, in intervals of %v.", s.target, 100*scatter, longer*s.target)
	s.observe(Restarted{})
	s.again, s.target = s.done, longer*s.target
	if e, ok := s.bench.(Enlarger); ok {
		e.Enlarge(longer)
	}
	base, ceiling := s.baseline(), s.ceiling()
	s.series = []*series{{probe: base.probe, steps: longer * base.steps}, {probe: ceiling.probe}}
	return true, s.topUp(ctx, s.enough(1), s.baseline(), s.ceiling())
}
