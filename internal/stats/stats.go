// Package stats summarises and compares small samples of measurements without assuming how they are distributed. The
// statistics are those of golang.org/x/perf/benchmath: the median with its confidence interval from order statistics,
// and the Mann-Whitney U test.
package stats

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// Summary is the median of a sample with its confidence interval. Where the sample is too small for a bounded interval
// at the wanted confidence, Low is -Inf or High is +Inf or both, and a warning says how many values are needed. The
// median of no values is NaN.
type Summary struct {
	Median, Low, High float64
	N                 int // values it is made of
	Warnings          []string
}

// Bounded reports whether the sample was large enough for an interval with both ends.
func (s Summary) Bounded() bool { return !math.IsInf(s.Low, 0) && !math.IsInf(s.High, 0) }

// Difference is the result of testing whether two samples come from the same distribution.
type Difference struct {
	P           float64 // probability of samples at least as different as these if there is no difference; 1 if unknown
	N1, N2      int     // values compared
	Significant bool    // P < alpha
	// Detectable reports whether samples of these sizes can differ significantly at all: where it is false, a difference
	// that isn't significant says nothing.
	Detectable bool
	Warnings   []string
}

// Summarize returns the median of values and its interval at a confidence between 0 and 1. Values that aren't finite
// are left out with a warning. values stays as it is.
func Summarize(values []float64, confidence float64) Summary {
	sample := newSample(values, 1-confidence)
	s := benchmath.AssumeNothing.Summary(sample, confidence)
	return Summary{
		Median: s.Center, Low: s.Lo, High: s.Hi,
		N:        len(sample.Values),
		Warnings: texts(sample.Warnings, s.Warnings),
	}
}

// Compare tests a against b at the significance level alpha, 1 − confidence. Values that aren't finite are left out with
// a warning. a and b stay as they are.
func Compare(a, b []float64, alpha float64) Difference {
	s1, s2 := newSample(a, alpha), newSample(b, alpha)
	c := benchmath.AssumeNothing.Compare(s1, s2)
	return Difference{
		P: c.P, N1: c.N1, N2: c.N2,
		Significant: c.P < c.Alpha,
		Detectable:  detectable(c.N1, c.N2, alpha),
		Warnings:    texts(s1.Warnings, s2.Warnings, c.Warnings),
	}
}

// detectable compares samples of sizes n1 and n2 that overlap nowhere: no samples of these sizes give a smaller P.
func detectable(n1, n2 int, alpha float64) bool {
	apart := make([]float64, n1+n2)
	for i := range apart {
		apart[i] = float64(i)
	}
	return benchmath.AssumeNothing.Compare(newSample(apart[:n1], alpha), newSample(apart[n1:], alpha)).P < alpha
}

// newSample copies values, because benchmath sorts them in place, and drops those that aren't finite, because its U test
// never ends on a NaN.
func newSample(values []float64, alpha float64) *benchmath.Sample {
	finite := slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	thresholds := benchmath.DefaultThresholds
	thresholds.CompareAlpha = math.Round(alpha*1e9) / 1e9 // 1 − 0.95 is a little more than 0.05, and warnings print it
	s := benchmath.NewSample(finite, &thresholds)
	if dropped := len(values) - len(finite); dropped > 0 {
		s.Warnings = append(s.Warnings, fmt.Errorf("left out %d of %d values: not a finite number", dropped, len(values)))
	}
	return s
}

func texts(lists ...[]error) []string {
	var out []string
	for _, list := range lists {
		for _, err := range list {
			out = append(out, err.Error())
		}
	}
	return out
}
