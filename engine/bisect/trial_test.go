package bisect_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
)

// TestTrial gives a trial rounds until it is judged, of a pipeline that takes 100 ms a step and a changed one.
func TestTrial(t *testing.T) {
	for _, tt := range []struct {
		name   string
		times  []float64 // milliseconds a step of the changed one, again and again
		rivals int
		want   bisect.Finding
		rounds int
	}{
		{"much faster", []float64{80, 81, 79}, 1, bisect.Faster, 6},
		{"much faster, one of many", []float64{80, 81, 79}, 20, bisect.Faster, 12},
		{"as fast", []float64{100, 101, 99}, 1, bisect.Slight, 6},
		{"slower", []float64{130}, 1, bisect.Slight, 6},
		{"faster by less than min_effect", []float64{97, 97.1, 96.9}, 1, bisect.Slight, 6},
		{"faster by about min_effect", []float64{94, 96.5}, 1, bisect.Unshown, 18},
		{"noisy", []float64{60, 150, 85, 120}, 1, bisect.Unshown, 18},
	} {
		t.Run(tt.name, func(t *testing.T) {
			trial := bisect.NewTrial(engine.Bisect{Rounds: 6, Confidence: 0.95, MinEffect: 0.05}, tt.rivals)
			of := func(ms float64) engine.Interval {
				return engine.Interval{Steps: 10, Elapsed: time.Duration(10 * ms * 1e6)}
			}
			var ratios []float64
			for n := 0; trial.Judge() == bisect.Open && n < 50; n++ {
				ms := tt.times[n%len(tt.times)]
				ratios = append(ratios, 100/ms)
				trial.Round(of(100), of(ms))
			}
			if got := trial.Judge(); got != tt.want || trial.Rounds() != tt.rounds {
				t.Errorf("finding %d after %d rounds, want %d after %d", got, trial.Rounds(), tt.want, tt.rounds)
			}
			e := trial.Speedup()
			slices.Sort(ratios)
			middle := (ratios[(len(ratios)-1)/2] + ratios[len(ratios)/2]) / 2
			if math.Abs(e.Median-middle) > 1e-9 || e.Low > e.Median || e.High < e.Median {
				t.Errorf("speed-up %+v, want %g", e, middle)
			}
			from, to := trial.Rates()
			if from.Median != 10 || to.Low > to.Median {
				t.Errorf("rates %+v and %+v", from, to)
			}
		})
	}
}
