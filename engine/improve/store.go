package improve

import (
	"slices"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/stages"
)

// Store is what storing a stage's output for good would take and give. It is computed from measured rates, and not tried.
type Store struct {
	Address string        // of the stage whose output is stored
	Bytes   int64         // on disk, of the whole data set; 0 if unknown
	Epoch   time.Duration // that an epoch takes now
	Stored  time.Duration // that it takes when that output comes from memory
	// Fill is how long it takes at most to make the whole output once, at the pipeline's own rate: writing it is not in it.
	Fill time.Duration
	// BreakEven is after how many epochs the time saved is worth the time to fill it.
	BreakEven float64
	// Read is how many bytes a second the disk has to deliver, for an epoch to be as fast as from memory; 0 if unknown.
	Read float64
}

// storing computes what storing the bottleneck's output is worth, where that is the same in every epoch.
func storing(v *Variant, r *bisect.Report) *Store {
	plan := v.Plan
	list := plan.Experiment.Stages
	named := slices.IndexFunc(list, func(s engine.Stage) bool { return s.Address == r.Bottleneck })
	if r.Verdict != bisect.InputBound || r.Baseline == nil || named < 0 || list[named].Block != stages.Prepare || list[named].Device || plan.Epoch == 0 || len(plan.Experiment.Loads()) > 1 ||
		slices.ContainsFunc(list[:named], func(s engine.Stage) bool { return s.Block != stages.Load && s.Block != stages.Prepare }) {
		return nil
	}
	at := slices.IndexFunc(r.Probes, func(p bisect.ProbeResult) bool { return p.Probe == engine.Probe{To: named + 1} })
	if at < 0 || r.Probes[at].Rate.Median*(1-v.Experiment.Bisect.MinEffect) < r.Baseline.Median {
		return nil
	}
	epoch := func(rate float64) time.Duration {
		return time.Duration(float64(plan.Epoch) / rate * float64(time.Second)).Round(time.Microsecond)
	}
	s := &Store{Address: list[named].Address, Epoch: epoch(r.Baseline.Median), Stored: epoch(r.Probes[at].Rate.Median)}
	s.Fill = s.Epoch
	s.BreakEven = s.Fill.Seconds() / (s.Epoch - s.Stored).Seconds()
	each := float64(plan.Types[named+1].Size())
	if each == 0 && named+1 < len(v.Sizes) {
		each = v.Sizes[named+1]
	}
	if each > 0 {
		s.Bytes = int64(each * float64(plan.Items))
		s.Read = float64(s.Bytes) / s.Stored.Seconds()
	}
	return s
}
