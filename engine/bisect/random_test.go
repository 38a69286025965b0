package bisect

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pipectl/pipectl/engine"
)

// TestRandomChains searches 1,000 random chains with one planted bottleneck, without noise: the right name every time, by both
// strategies, in about log2(n) + 3 probes where stages run side by side. Where they share workers or cores, each may cost
// almost as much as the planted one, and proving that it doesn't takes a probe.
func TestRandomChains(t *testing.T) {
	for _, tt := range []struct {
		kind         string
		mean, beyond float64 // probes at most: beyond log2(n) + 3 on average, and beyond n + 3 ever
	}{
		{"pools", 0.2, 1}, {"fused", 2.5, 3}, {"shared", 2.5, 4}, {"mixed", 1.5, 6},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			var over float64
			searched := 0
			for range 250 {
				m := planted(rng, tt.kind)
				ladder := *m
				want := m.answers(0.01)
				r := m.search(t, nil)
				if !slices.Contains(want, r.Bottleneck) {
					t.Errorf("got %q, want one of %q: %+v; notes %v", r.Bottleneck, want, m, r.Notes)
				}
				l := ladder.search(t, func(p *engine.Plan) { p.Experiment.Bisect.Strategy = Ladder })
				if l.Bottleneck != r.Bottleneck {
					t.Errorf("ladder got %q, bisect %q: %+v", l.Bottleneck, r.Bottleneck, m)
				}
				if r.Verdict != InputBound {
					continue
				}
				searched++
				n := float64(len(m.cost))
				over += float64(len(m.probes)) - math.Log2(n) - 3
				if len(m.probes) > len(m.cost)+3+int(tt.beyond) {
					t.Errorf("%d probes: %+v", len(m.probes), m)
				}
			}
			if mean := over / float64(searched); mean > tt.mean {
				t.Errorf("log2(n) + 3 + %.2f probes on average, want at most %.2f more", mean, tt.mean)
			}
		})
	}
}

// TestNoise searches random chains on noisy machines: never a wrong name, and the right one in at least 19 of 20 where
// the noise is what a quiet machine has. Ones that are slow for seconds at a time leave more undecided.
func TestNoise(t *testing.T) {
	for _, tt := range []struct {
		name     string
		noise    float64
		slowdown float64 // of about half the time, for 3 to 10 intervals at once
		right    float64 // share that must be named
	}{
		{"2 %", 0.02, 0, 0.95}, {"5 %", 0.05, 0, 0.95}, {"10 %", 0.1, 0, 0.85}, {"slow spells", 0.03, 1, 0.6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 4))
			named, certain := 0, 0
			for i := range 400 {
				m := planted(rng, []string{"pools", "fused", "shared", "mixed"}[i%4])
				m.noise, m.outliers = tt.noise, 0.02
				if tt.slowdown > 0 {
					m.drift = spells(rng, tt.slowdown)
				}
				want := m.answers(0.01)
				r := m.search(t, nil)
				if r.Bottleneck != "" && !slices.Contains(want, r.Bottleneck) {
					t.Errorf("got %q, want one of %q: %+v; notes %v", r.Bottleneck, want, m, r.Notes)
				}
				if len(want) == 1 && want[0] != "" {
					certain++
					if r.Bottleneck != "" {
						named++
					}
				}
			}
			if share := float64(named) / float64(certain); share < tt.right {
				t.Errorf("named %.2f of %d, want %.2f", share, certain, tt.right)
			}
		})
	}
}

// spells returns a drift that slows about half of all stretches of 3 to 10 intervals down.
func spells(rng *rand.Rand, by float64) func(int) float64 {
	left, factor := 0, 1.0
	return func(int) float64 {
		if left == 0 {
			left, factor = 3+rng.IntN(8), 1
			if rng.IntN(2) == 0 {
				factor += by * rng.Float64()
			}
		}
		left--
		return factor
	}
}

// TestNearTies searches chains whose two costliest stages differ by less than 5 %: either is named or none, never a
// third.
func TestNearTies(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range 400 {
		m := planted(rng, []string{"pools", "fused", "shared"}[i%3])
		m.noise = []float64{0, 0.02, 0.05, 0.1}[i%4]
		top := slices.Index(m.cost, slices.Max(m.cost))
		twin := (top + 1 + rng.IntN(len(m.cost)-1)) % len(m.cost)
		m.cost[twin] = m.cost[top] * (0.95 + 0.05*rng.Float64())
		m.step = 0
		m.step = m.time(engine.Probe{}) * 0.8 * rng.Float64()
		names := m.plan().Experiment.Stages
		want := []string{"", names[top].Address, names[twin].Address}
		if r := m.search(t, nil); !slices.Contains(want, r.Bottleneck) {
			t.Errorf("got %q, want one of %q: %+v; notes %v", r.Bottleneck, want, m, r.Notes)
		}
	}
}

// TestFalseWitness searches chains whose accounts are missing or point to a random stage: it costs some probes, and never
// changes the verdict.
func TestFalseWitness(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for i := range 300 {
		m := planted(rng, []string{"pools", "fused", "shared"}[i%3])
		m.busy = asleep
		if i%2 == 0 {
			m.busy = pointTo(rng.IntN(len(m.cost)))
		}
		if got, want := m.search(t, nil).Bottleneck, m.answers(0.01); !slices.Contains(want, got) {
			t.Errorf("got %q, want one of %q: %+v", got, want, m)
		}
		if most := 2*len(m.cost) + 5; len(m.probes) > most {
			t.Errorf("%d probes for %d stages", len(m.probes), len(m.cost))
		}
	}
}
