package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestFindTrend compares with what can be counted by hand. Of the 720 orders of six values, one rises throughout and five have
// one inversion.
func TestFindTrend(t *testing.T) {
	for _, tt := range []struct {
		name       string
		at, values []float64
		want       Trend
	}{
		{"none", nil, nil, Trend{1, nan, nan, nan}},
		{"one", []float64{1}, []float64{5}, Trend{1, nan, nan, nan}},
		{"rises", []float64{0, 1, 2, 3, 4, 5}, []float64{1, 2, 3, 4, 5, 6}, Trend{2. / 720, 1, 1, 6}},
		{"falls, with gaps", []float64{1, 2, 3, 5, 8, 9}, []float64{18, 16, 14, 10, 4, 2}, Trend{2. / 720, -2, 18, 2}},
		{"one inversion", []float64{0, 1, 2, 3, 4, 5}, []float64{1, 2, 4, 3, 5, 6}, Trend{12. / 720, 1, 1, 6}},
		{"no trend", []float64{0, 1, 2, 3}, []float64{2, 4, 1, 3}, Trend{1, -1. / 12, 2.625, 2.375}},
		{"an outlier", []float64{0, 1, 2, 3, 4, 5}, []float64{1, 2, 3, 4, 5, 600}, Trend{2. / 720, 1, 1, 6}},
		{"all alike", []float64{0, 1, 2}, []float64{7, 7, 7}, Trend{1, 0, 7, 7}},
		{"ties", []float64{0, 1, 2, 3, 4, 5}, []float64{1, 1, 2, 2, 3, 3}, Trend{math.Erfc(11 / math.Sqrt(76./3) / math.Sqrt2), 0.5, 0.75, 3.25}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, FindTrend(tt.at, tt.values), cmpopts.EquateNaNs(), cmpopts.EquateApprox(1e-9, 1e-12)); d != "" {
				t.Errorf("trend (-want +got):\n%s", d)
			}
		})
	}
}

// TestTrendOfNoise finds a trend in noise as often as the level says, both ways of computing, and the trend that is planted.
func TestTrendOfNoise(t *testing.T) {
	const trials = 3000
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{6, 9, 20, exactTrend + 5} {
		found, planted, at := 0, 0, make([]float64, n)
		for range trials {
			noise, slope := make([]float64, n), make([]float64, n)
			for i := range noise {
				at[i] = float64(i)
				noise[i] = rng.ExpFloat64()
				slope[i] = 0.1*rng.NormFloat64() + float64(i)/float64(n-1)
			}
			if FindTrend(at, noise).P < 0.05 {
				found++
			}
			if FindTrend(at, slope).P < 0.05 {
				planted++
			}
		}
		if share := float64(found) / trials; share > 0.06 {
			t.Errorf("%d values: a trend in %.3f of random series", n, share)
		}
		if share := float64(planted) / trials; share < 0.95 {
			t.Errorf("%d values: the trend is found in %.3f of the series", n, share)
		}
	}
}

func BenchmarkFindTrend(b *testing.B) {
	at, values := make([]float64, 20), make([]float64, 20)
	for i := range at {
		at[i], values[i] = float64(i), float64(i*7%20)
	}
	for b.Loop() {
		FindTrend(at, values)
	}
}
