package predict

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
)

// rounds returns six intervals at a rate, in which each stage that runs took factor times what it does in testPlan, with so many
// cores busy.
func rounds(rate, factor, cpu, others float64, p engine.Probe) []engine.Interval {
	var list []engine.Interval
	for i := range 6 {
		_, iv := testPlan()
		iv.Elapsed = time.Duration(100 / rate * (1 + 1e-4*float64(i)) * 1e9)
		iv.CPU, iv.Others = cpu, others
		for k := range iv.Stages {
			if p.From <= k && k < p.To {
				iv.Stages[k].Busy, iv.Stages[k].Items = 0, 0
			}
			iv.Stages[k].Busy = time.Duration(factor * float64(iv.Stages[k].Busy))
		}
		list = append(list, iv)
	}
	return list
}

// TestWitness predicts the probe that makes the first three stages free, which leaves 4 ms a step to the pool: 250 steps/s.
func TestWitness(t *testing.T) {
	const base = 1000. / 6
	free := engine.Probe{To: 3}
	for _, tt := range []struct {
		name     string
		cores    float64
		baseline []engine.Interval
		probe    []engine.Interval
		want     string
	}{
		{"as foretold", 8, rounds(base, 1, 2, 0, engine.Probe{}), rounds(249, 1, 2, 0, free), ""},
		{"near", 8, rounds(base, 1, 2, 0, engine.Probe{}), rounds(230, 1, 2, 0, free), ""},
		{"cores", 8, rounds(base, 1, 2, 0, engine.Probe{}), rounds(125, 2, 7.9, 0, free),
			"With the cache after prepare.c the step rate is 125/s, where the accounts of the baseline foretell 250/s. The cores explain it: they are 99 % busy in this probe."},
		{"memory", 8, rounds(base, 1, 4, 0, engine.Probe{}), rounds(125, 2, 4.2, 0, free),
			"With the cache after prepare.c the step rate is 125/s, where the accounts of the baseline foretell 250/s. Memory or caches may explain it: prepare.e takes 2.00 times as long as in the baseline, and a step 2.18 times the CPU time foretold, while cores are free."},
		{"other processes", 8, rounds(base, 1, 4, 0, engine.Probe{}), rounds(125, 2, 1.95, 3.5, free),
			"With the cache after prepare.c the step rate is 125/s, where the accounts of the baseline foretell 250/s. Other processes may explain it, which kept 3.5 cores busy in the slower of the two: prepare.e takes 2.00 times as long as in the baseline, for no other CPU time."},
		{"the replay", 8, rounds(base, 1, 2, 0, engine.Probe{}), rounds(125, 1, 2, 0, free),
			"With the cache after prepare.c the step rate is 125/s, where the accounts of the baseline foretell 250/s. No stage's work explains it: it is something that isn't accounted for, such as replaying the cache or copying to the device."},
		{"unknown CPU", 0, rounds(base, 1, -1, -1, engine.Probe{}), rounds(125, 2, -1, -1, free),
			"With the cache after prepare.c the step rate is 125/s, where the accounts of the baseline foretell 250/s. prepare.e takes 2.00 times as long as in the baseline. How much CPU time was used isn't known, so it may compete for cores, for memory, or with other processes."},
		{"no accounts", 8, []engine.Interval{{Steps: 1, Elapsed: 1}}, rounds(125, 2, -1, -1, free), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan, _ := testPlan()
			estimate := func(list []engine.Interval) bisect.Estimate {
				m := median(list, engine.Interval.Rate)
				return bisect.Estimate{Median: m, Low: 0.99 * m, High: 1.01 * m}
			}
			r := &bisect.Report{Confidence: 0.95, Probes: []bisect.ProbeResult{
				{Rate: estimate(tt.baseline), Rounds: tt.baseline}, {Probe: free, Rate: estimate(tt.probe), Rounds: tt.probe},
			}}
			var want []bisect.Note
			if tt.want != "" {
				want = []bisect.Note{{Code: Disagrees, Text: tt.want}}
			}
			if d := cmp.Diff(want, Witness(plan, r, tt.cores)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			list := Compare(r)
			if tt.name == "no accounts" {
				if len(list) > 0 {
					t.Errorf("%+v", list)
				}
				return
			}
			i := slices.IndexFunc(list, func(c Comparison) bool { return c.Probe == free })
			if len(list) != 1 || i != 0 || math.Abs(list[0].Predicted.Median-250) > 1 {
				t.Errorf("%+v", list)
			}
		})
	}
}
