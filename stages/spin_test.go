package stages

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
)

func TestSpin(t *testing.T) {
	runtime.LockOSThread() // so that the time is taken on the thread that burns
	defer runtime.UnlockOSThread()
	jitter := Jitter{Fraction: 0.5}
	s := newStage(t, &Spin{Time: 2 * time.Millisecond, Jitter: jitter})
	var took, want time.Duration
	for i := range 20 {
		in, out := Element{Type: ImageType(1, 1), U8: []byte{1, 2, 3}}, Element{}
		clock, err := startCPUClock()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Process(&Call{Context: t.Context(), Item: Item{Epoch: 1, Index: i}}, &in, &out); err != nil {
			t.Fatal(err)
		}
		d, err := clock.elapsed()
		if err != nil {
			t.Fatal(err)
		}
		if least := jitter.Around(2*time.Millisecond, 1, i); d < least {
			t.Errorf("item %d burned %v, want at least %v", i, d, least)
		}
		if out.Result() != &in {
			t.Error("the element wasn't passed on")
		}
		took, want = took+d, want+jitter.Around(2*time.Millisecond, 1, i)
	}
	// The CPU time of a thread doesn't depend on the machine's load, but for interrupts; so a wide margin holds.
	if took > want*3/2 {
		t.Errorf("burned %v, want about %v", took, want)
	}
}

func TestSpinCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newStage(t, &Spin{Time: time.Hour})
	done := make(chan error)
	go func() { done <- s.Process(&Call{Context: ctx}, &Element{}, &Element{}) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

func BenchmarkSpin(b *testing.B) {
	for _, d := range []time.Duration{time.Microsecond, 10 * time.Microsecond, time.Millisecond} {
		b.Run(d.String(), func(b *testing.B) {
			s := newStage(b, &Spin{Time: d})
			c := &Call{Context: b.Context()}
			var in, out Element
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Process(c, &in, &out); err != nil {
					b.Fatal(err)
				}
				out.Result()
			}
		})
	}
}
