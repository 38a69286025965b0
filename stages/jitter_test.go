package stages

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestJitterAround(t *testing.T) {
	const d = 10 * time.Millisecond
	for _, tt := range []struct {
		name      string
		jitter    Jitter
		low, high time.Duration
	}{
		{"none", Jitter{}, d, d},
		{"time", Jitter{Time: 2 * time.Millisecond}, 8 * time.Millisecond, 12 * time.Millisecond},
		{"fraction", Jitter{Fraction: 0.5}, 5 * time.Millisecond, 15 * time.Millisecond},
		{"all of it", Jitter{Fraction: 1}, 0, 20 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const n = 10_000
			least, most, sum := time.Hour, -time.Hour, time.Duration(0)
			for i := range n {
				got := tt.jitter.Around(d, i%3, i)
				if again := tt.jitter.Around(d, i%3, i); again != got {
					t.Fatalf("item %d took %v, then %v", i, got, again)
				}
				least, most, sum = min(least, got), max(most, got), sum+got
			}
			if least < tt.low || most > tt.high {
				t.Errorf("times from %v to %v, want from %v to %v", least, most, tt.low, tt.high)
			}
			// The whole range is used, and evenly.
			width := tt.high - tt.low
			if least > tt.low+width/100 || most < tt.high-width/100 {
				t.Errorf("times from %v to %v don't fill %v to %v", least, most, tt.low, tt.high)
			}
			if mean := sum / n; (mean - d).Abs() > width/50 {
				t.Errorf("mean %v, want about %v", mean, d)
			}
		})
	}
}

func TestJitterDiffers(t *testing.T) {
	j := Jitter{Fraction: 0.5}
	base := j.Around(time.Second, 0, 0)
	for name, other := range map[string]time.Duration{
		"index": j.Around(time.Second, 0, 1),
		"epoch": j.Around(time.Second, 1, 0),
		"time":  j.Around(2*time.Second, 0, 0) / 2,
	} {
		if (other - base).Abs() < time.Microsecond {
			t.Errorf("another %s draws the same time, %v", name, base)
		}
	}
}

func TestJitterProblems(t *testing.T) {
	if got := (Jitter{Fraction: 1}).Problems(time.Second); got != nil {
		t.Errorf("Problems() = %v, want none", got)
	}
	want := []Problem{{
		Attribute: "jitter",
		Summary:   "Jitter longer than the time",
		Detail:    "A jitter of 2ms around 1ms would give negative times. Use at most 1ms, or a fraction of the time from 0 to 1.",
	}}
	if diff := cmp.Diff(want, (Jitter{Time: 2 * time.Millisecond}).Problems(time.Millisecond)); diff != "" {
		t.Error(diff)
	}
}
