package stats

import (
	"math"
	"slices"
)

// Trend is the result of testing whether a series of values rises or falls.
type Trend struct {
	P     float64 // probability of an order at least as far from a random one if there is no trend; 1 if unknown
	Slope float64 // of the values over the places, the median of that between any two of them; NaN if unknown
	Start float64 // the fitted value at the first place
	End   float64 // and at the last
}

// exactTrend is the largest series for which the distribution of the statistic is computed.
const exactTrend = 50

// FindTrend tests a series of values at ascending places for a monotone trend: Mann's test (1945), which is Kendall's rank correlation
// with the places. It assumes nothing of how values are distributed, and that they are independent if there is no trend. The
// slope is that of Theil (1950) and Sen (1968). at and values stay as they are, have the same length and are finite.
func FindTrend(at, values []float64) Trend {
	n := len(values)
	s, tied := 0, false
	var slopes []float64
	for i := range values {
		for j := i + 1; j < n; j++ {
			switch {
			case values[j] > values[i]:
				s++
			case values[j] < values[i]:
				s--
			default:
				tied = true
			}
			slopes = append(slopes, (values[j]-values[i])/(at[j]-at[i]))
		}
	}
	if len(slopes) == 0 {
		return Trend{P: 1, Slope: math.NaN(), Start: math.NaN(), End: math.NaN()}
	}
	t := Trend{Slope: middle(slopes)}
	rest := make([]float64, n)
	for i := range rest {
		rest[i] = values[i] - t.Slope*at[i]
	}
	zero := middle(rest)
	t.Start, t.End = zero+t.Slope*at[0], zero+t.Slope*at[n-1]
	if tied || n > exactTrend {
		t.P = approximateTrend(s, values)
	} else {
		t.P = exactTrendP(s, n)
	}
	return t
}

// exactTrendP returns the probability of a statistic as far from 0 as s for n values in random order, none like another. It counts
// inversions: putting in the last of i values makes 0 to i-1 more of them, all as likely.
func exactTrendP(s, n int) float64 {
	p := []float64{1}
	for i := 2; i <= n; i++ {
		next := make([]float64, len(p)+i-1)
		for k, q := range p {
			for j := range i {
				next[k+j] += q / float64(i)
			}
		}
		p = next
	}
	pairs := n * (n - 1) / 2
	few := (pairs - max(s, -s)) / 2 // inversions
	sum := 0.0
	for _, q := range p[:few+1] {
		sum += q
	}
	return min(2*sum, 1)
}

// approximateTrend returns that of a normal distribution with the statistic's variance, which ties make smaller (Kendall 1975).
func approximateTrend(s int, values []float64) float64 {
	spread := func(n int) float64 { return float64(n*(n-1)*(2*n+5)) / 18 }
	sorted := slices.Sorted(slices.Values(values))
	variance := spread(len(sorted))
	for i := 0; i < len(sorted); {
		j := i
		for j < len(sorted) && sorted[j] == sorted[i] {
			j++
		}
		variance -= spread(j - i)
		i = j
	}
	if variance <= 0 { // all alike
		return 1
	}
	z := max(math.Abs(float64(s))-1, 0) / math.Sqrt(variance)
	return math.Erfc(z / math.Sqrt2)
}

// middle returns the median of values, which are not empty. It sorts them.
func middle(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
