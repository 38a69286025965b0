package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var (
	nan = math.NaN()
	inf = math.Inf(1)
)

func TestSummarize(t *testing.T) {
	need6 := []string{"need >= 6 samples for confidence interval at level 0.95"}
	for _, tt := range []struct {
		name       string
		values     []float64
		confidence float64
		want       Summary
	}{
		{"none", nil, 0.95, Summary{nan, -inf, inf, 0, need6}},
		{"one", []float64{3}, 0.95, Summary{3, -inf, inf, 1, need6}},
		{"five are too few", []float64{5, 1, 4, 2, 3}, 0.95, Summary{3, -inf, 5, 5, need6}},
		{"six are enough", []float64{6, 1, 5, 2, 4, 3}, 0.95, Summary{3.5, 1, 6, 6, nil}},
		{"all alike", []float64{2, 2, 2, 2, 2, 2}, 0.95, Summary{2, 2, 2, 6, nil}},
		{"lower confidence", []float64{4, 1, 3, 2}, 0.8, Summary{2.5, 1, 4, 4, nil}},
		{"full confidence", []float64{1, 2, 3, 4, 5, 6}, 1, Summary{3.5, -inf, inf, 6,
			[]string{"need > 50 samples for confidence interval at level 1"}}},
		{"not finite", []float64{1, nan, 2, inf, 3, 4, -inf, 5, 6}, 0.95, Summary{3.5, 1, 6, 6,
			[]string{"left out 3 of 9 values: not a finite number"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := slices.Clone(tt.values)
			got := Summarize(tt.values, tt.confidence)
			if d := cmp.Diff(tt.want, got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(1e-12, 0)); d != "" {
				t.Errorf("summary (-want +got):\n%s", d)
			}
			if want := len(tt.want.Warnings) == 0 || tt.want.N == 6 && tt.confidence < 1; got.Bounded() != want {
				t.Errorf("Bounded() = %v, want %v", got.Bounded(), want)
			}
			if d := cmp.Diff(before, tt.values, cmpopts.EquateNaNs()); d != "" {
				t.Errorf("the caller's values changed (-before +after):\n%s", d)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	low, high := []float64{4, 1, 3, 2}, []float64{8, 5, 7, 6}
	for _, tt := range []struct {
		name  string
		a, b  []float64
		alpha float64
		want  Difference
	}{
		{"apart", low, high, 0.05, Difference{0.02857142857142857, 4, 4, true, true, nil}},
		{"apart, stricter", low, high, 0.01, Difference{0.02857142857142857, 4, 4, false, false,
			[]string{"need >= 5 samples to detect a difference at alpha level 0.01"}}},
		{"mixed", []float64{1, 3, 6, 8}, []float64{2, 4, 5, 7}, 0.05, Difference{1, 4, 4, false, true, nil}},
		{"too few", low[:3], high[:3], 0.05, Difference{0.1, 3, 3, false, false,
			[]string{"need >= 4 samples to detect a difference at alpha level 0.05"}}},
		{"alpha from a confidence", low[:3], high[:3], 1 - 0.95, Difference{0.1, 3, 3, false, false,
			[]string{"need >= 4 samples to detect a difference at alpha level 0.05"}}},
		{"too few on one side", low[:1], []float64{5, 6, 7, 8, 9}, 0.05, Difference{1. / 3, 1, 5, false, false, nil}},
		{"none on one side", nil, high, 0.05, Difference{1, 0, 4, false, false, []string{"sample is too small"}}},
		{"all alike", []float64{1, 1, 1, 1}, []float64{1, 1, 1, 1}, 0.05, Difference{1, 4, 4, false, true,
			[]string{"all samples are equal"}}},
		{"not finite", []float64{nan, 1, 2, 3, 4}, []float64{5, 6, inf, 7, 8}, 0.05,
			Difference{0.02857142857142857, 4, 4, true, true, []string{
				"left out 1 of 5 values: not a finite number", "left out 1 of 5 values: not a finite number"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Compare(tt.a, tt.b, tt.alpha)
			if d := cmp.Diff(tt.want, got, cmpopts.EquateApprox(1e-12, 0)); d != "" {
				t.Errorf("difference (-want +got):\n%s", d)
			}
		})
	}
	if !slices.Equal(low, []float64{4, 1, 3, 2}) {
		t.Errorf("the caller's values were sorted: %v", low)
	}
}

// TestCoverage draws samples whose median is known: about as many intervals as the confidence says must hold it, and
// about as many comparisons of like with like as alpha says may be called significant.
func TestCoverage(t *testing.T) {
	const trials = 4000
	rng := rand.New(rand.NewPCG(1, 2))
	draw := func() []float64 {
		s := make([]float64, 10)
		for i := range s {
			s[i] = rng.ExpFloat64()
		}
		return s
	}
	var held, significant int
	for range trials {
		a, b := draw(), draw()
		if s := Summarize(a, 0.95); s.Low <= math.Ln2 && math.Ln2 <= s.High {
			held++
		}
		if Compare(a, b, 0.05).Significant {
			significant++
		}
	}
	if share := float64(held) / trials; share < 0.94 {
		t.Errorf("%.3f of the 95 %% intervals hold the median", share)
	}
	if share := float64(significant) / trials; share > 0.06 || share < 0.02 {
		t.Errorf("%.3f of the comparisons of like with like are significant at 0.05", share)
	}
}

func BenchmarkSummarize(b *testing.B) {
	values := []float64{3.1, 3.4, 3.2, 3.3, 3.5, 3.0}
	for b.Loop() {
		Summarize(values, 0.95)
	}
}

func BenchmarkCompare(b *testing.B) {
	v, w := []float64{3.1, 3.4, 3.2, 3.3, 3.5, 3.0}, []float64{3.6, 3.7, 3.35, 3.8, 3.9, 4.0}
	for b.Loop() {
		Compare(v, w, 0.05)
	}
}
