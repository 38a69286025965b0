package bisect

import (
	"fmt"

	"github.com/pipectl/pipectl/engine"
)

// PageCache says from what kind of page cache the data set was read.
type PageCache string

// The kinds of page cache.
const (
	Cold PageCache = "cold" // the data set was dropped from it before each interval
	Warm PageCache = "warm" // it was left as it was
)

const (
	mostStay  = 0.5 // of the pages may stay for a run to count as cold
	mostReads = 2   // times that an interval may read the data set for that: less than half is then read from the cache
	warming   = 0.1 // of the pages come during a session for its page cache to have been warming up
)

// labelPageCache says in the report how the data set was read, and how far that is true.
func (s *session) labelPageCache() {
	var shares []float64 // of the pages that were in the cache as intervals began
	for _, x := range s.series {
		for _, iv := range x.intervals {
			if iv.Resident >= 0 && !x.probe.Suffix() {
				shares = append(shares, iv.Resident)
			}
		}
	}
	if !s.cfg.Cold {
		if len(shares) > 0 {
			s.report.PageCache = Warm
		}
		return
	}
	if len(shares) == 0 {
		s.note(ColdCache, "The data set was dropped from the page cache, but the kernel doesn't tell how much of it stayed: it tells only who owns the files, or may write to them. So the run doesn't count as cold.")
		return
	}
	stayed := median(shares)
	reads := 0.0
	if n := s.plan.Items; n > 0 {
		reads = median(each(s.baseline(), func(iv engine.Interval) float64 { return float64(iv.Samples) })) / float64(n)
	}
	again := ""
	if reads > 1 {
		again = fmt.Sprintf(" An interval reads it %.1f times, and only the first time from the disk.", reads)
	}
	text := fmt.Sprintf("The data set was dropped from the page cache before each interval that reads it; %.0f %% of its pages stayed there.%s", 100*stayed, again)
	switch {
	case stayed > mostStay:
		text += " The run doesn't count as cold: the files lie in memory, are open in another process, or wait to be written to the disk."
	case reads > mostReads:
		text += " The run doesn't count as cold: use fewer steps, or more data."
	default:
		s.report.PageCache = Cold
	}
	s.note(ColdCache, "%s", text)
}

// warmed notes that the pipeline was slower while the page cache didn't hold yet what it held in the end. It reports whether it did.
func (s *session) warmed() bool {
	base := s.baseline()
	last := base.intervals[len(base.intervals)-1].Resident
	var before, after []float64 // seconds a step
	least := 1.0
	for _, iv := range base.intervals {
		switch {
		case s.cfg.Cold || iv.Resident < 0:
			return false
		case iv.Resident < last-warming:
			before, least = append(before, seconds(iv)), min(least, iv.Resident)
		default:
			after = append(after, seconds(iv))
		}
	}
	if len(before) == 0 || median(before) < (1+s.cfg.MinEffect)*median(after) {
		return false
	}
	s.note(CacheWarming, "The page cache was warming up: it held %.0f %% of the data set's pages at first and %.0f %% in the end, and the %d of %d intervals of the pipeline as it is that began with clearly less were %.0f %% slower than the others. The rates are neither cold nor warm ones: measure again, or with cold = true.",
		100*least, 100*last, len(before), len(base.intervals), 100*(median(before)/median(after)-1))
	return true
}
