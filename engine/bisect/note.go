package bisect

import (
	"fmt"
	"strings"
)

// The codes of a report's notes.
const (
	BudgetUsed       = "budget_used"       // the budget ended the session
	CPUQuota         = "cpu_quota"         // the control group's quota held the pipeline up
	CacheWarming     = "cache_warming"     // the page cache didn't hold the data set yet
	ColdCache        = "cold_cache"        // how much of the data set stayed in the page cache
	Controlled       = "control"           // what the control shows
	SlowedClock      = "slowed_clock"      // the CPU's clock fell
	Overheated       = "overheated"        // the CPU was slowed down for its heat
	Drift            = "drift"             // a probe got faster or slower over the session
	InCPUCache       = "in_cpu_cache"      // a cached set sits in the CPU's cache
	Disturbed        = "disturbed"         // other processes' load may have made the verdict another one
	OutsideLoad      = "outside_load"      // other processes kept cores busy
	Swapping         = "swapping"          // memory was short
	CacheLimit       = "cache_limit"       // a boundary's cache can't hold one batch
	FewRounds        = "few_rounds"        // too few rounds for an interval of the wanted confidence
	Interference     = "interference"      // the step gets faster without the stages although it never waited for them
	Lengthened       = "lengthened"        // intervals scattered, and were made longer
	LoadBlocks       = "load_blocks"       // the bottleneck is that of several load blocks which took longest
	MergedStages     = "merged_stages"     // the bottleneck is one of several stages with no probe point between them
	NearMinEffect    = "near_min_effect"   // the gain of everything is too near to min_effect
	NoStageAlone     = "no_stage_alone"    // no stage by itself is worth min_effect
	NotMonotone      = "not_monotone"      // a checkpoint is slower than an earlier one
	NotSeparated     = "not_separated"     // several stages may be worth most
	WitnessDisagrees = "witness_disagrees" // the accounting names another stage than the verdict
)

func (s *session) note(code, format string, args ...any) {
	n := Note{Code: code, Text: fmt.Sprintf(format, args...)}
	s.report.Notes = append(s.report.Notes, n)
	s.observe(Noted{n})
}

// list joins names as a sentence does: "a, b or c".
func list(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
