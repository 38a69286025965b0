package engine

import (
	"context"
	"testing"
	"time"

	"github.com/pipectl/pipectl/gpu"
)

// TestBurn burns CPU time beside the steps of the ceiling: as much as was asked for, and no more.
func TestBurn(t *testing.T) {
	wait := func(context.Context, *gpu.Batch) error {
		time.Sleep(2 * time.Millisecond)
		return nil
	}
	p := openTest(t, chain(&countSource{items: 64}, 4, wait, prepare("a", double)))
	const steps = 20
	cpu := map[time.Duration]float64{}
	for _, burn := range []time.Duration{0, time.Millisecond} {
		iv, err := p.Measure(t.Context(), Probe{To: 3, Burn: burn}, 1, steps)
		if err != nil {
			t.Fatal(err)
		}
		cpu[burn] = iv.CPU * iv.Elapsed.Seconds() / steps * 1e3 // ms a step
	}
	// The process does other things too, but little.
	if d := cpu[time.Millisecond] - cpu[0]; d < 0.7 || d > 2 {
		t.Errorf("%.2f ms of CPU time a step more were used, want 1", d)
	}
}

// TestBurnEnds ends an interval whose burners have far more to do than fits in.
func TestBurnEnds(t *testing.T) {
	p := openTest(t, chain(&countSource{items: 64}, 4, nothing, prepare("a", double)))
	if _, err := p.Measure(t.Context(), Probe{To: 3, Burn: time.Hour}, 0, 3); err != nil {
		t.Error(err)
	}
}

// TestFreed counts the workers whose work a probe takes away.
func TestFreed(t *testing.T) {
	plan := &Plan{Segments: []Segment{{First: 0, Last: 0, Workers: 2}, {First: 1, Last: 3, Workers: 4}, {First: 4, Last: 4, Workers: 1}, {First: 5, Last: 5, Workers: 1}}}
	for _, tt := range []struct {
		probe Probe
		want  int
	}{
		{Probe{}, 0}, {Probe{To: 1}, 2}, {Probe{To: 2}, 6}, {Probe{To: 4}, 6}, {Probe{To: 5}, 7}, {Probe{From: 1, To: 2}, 4}, {Probe{From: 4, To: 5}, 1},
	} {
		if got := plan.freed(tt.probe); got != tt.want {
			t.Errorf("%v: %d workers, want %d", tt.probe, got, tt.want)
		}
	}
}
