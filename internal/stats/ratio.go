package stats

import (
	"math"
	"slices"
)

// exactPairs is the largest product of two sample sizes for which the distribution of U is computed; beyond it the normal
// approximation is as good.
const exactPairs = 2500

// Ratio returns a confidence interval of how many times as large b's values are as a's, at a confidence between 0 and 1. It is that
// of Hodges and Lehmann (1963) for a shift, taken on logarithms: the Mann-Whitney test inverted, so that it leaves 1 out where
// Compare finds a significant difference, and it assumes no more than that test. Low is 0 and high +Inf where the samples are too
// small for an interval, or a value isn't positive and finite. a and b stay as they are.
func Ratio(a, b []float64, confidence float64) (low, high float64) {
	ratios := make([]float64, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			r := y / x
			if !(x > 0 && r > 0) || math.IsInf(r, 0) {
				return 0, math.Inf(1)
			}
			ratios = append(ratios, r)
		}
	}
	k := criticalU(len(a), len(b), 1-confidence)
	if k < 0 {
		return 0, math.Inf(1)
	}
	slices.Sort(ratios)
	return ratios[k], ratios[len(ratios)-1-k]
}

// criticalU returns the largest u for which samples of sizes m and n have a U of at most u, or as many pairs the other way round,
// with a probability below alpha if they come from one distribution; -1 where there is none.
func criticalU(m, n int, alpha float64) int {
	alpha = math.Round(alpha*1e9) / 1e9 // 1 − 0.95 is a little more than 0.05
	if m == 0 || n == 0 {
		return -1
	}
	if m*n > exactPairs {
		mean, deviation := float64(m*n)/2, math.Sqrt(float64(m*n*(m+n+1))/12)
		return max(-1, int(math.Floor(mean-0.5+deviation*math.Sqrt2*math.Erfinv(alpha-1))))
	}
	u, sum := -1, 0.0
	for i, p := range distributionU(m, n) {
		if sum += p; 2*sum >= alpha {
			break
		}
		u = i
	}
	return u
}

// distributionU returns the probability of each U from 0 to m·n for samples of sizes m and n without ties. Of the largest value, the
// chance that it is of the first sample is m/(m+n), and it then exceeds all n of the second (Mann and Whitney 1947).
func distributionU(m, n int) []float64 {
	shorter := make([][]float64, n+1) // by the second sample's size, for a first sample one smaller
	for j := range shorter {
		shorter[j] = []float64{1}
	}
	for i := 1; i <= m; i++ {
		these := [][]float64{{1}}
		for j := 1; j <= n; j++ {
			p := make([]float64, i*j+1)
			first := float64(i) / float64(i+j)
			for u, q := range shorter[j] {
				p[u+j] += first * q
			}
			for u, q := range these[j-1] {
				p[u] += (1 - first) * q
			}
			these = append(these, p)
		}
		shorter = these
	}
	return shorter[n]
}
