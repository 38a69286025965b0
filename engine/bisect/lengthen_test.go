package bisect

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipectl/pipectl/engine"
)

// gusty is a Bench whose intervals scatter, the less the longer they are.
type gusty struct {
	sim
	steps    map[engine.Probe][]int // of the intervals
	enlarged []int
}

func (g *gusty) Measure(ctx context.Context, p engine.Probe, warmup, steps int) (engine.Interval, error) {
	g.steps[p] = append(g.steps[p], steps)
	iv, err := g.sim.Measure(ctx, p, warmup, steps)
	iv.Elapsed = time.Duration(float64(iv.Elapsed) * math.Exp(2.5/float64(steps)*g.rng.NormFloat64()))
	return iv, err
}

func (g *gusty) Enlarge(times int) { g.enlarged = append(g.enlarged, times) }

// TestLengthen has intervals scatter so much that the stage with the largest gain can't be told apart from the next: where they may be
// made longer, it can.
func TestLengthen(t *testing.T) {
	for _, tt := range []struct {
		name     string
		edit     func(*engine.Bisect)
		want     string
		enlarged []int
	}{
		{"longer", func(b *engine.Bisect) {}, "input_bound prepare.s2, 8 probes, next prepare.s1, notes lengthened, advice cheaper_operator keep_checkpoint", []int{3}},
		{"a length is given", func(b *engine.Bisect) { b.Steps = 8 }, "undecided, 6 probes, notes not_separated", nil},
		{"no time for it", func(b *engine.Bisect) { b.Budget = 40 * time.Second }, "undecided, 6 probes, notes budget_used not_separated", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &gusty{sim: sim{cost: []float64{5, 30, 40, 5}, step: 5, sleeps: true, rng: rand.New(rand.NewPCG(1, 2))}, steps: map[engine.Probe][]int{}}
				p := g.plan()
				p.Experiment.Bisect.Steps = 0
				tt.edit(&p.Experiment.Bisect)
				restarts := 0
				r, err := Search(t.Context(), p, g, Options{Observe: func(e Event) {
					if _, ok := e.(Restarted); ok {
						restarts++
					}
				}})
				if err != nil {
					t.Fatal(err)
				}
				if got := summary(r, &g.sim); got != tt.want || !slices.Equal(g.enlarged, tt.enlarged) || restarts != len(tt.enlarged) {
					t.Errorf("\n got %s, enlarged %v, %d restarts\nwant %s, enlarged %v", got, g.enlarged, restarts, tt.want, tt.enlarged)
				}
				for _, x := range append(r.Probes, r.Isolated...) {
					if took := x.Rounds[0].Elapsed; restarts > 0 && took < 2*Target {
						t.Errorf("%v: an interval of %v is still there", x.Probe, took)
					}
				}
			})
		})
	}
}

// TestLengthenQuiet leaves intervals as they are where what is undecided isn't for want of their length.
func TestLengthenQuiet(t *testing.T) {
	m := &sim{cost: []float64{1, 9, 2, 9, 1}, fused: []bool{false, true, true, true, true}, step: 2}
	r := m.search(t, func(p *engine.Plan) { p.Experiment.Bisect.Steps = 0 })
	if got, want := summary(r, m), "undecided, 8 probes, notes not_separated"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}
