package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestRatio(t *testing.T) {
	four := []float64{10, 10.1, 9.9, 10.2}
	for _, tt := range []struct {
		name       string
		a, b       []float64
		confidence float64
		low, high  float64
	}{
		{"the extreme pairs", []float64{10, 8, 16, 20}, []float64{20, 20, 20, 20}, 0.95, 1, 2.5},
		{"three are too few", four[:3], four[:3], 0.95, 0, inf},
		{"three, less confident", []float64{1, 1, 1}, []float64{2, 3, 4}, 0.8, 2, 4},
		{"two pairs left out on each side", []float64{1, 1, 1, 1, 2}, []float64{2, 3, 4, 5, 6}, 0.95, 2, 6},
		{"none", nil, four, 0.95, 0, inf},
		{"zero", []float64{0, 1, 2, 3}, four, 0.95, 0, inf},
		{"not a number", four, []float64{nan, 1, 2, 3}, 0.95, 0, inf},
		{"full confidence", four, four, 1, 0, inf},
	} {
		t.Run(tt.name, func(t *testing.T) {
			low, high := Ratio(tt.a, tt.b, tt.confidence)
			if low != tt.low || high != tt.high {
				t.Errorf("%v … %v, want %v … %v", low, high, tt.low, tt.high)
			}
		})
	}
}

// TestDistributionU compares with the numbers of orders that Mann and Whitney count for two samples of three.
func TestDistributionU(t *testing.T) {
	want := []float64{1, 1, 2, 3, 3, 3, 3, 2, 1, 1}
	for i := range want {
		want[i] /= 20
	}
	if d := cmp.Diff(want, distributionU(3, 3), cmpopts.EquateApprox(1e-12, 0)); d != "" {
		t.Error(d)
	}
	for _, n := range [][2]int{{50, 50}, {25, 60}, {2, 40}} {
		exact := criticalU(n[0], n[1], 0.05)
		mean, deviation := float64(n[0]*n[1])/2, math.Sqrt(float64(n[0]*n[1]*(n[0]+n[1]+1))/12)
		if approx := mean - 0.5 - 1.959964*deviation; math.Abs(float64(exact)-approx) > 2.5 {
			t.Errorf("%v: %d, the normal approximation is %.1f", n, exact, approx)
		}
	}
}

// TestRatioCoverage draws samples whose ratio is known: as many intervals as the confidence says hold it, and one leaves 1 out
// where the test finds a difference, and there alone.
func TestRatioCoverage(t *testing.T) {
	const trials = 3000
	rng := rand.New(rand.NewPCG(1, 2))
	held := 0
	for i := range trials {
		a, b := make([]float64, 4+i%5), make([]float64, 5+i%7)
		for i := range a {
			a[i] = math.Exp(0.1 * rng.NormFloat64())
		}
		for i := range b {
			b[i] = 1.15 * math.Exp(0.1*rng.NormFloat64())
		}
		low, high := Ratio(a, b, 0.95)
		if low <= 1.15 && 1.15 <= high {
			held++
		}
		if d := Compare(a, b, 0.05); d.Significant != (low > 1 || high < 1) {
			t.Fatalf("significant: %v, but the interval is %v … %v", d.Significant, low, high)
		}
	}
	if share := float64(held) / trials; share < 0.94 || share > 0.99 {
		t.Errorf("%.3f of the 95 %% intervals hold the ratio", share)
	}
}

func BenchmarkRatio(b *testing.B) {
	x, y := make([]float64, 26), make([]float64, 26)
	for i := range x {
		x[i], y[i] = 1+float64(i), 2+float64(i)
	}
	for b.Loop() {
		Ratio(x, y, 0.95)
	}
}
