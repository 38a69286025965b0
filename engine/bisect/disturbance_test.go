package bisect

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine"
)

// TestDisturbances sees what a report says where others use the machine: it keeps a verdict that holds on a quiet machine too, and
// withdraws one that need not.
func TestDisturbances(t *testing.T) {
	others := func(cores float64) func(*engine.Interval) {
		return func(iv *engine.Interval) { iv.Others = cores }
	}
	for _, tt := range []struct {
		name  string
		m     sim
		want  string // bottleneck
		codes []string
	}{
		{"quiet", sim{cost: []float64{1, 10, 1}, step: 4, used: 1.9, disturb: others(0.05)}, "prepare.s1", nil},
		{"loaded, clear", sim{cost: []float64{1, 10, 1}, step: 4, used: 1.4, disturb: others(0.6)}, "prepare.s1", []string{OutsideLoad}},
		{"loaded, the step is near", sim{cost: []float64{1, 10, 1}, step: 8, used: 1.4, disturb: others(0.6)}, "", []string{OutsideLoad, Disturbed}},
		{"loaded, another stage is near", sim{cost: []float64{1, 10, 8}, step: 4, used: 1.4, disturb: others(0.6)}, "", []string{OutsideLoad, Disturbed}},
		{"loaded, a core is free", sim{cost: []float64{1, 10, 8}, step: 4, used: 0.5, disturb: others(0.6)}, "prepare.s1", []string{OutsideLoad}},
		{"loaded, but it hardly computes", sim{cost: []float64{1, 10, 1}, step: 8, used: 0.02, disturb: others(1.7)}, "prepare.s1", []string{OutsideLoad}},
		{"step-bound, loaded", sim{cost: []float64{1, 4, 1}, step: 8, used: 1.4, disturb: others(0.6)}, "train.step", []string{OutsideLoad}},
		{"step-bound, loaded, a stage is near", sim{cost: []float64{1, 7, 1}, step: 8, used: 1.4, disturb: others(0.6)}, "", []string{OutsideLoad, Disturbed}},
		{"unknown", sim{cost: []float64{1, 10, 8}, step: 4, disturb: others(2)}, "prepare.s1", nil},
		{"quota", sim{cost: []float64{1, 10, 1}, step: 4, disturb: func(iv *engine.Interval) { iv.Throttled = iv.Elapsed / 20 }}, "prepare.s1", []string{CPUQuota}},
		{"swap", sim{cost: []float64{1, 10, 1}, step: 4, disturb: func(iv *engine.Interval) { iv.Swapped = 1 << 19 }}, "prepare.s1", []string{Swapping}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.m.cores = 2
			r := tt.m.search(t, nil)
			var codes []string
			for _, n := range r.Notes {
				codes = append(codes, n.Code)
			}
			if r.Bottleneck != tt.want || (r.Verdict == Undecided) != (tt.want == "") {
				t.Errorf("%s %q, want %q", r.Verdict, r.Bottleneck, tt.want)
			}
			if d := cmp.Diff(tt.codes, codes); d != "" {
				t.Errorf("notes (-want +got):\n%s", d)
			}
		})
	}
}

// TestDisturbanceWords checks the words of the notes.
func TestDisturbanceWords(t *testing.T) {
	m := &sim{cost: []float64{1, 10, 1}, step: 8, cores: 2, used: 1.4, disturb: func(iv *engine.Interval) {
		iv.Others, iv.Throttled, iv.Swapped = 0.6, 10*time.Millisecond, 1<<20
	}}
	var got []string
	for _, n := range m.search(t, func(p *engine.Plan) { p.Experiment.Bisect.Steps = 10 }).Notes {
		got = append(got, n.Text)
	}
	want := []string{
		"The CPU quota of the control group held the pipeline up: its threads waited 460ms for it in 4.2s of measuring. What is measured is the quota's limit as much as the pipeline's.",
		"46MiB went to and from swap while it was measured: memory is short, and times may be the disk's. Use smaller batches or caches, or free memory.",
		"Other processes kept 0.6 of the 2 cores busy while it was measured.",
		"On a quiet machine train.step may be the slowest instead of prepare.s1.",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("notes (-want +got):\n%s", d)
	}
}
