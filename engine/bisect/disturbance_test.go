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
	// clocks makes the clock fall steadily, over 30 intervals.
	clocks := func(from, to float64) func(*engine.Interval) {
		n := 0.0
		return func(iv *engine.Interval) {
			iv.Frequency = from + (to-from)*min(n/30, 1)
			n++
		}
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
		{"the clock falls", sim{cost: []float64{1, 10, 1}, step: 4, disturb: clocks(3e9, 2.5e9)}, "prepare.s1", []string{SlowedClock}},
		{"the clock falls a little", sim{cost: []float64{1, 10, 1}, step: 4, disturb: clocks(3e9, 2.8e9)}, "prepare.s1", nil},
		{"the clock rises", sim{cost: []float64{1, 10, 1}, step: 4, disturb: clocks(2e9, 3e9)}, "prepare.s1", nil},
		{"heat", sim{cost: []float64{1, 10, 1}, step: 4, disturb: func(iv *engine.Interval) { iv.Overheats = 1 }}, "prepare.s1", []string{Overheated}},
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
		iv.Others, iv.Throttled, iv.Swapped, iv.Overheats = 0.6, 10*time.Millisecond, 1<<20, 2
	}}
	var got []string
	for _, n := range m.search(t, func(p *engine.Plan) { p.Experiment.Bisect.Steps = 10 }).Notes {
		got = append(got, n.Text)
	}
	want := []string{
		"The CPU quota of the control group held the pipeline up: its threads waited 460ms for it in 4.2s of measuring. What is measured is the quota's limit as much as the pipeline's.",
		"46.0 MiB went to and from swap while it was measured: memory is short, and times may be the disk's. Use smaller batches or caches, or free memory.",
		"The CPU got too hot and slowed itself down, 92 times while it was measured. Measure on a machine that is cooled.",
		"Other processes kept 0.6 of the 2 cores busy while it was measured.",
		"On a quiet machine train.step may be the slowest instead of prepare.s1.",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("notes (-want +got):\n%s", d)
	}
}

// TestInCPUCache tells of a cached set that sits in the CPU's cache where memory would be slower, and that matters.
func TestInCPUCache(t *testing.T) {
	for _, tt := range []struct {
		name   string
		step   float64 // milliseconds
		kept   int64
		share  float64
		cached bool // in the CPU's cache of 32 MiB
		want   string
	}{
		{"large elements, a fast step", 1, 20 << 20, 0.1, true, "The cache after prepare.s1, 20.0 MiB, fits into the CPU's last-level cache of 32.0 MiB, where the whole data set would take 200 MiB: replaying it may be faster than memory is. Set cache_batches to more."},
		{"a slow step", 100, 20 << 20, 0.1, true, ""},
		{"the whole data set fits too", 1, 20 << 20, 0.8, true, ""},
		{"larger", 1, 40 << 20, 0.1, true, ""},
		{"of an unknown share", 1, 20 << 20, 0, true, ""},
		{"a CPU that isn't known", 1, 20 << 20, 0.1, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &sim{cost: []float64{1, 2 * tt.step}, step: tt.step}
			p := m.plan()
			p.Items = 1000
			options := Options{Cached: func(boundary int) (int64, float64) {
				if boundary < len(m.cost) {
					return 0, 0
				}
				return tt.kept, tt.share
			}}
			if tt.cached {
				options.CPUCache = 32 << 20
			}
			r, err := Search(t.Context(), p, m, options)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, n := range r.Notes {
				if n.Code == InCPUCache {
					got += n.Text
				}
			}
			if got != tt.want {
				t.Errorf("note %q, want %q", got, tt.want)
			}
		})
	}
}
