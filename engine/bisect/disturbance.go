package bisect

import (
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/stages"
)

const (
	// outsideLoad is the share of the cores from which on what others use of them is told: the kernel counts in ticks of 10 ms,
	// and less than this may be its rounding.
	outsideLoad = 0.05
	// crowded is the share of busy cores from which on work has to wait for a core now and then.
	crowded = 0.8
	// throttled is the share of the time from which on waiting for the CPU quota is told.
	throttled = 0.01
	// slowed is the share of its frequency at first below which the CPU's clock is said to have fallen.
	slowed = 0.9
	// memoryRate is about how many bytes a second one core reads from memory.
	memoryRate = 10e9
	// swapped is how many bytes to and from swap are told.
	swapped = 1 << 20
)

// disturbances notes what disturbed the measurements, and withdraws a verdict that might be another one on a quiet machine.
func (s *session) disturbances() {
	var elapsed, waited time.Duration
	var others, used, counted float64 // cores × seconds
	var swap int64
	for _, x := range s.series {
		for _, iv := range x.intervals {
			elapsed += iv.Elapsed
			waited += max(iv.Throttled, 0)
			swap += max(iv.Swapped, 0)
			if iv.Others >= 0 && iv.CPU >= 0 {
				others += iv.Others * iv.Elapsed.Seconds()
				used += iv.CPU * iv.Elapsed.Seconds()
				counted += iv.Elapsed.Seconds()
			}
		}
	}
	if share := waited.Seconds() / max(elapsed.Seconds(), 1e-9); share >= throttled {
		s.note(CPUQuota, "The CPU quota of the control group held the pipeline up: its threads waited %v for it in %v of measuring. What is measured is the quota's limit as much as the pipeline's.",
			waited.Round(time.Millisecond), elapsed.Round(time.Millisecond))
	}
	if swap >= swapped {
		s.note(Swapping, "%s went to and from swap while it was measured: memory is short, and times may be the disk's. Use smaller batches or caches, or free memory.",
			stages.Bytes(swap))
	}
	s.slowedClock()
	s.inCPUCache()
	cores := float64(s.options.Cores)
	if cores <= 0 || counted == 0 || others/counted < outsideLoad*cores {
		return
	}
	others, used = others/counted, used/counted
	s.note(OutsideLoad, "Other processes kept %.1f of the %d cores busy while it was measured.", others, s.options.Cores)
	if others+used < crowded*cores {
		return // there was a core for everyone
	}
	// What computes got at least a share of what it gets on a quiet machine; what waits was not slower. So each time may be shorter
	// there, by as much as what it computed was slowed down, and none is longer.
	share := max(1-others/cores, 0.1)
	share = max(share, 1-(1/share-1)*used)
	if other := s.otherwise(share); other != "" {
		s.note(Disturbed, "On a quiet machine %s may be the slowest instead of %s.", other, s.report.Bottleneck)
		s.report.Verdict, s.report.Bottleneck = Undecided, ""
	}
}

// slowedClock notes that the CPU's clock fell during the session, as the baseline shows, which is measured all through it; and that
// it was slowed down for its heat.
func (s *session) slowedClock() {
	var clock []float64
	var overheats int64
	for _, iv := range s.baseline().intervals {
		if iv.Frequency > 0 {
			clock = append(clock, iv.Frequency)
		}
	}
	for _, x := range s.series {
		for _, iv := range x.intervals {
			overheats += max(iv.Overheats, 0)
		}
	}
	if n := len(clock); n > 1 {
		if from, to := median(clock[:n/2]), median(clock[n-n/2:]); to < slowed*from {
			s.note(SlowedClock, "The CPU's clock fell from %.2f to %.2f GHz over the session: it got warm, or its power is limited. Rates are lower than in a short run.", from/1e9, to/1e9)
		}
	}
	if overheats > 0 {
		s.note(Overheated, "The CPU got too hot and slowed itself down, %d times while it was measured. Measure on a machine that is cooled.", overheats)
	}
}

// inCPUCache notes checkpoints whose cache sits in the CPU's own, though the whole data set wouldn't, where reading it from memory
// would take long enough to be seen.
func (s *session) inCPUCache() {
	if s.options.Cached == nil || s.options.CPUCache <= 0 {
		return
	}
	for _, x := range s.suffixes()[1:] {
		kept, share := s.options.Cached(x.probe.To)
		if kept == 0 || kept > s.options.CPUCache || share <= 0 || float64(kept)/share <= float64(s.options.CPUCache) {
			continue
		}
		samples := median(each(x, func(iv engine.Interval) float64 { return float64(iv.Samples) / float64(iv.Steps) }))
		read := float64(kept) / (share * float64(max(s.plan.Items, 1))) * samples / memoryRate // seconds a step
		if read < resolution*s.cfg.MinEffect*median(x.times()) {
			continue
		}
		s.note(InCPUCache, "The cache after %s, %s, fits into the CPU's last-level cache of %s, where the whole data set would take %s: replaying it may be faster than memory is. Set cache_batches to more.",
			s.address(x.probe.To-1), stages.Bytes(kept), stages.Bytes(s.options.CPUCache), stages.Bytes(float64(kept)/share))
		return
	}
}

// otherwise returns the stage that may be the slowest where the bottleneck's work takes only a share of the time that it was
// measured to take; "" where the verdict stays the same.
func (s *session) otherwise(share float64) string {
	load := s.load(s.baseline().intervals)
	named := -1
	for i, st := range s.plan.Experiment.Stages {
		if st.Address == s.report.Bottleneck {
			named = i
		}
	}
	if named < 0 {
		return ""
	}
	if named != s.train() && share*s.baseTime() <= median(s.ceiling().times()) {
		return s.address(s.train())
	}
	for i := range load {
		if i == s.train() {
			continue // the step alone was measured, which tells more of it than its work beside the stages
		}
		of := s.utilisation
		if s.segmentOf(i) == s.segmentOf(named) {
			of = func(load []float64, stage int) float64 { return load[stage] }
		}
		if i != named && share*of(load, named) <= of(load, i) {
			return s.address(i)
		}
	}
	return ""
}
