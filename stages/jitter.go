package stages

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Around draws a duration around d, uniformly. It depends on d, the epoch and the index of the item (or batch) alone, so
// that a run can be repeated. It is never negative.
func (j Jitter) Around(d time.Duration, epoch, index int) time.Duration {
	spread := j.spread(d)
	if spread == 0 {
		return d
	}
	// d takes part, so that stages with different times don't draw alike.
	var g rand.PCG
	g.Seed(uint64(epoch)^uint64(d)<<32, uint64(index))
	u := float64(g.Uint64()>>11) / (1 << 53)
	return max(0, d+time.Duration((2*u-1)*float64(spread)))
}

func (j Jitter) spread(d time.Duration) time.Duration {
	return j.Time + time.Duration(j.Fraction*float64(d))
}

// Problems says what is wrong with a jitter around d: it would make times negative.
func (j Jitter) Problems(d time.Duration) []Problem {
	if j.spread(d) <= d {
		return nil
	}
	return []Problem{{
		Attribute: "jitter",
		Summary:   "Jitter longer than the time",
		Detail: fmt.Sprintf("A jitter of %s around %s would give negative times. Use at most %[2]s, or a fraction of the time from 0 to 1.",
			j.spread(d), d),
	}}
}
