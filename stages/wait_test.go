package stages

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// TestExactWaits cancels and repeats waits on the kernel's timer. How exact they are is BenchmarkWait's subject.
func TestExactWaits(t *testing.T) {
	var w Waiter
	defer w.Close()
	ctx, cancel := context.WithCancel(WithExactWaits(context.Background()))
	for range 3 {
		start := time.Now()
		if err := w.Wait(ctx, 2*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 2*time.Millisecond {
			t.Errorf("waited only %v", took)
		}
	}
	time.AfterFunc(5*time.Millisecond, cancel)
	if err := w.Wait(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	if err := w.Wait(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait after the end: error %v", err)
	}
	if err := w.Wait(WithExactWaits(context.Background()), time.Millisecond); err != nil {
		t.Errorf("a wait with another context: %v", err)
	}
}

// TestExactWaitsOfManyRuns goes from context to context, as a stage does from interval to interval: the end of one must not
// end the waits of the next.
func TestExactWaitsOfManyRuns(t *testing.T) {
	var w Waiter
	defer w.Close()
	for i := range 500 {
		ctx, cancel := context.WithCancel(WithExactWaits(context.Background()))
		if err := w.Wait(ctx, 50*time.Microsecond); err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
		go cancel()
		if err := w.Wait(ctx, time.Hour); !errors.Is(err, context.Canceled) {
			t.Fatalf("run %d: error %v, want %v", i, err, context.Canceled)
		}
	}
}

// BenchmarkWait reports by how much waits of 2.2 ms are too long, with Go's timers and with the kernel's.
func BenchmarkWait(b *testing.B) {
	for name, ctx := range map[string]context.Context{"go": context.Background(), "kernel": WithExactWaits(context.Background())} {
		b.Run(name, func(b *testing.B) {
			var w Waiter
			defer w.Close()
			var late []time.Duration
			for b.Loop() {
				start := time.Now()
				if err := w.Wait(ctx, 2200*time.Microsecond); err != nil {
					b.Fatal(err)
				}
				late = append(late, time.Since(start)-2200*time.Microsecond)
			}
			slices.Sort(late)
			b.ReportMetric(float64(late[len(late)/2].Microseconds()), "µs-late")
		})
	}
}
