package bisect

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine"
)

var numbers = regexp.MustCompile(`\d[\d.]*(e-\d+)?`)

// TestPageCache labels runs, and says how much of the data set stayed in the page cache, or that it was still filling up.
func TestPageCache(t *testing.T) {
	// fills has the page cache filled by so many intervals that read the data set.
	fills := func(from float64, intervals int) func(*engine.Interval) {
		n := 0
		return func(iv *engine.Interval) {
			iv.Resident = min(from+(1-from)*float64(n)/float64(max(intervals, 1)), 1)
			n++
		}
	}
	stays := func(share float64) func(*engine.Interval) {
		return func(iv *engine.Interval) { iv.Resident = share }
	}
	// slow makes the first intervals of the session take longer, as reading from the disk does.
	slow := func(by float64, intervals int) func(int) float64 {
		return func(i int) float64 { return 1 + by*max(0, 1-float64(i)/float64(intervals)) }
	}
	dropped := "The data set was dropped from the page cache before each interval that reads it; "
	for _, tt := range []struct {
		name  string
		m     sim
		cold  bool
		items int
		label PageCache
		notes []string
	}{
		{"no files", sim{}, false, 0, "", nil},
		{"warm", sim{disturb: stays(1)}, false, 0, Warm, nil},
		{"warm, the data is larger than the memory", sim{disturb: stays(0.3)}, false, 0, Warm, nil},
		{"warming up, unnoticed", sim{disturb: fills(0.2, 10)}, false, 0, Warm, nil},
		{"warming up", sim{disturb: fills(0.2, 10), drift: slow(0.5, 10)}, false, 0, Warm, []string{
			"The page cache was warming up: it held N % of the data set's pages at first and N % in the end, and the N of N intervals of the pipeline as it is that began with clearly less were N % slower than the others. The rates are neither cold nor warm ones: measure again, or with cold = true."}},
		{"cold", sim{disturb: stays(0.03)}, true, 100000, Cold, []string{dropped + "3 % of its pages stayed there."}},
		{"cold, much stays", sim{disturb: stays(0.6)}, true, 0, "", []string{
			dropped + "60 % of its pages stayed there. The run doesn't count as cold: the files lie in memory, are open in another process, or wait to be written to the disk."}},
		{"cold, read again", sim{disturb: stays(0)}, true, 8, Cold, []string{
			dropped + "0 % of its pages stayed there. An interval reads it 1.2 times, and only the first time from the disk."}},
		{"cold, read over and over", sim{disturb: stays(0)}, true, 2, "", []string{
			dropped + "0 % of its pages stayed there. An interval reads it 5.0 times, and only the first time from the disk. The run doesn't count as cold: use fewer steps, or more data."}},
		{"cold, hidden", sim{}, true, 0, "", []string{
			"The data set was dropped from the page cache, but the kernel doesn't tell how much of it stayed: it tells only who owns the files, or may write to them. So the run doesn't count as cold."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.m.cost, tt.m.step, tt.m.cores = []float64{1, 10, 1}, 4, 2
			r := tt.m.search(t, func(p *engine.Plan) { p.Experiment.Bisect.Cold, p.Items = tt.cold, tt.items })
			var notes []string
			for _, n := range r.Notes {
				if n.Code == CacheWarming {
					n.Text = numbers.ReplaceAllString(n.Text, "N") // they depend on how many intervals the search takes
				}
				notes = append(notes, n.Text)
			}
			if r.PageCache != tt.label || r.Bottleneck != "prepare.s1" {
				t.Errorf("%q, %s", r.PageCache, r.Bottleneck)
			}
			if d := cmp.Diff(tt.notes, notes); d != "" {
				t.Errorf("notes (-want +got):\n%s", d)
			}
		})
	}
}

// TestDrift tells of a trend over the session that is larger than min_effect, and of none that is smaller or that noise makes.
func TestDrift(t *testing.T) {
	over := func(change float64) func(int) float64 {
		return func(i int) float64 { return 1 + change*min(float64(i)/40, 1) }
	}
	for _, tt := range []struct {
		name string
		m    sim
		want string
	}{
		{"none", sim{}, ""},
		{"noise", sim{noise: 0.1}, ""},
		{"a little slower", sim{drift: over(0.03)}, ""},
		{"slower", sim{drift: over(0.3)}, "Over the session the pipeline as it is got N % slower (Mann-Kendall test, p = N): the machine's clock or load, since the step alone got N % slower too. Probes are compared round by round, which this touches alike; the rates by themselves are those of its middle."},
		{"faster", sim{drift: over(-0.3)}, "Over the session the pipeline as it is got N % faster (Mann-Kendall test, p = N): the machine's clock or load, since the step alone got N % faster too. Probes are compared round by round, which this touches alike; the rates by themselves are those of its middle."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.m.cost, tt.m.step, tt.m.cores, tt.m.rng = []float64{1, 10, 1}, 4, 2, rand.New(rand.NewPCG(7, 1))
			r := tt.m.search(t, nil)
			got := ""
			if i := slices.IndexFunc(r.Notes, func(n Note) bool { return n.Code == Drift }); i >= 0 {
				got = numbers.ReplaceAllString(r.Notes[i].Text, "N")
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("note (-want +got):\n%s", d)
			}
		})
	}
}
