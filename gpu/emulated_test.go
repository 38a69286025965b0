package gpu

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/stages"
)

const ms = time.Millisecond

// emulate makes an emulated step.
func emulate(tb testing.TB, e Emulated, seed uint64) Step {
	tb.Helper()
	s, err := e.NewStep(nil, Input{Batch: 1, Seed: seed})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

var batch = &Batch{Batch: new(stages.Batch), Ready: Passed{}}

func TestEmulated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := emulate(t, Emulated{Time: 40 * ms, Mode: "sleep"}, 1)
		start := time.Now()
		for i := range 5 {
			event, err := s.Submit(t.Context(), batch)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := time.Since(start), time.Duration(i)*40*ms; got != want {
				t.Errorf("submitted after %v, want %v: Submit waited", got, want)
			}
			if took, ok := event.Elapsed(); ok {
				t.Errorf("step %d took %v before it ended", i, took)
			}
			if err := event.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, want := time.Since(start), time.Duration(i+1)*40*ms; got != want {
				t.Errorf("step %d ended after %v, want %v", i, got, want)
			}
			if took, ok := event.Elapsed(); !ok || took != 40*ms {
				t.Errorf("step %d took %v, %v, want 40ms", i, took, ok)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Steps that are submitted at once are done one after the other.
func TestEmulatedQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := emulate(t, Emulated{Time: 10 * ms, Mode: "sleep"}, 1)
		start := time.Now()
		var ends []time.Duration
		var events []Event
		for range 3 {
			event, err := s.Submit(t.Context(), batch)
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, event)
		}
		for _, event := range events {
			if err := event.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			ends = append(ends, time.Since(start))
		}
		if diff := cmp.Diff([]time.Duration{10 * ms, 20 * ms, 30 * ms}, ends); diff != "" {
			t.Errorf("ends (-want +got):\n%s", diff)
		}
	})
}

// The times depend on the seed and the step's number alone.
func TestEmulatedJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := func(seed uint64) []time.Duration {
			s := emulate(t, Emulated{Time: 40 * ms, Jitter: stages.Jitter{Fraction: 0.25}, Mode: "sleep"}, seed)
			var times []time.Duration
			for range 20 {
				event, err := s.Submit(t.Context(), batch)
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				if err := event.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				took, _ := event.Elapsed()
				if took != time.Since(start) || took < 30*ms || took > 50*ms {
					t.Errorf("waited %v for a step of %v, want the same from 30 to 50ms", time.Since(start), took)
				}
				times = append(times, took)
			}
			return times
		}
		first := times(1)
		if diff := cmp.Diff(first, times(1)); diff != "" {
			t.Errorf("the same seed gives other times:\n%s", diff)
		}
		if cmp.Equal(first, times(2)) {
			t.Error("another seed gives the same times")
		}
		if first[0] == first[1] {
			t.Error("the times don't vary")
		}
	})
}

func TestEmulatedSpin(t *testing.T) {
	s := emulate(t, Emulated{Time: 5 * ms, Mode: "spin"}, 1)
	start := time.Now()
	event, err := s.Submit(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	if got := time.Since(start); got < 5*ms {
		t.Errorf("Submit took %v, want at least the step's 5ms", got)
	}
	if err := event.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if took, ok := event.Elapsed(); !ok || took != 5*ms {
		t.Errorf("the step took %v, %v, want 5ms", took, ok)
	}
}

func TestEmulatedCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*ms)
		defer cancel()
		event, err := emulate(t, Emulated{Time: time.Hour, Mode: "sleep"}, 1).Submit(ctx, batch)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := event.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("sleep: error %v, want the context's", err)
		}
		if got := time.Since(start); got != 3*ms {
			t.Errorf("waited %v, want 3ms", got)
		}
		if _, err := emulate(t, Emulated{Time: time.Hour, Mode: "spin"}, 1).Submit(ctx, batch); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("spin: error %v, want the context's", err)
		}
	})
}

func TestEmulatedValidate(t *testing.T) {
	e := &Emulated{Time: ms, Jitter: stages.Jitter{Time: 2 * ms}}
	if diff := cmp.Diff(e.Jitter.Problems(ms), e.Validate()); diff != "" || len(e.Validate()) != 1 {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func BenchmarkEmulated(b *testing.B) {
	s := emulate(b, Emulated{Mode: "sleep"}, 1)
	b.ReportAllocs()
	for b.Loop() {
		event, err := s.Submit(b.Context(), batch)
		if err == nil {
			err = event.Wait(b.Context())
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
