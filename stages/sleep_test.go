package stages

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// newStage makes an instance of a stage from its spec.
func newStage(tb testing.TB, spec StageSpec) Stage {
	tb.Helper()
	s, err := spec.New()
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jitter := Jitter{Time: 5 * time.Millisecond}
		s := newStage(t, &Sleep{Time: 40 * time.Millisecond, Jitter: jitter})
		for i := range 10 {
			in, out := Element{Type: ImageType(1, 1), U8: []byte{1, 2, 3}}, Element{}
			c := &Call{Context: t.Context(), Item: Item{Epoch: 2, Index: i}}
			start := time.Now()
			if err := s.Process(c, &in, &out); err != nil {
				t.Fatal(err)
			}
			if got, want := time.Since(start), jitter.Around(40*time.Millisecond, 2, i); got != want {
				t.Errorf("item %d waited %v, want %v", i, got, want)
			}
			if out.Result() != &in {
				t.Error("the element wasn't passed on")
			}
		}
	})
}

func TestSleepCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Millisecond)
		defer cancel()
		s := newStage(t, &Sleep{Time: time.Hour})
		start := time.Now()
		if err := s.Process(&Call{Context: ctx}, &Element{}, &Element{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the context's", err)
		}
		if got := time.Since(start); got != 3*time.Millisecond {
			t.Errorf("waited %v, want 3ms", got)
		}
	})
}

// A timer that was broken off serves the next wait, and doesn't fire for the last one.
func TestWaiterReuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Waiter
		for _, d := range []time.Duration{5, 0, -1, 1, 3} {
			ctx, cancel := context.WithTimeout(t.Context(), 2)
			start := time.Now()
			err := w.Wait(ctx, d)
			cancel()
			if got, want := time.Since(start), min(max(d, 0), 2); got != want || (err != nil) != (d > 2) {
				t.Errorf("Wait(%d) took %d with error %v, want %d", d, got, err, want)
			}
		}
	})
}

func BenchmarkSleep(b *testing.B) {
	s := newStage(b, &Sleep{Time: time.Microsecond})
	c := &Call{Context: b.Context()}
	var in, out Element
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Process(c, &in, &out); err != nil {
			b.Fatal(err)
		}
		out.Result()
	}
}
