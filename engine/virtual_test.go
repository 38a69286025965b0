package engine

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipectl/pipectl/gpu"
)

const ms = time.Millisecond

// TestQueueExperiments runs the SPDL project's published queue experiments in virtual time, where they are exact: three
// stages of 10, 25 and 40 ms an item in front of a step of 30 ms, their reverse, and two workers in the slowest.
// https://facebookresearch.github.io/spdl/main/performance_analysis/
func TestQueueExperiments(t *testing.T) {
	tests := []struct {
		name    string
		stages  []Stage
		rate    float64         // items/s
		out     []time.Duration // waiting to hand over, an item, summed over the workers, by stage from the source on
		starved time.Duration   // a step
	}{
		{"slower and slower", []Stage{nap("a", 10*ms), nap("b", 25*ms), nap("c", 40*ms)}, 25, []time.Duration{40 * ms, 30 * ms, 15 * ms, 0}, 10 * ms},
		{"faster and faster", []Stage{nap("a", 40*ms), nap("b", 25*ms), nap("c", 10*ms)}, 25, []time.Duration{40 * ms, 0, 0, 0}, 10 * ms},
		{"two workers in the slowest", []Stage{nap("a", 10*ms), nap("b", 25*ms), two(nap("c", 40*ms))}, 1000. / 30,
			[]time.Duration{30 * ms, 20 * ms, 5 * ms, 20 * ms}, 0},
		{"one stage, faster than the step", []Stage{nap("a", 25*ms)}, 1000. / 30, []time.Duration{30 * ms, 5 * ms}, 0},
		{"one stage, slower than the step", []Stage{nap("a", 35*ms)}, 1000. / 35, []time.Duration{35 * ms, 0}, 5 * ms},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := chain(&countSource{items: 1000}, 1, napStep(30*ms), tt.stages...)
				for i := range e.Stages[:len(e.Stages)-1] {
					e.Stages[i].Prefetch = 2
				}
				p := openTest(t, e)
				const steps = 60
				iv, err := p.Measure(context.Background(), Probe{}, 100, steps)
				if err != nil {
					t.Fatal(err)
				}
				if got := iv.Rate(); math.Abs(got-tt.rate) > 1e-9 {
					t.Errorf("%.3f items/s, want %.3f", got, tt.rate)
				}
				if got := iv.Starved / steps; got != tt.starved {
					t.Errorf("the step waits %v, want %v", got, tt.starved)
				}
				for i, want := range tt.out {
					a := iv.Stages[i]
					// The batch that the stage before it collates is handed over there: its waiting belongs to it.
					wait := a.WaitOut
					if i == len(tt.out)-1 {
						wait += iv.Stages[i+1].WaitOut
					}
					if got := wait / steps; got != want {
						t.Errorf("%s waits %v to hand over, want %v", a.Address, got, want)
					}
					if total := a.Busy + wait + a.WaitIn; total != iv.Elapsed*time.Duration(a.Workers) {
						t.Errorf("%s: busy and waiting add up to %v of %v", a.Address, total, iv.Elapsed)
					}
				}
			})
		})
	}
}

func two(s Stage) Stage {
	s.Workers = 2
	return s
}

// TestStandingStart checks that an interval needs no more warm-up than its first batch, in virtual time: a chain that
// starts empty runs at its final rate from the second step on.
func TestStandingStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := openTest(t, chain(&countSource{items: 100}, 4, napStep(30*ms), nap("a", 40*ms), nap("b", 10*ms), nap("c", 25*ms)))
		iv, err := p.Measure(context.Background(), Probe{}, 1, 5)
		if err != nil {
			t.Fatal(err)
		}
		if want := 5 * 160 * ms; iv.Elapsed != want {
			t.Errorf("5 steps took %v, want %v", iv.Elapsed, want)
		}
		if want := 40*ms*4 + 10*ms + 25*ms; iv.FirstBatch != want {
			t.Errorf("the first batch took %v, want %v", iv.FirstBatch, want)
		}
	})
}

// TestSharedWorkers checks how the time of workers who execute several stages is split between these.
func TestSharedWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := nap("a", 30*ms), nap("b", 10*ms)
		a.Pool, b.Pool = "loader", "loader"
		e := chain(&countSource{items: 100}, 5, napStep(ms), a, b)
		e.Pools = []Pool{{Name: "loader", Workers: 2}}
		p := openTest(t, e)
		iv, err := p.Measure(context.Background(), Probe{}, 2, 8)
		if err != nil {
			t.Fatal(err)
		}
		if want := 8 * 5 * 40 * ms / 2; iv.Elapsed != want {
			t.Errorf("8 steps took %v, want %v", iv.Elapsed, want)
		}
		for i, want := range []time.Duration{0, 30 * ms * 40, 10 * ms * 40} {
			if got := iv.Stages[i].Busy; (got - want).Abs() > 10*ms {
				t.Errorf("%s was busy for %v, want %v", iv.Stages[i].Address, got, want)
			}
		}
	})
}

// TestProbesInVirtualTime checks the rates of all probes of a chain against the arithmetic of a line of pools.
func TestProbesInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := openTest(t, chain(&countSource{items: 64}, 2, napStep(5*ms), nap("a", 40*ms), nap("b", 10*ms), nap("c", 25*ms)))
		for _, tt := range []struct {
			probe Probe
			want  time.Duration // a step
		}{
			{Probe{}, 80 * ms}, {Probe{To: 1}, 80 * ms}, {Probe{To: 2}, 50 * ms}, {Probe{To: 3}, 50 * ms}, {Probe{To: 4}, 5 * ms}, {Probe{To: 5}, 5 * ms},
			{Probe{From: 1, To: 2}, 50 * ms}, {Probe{From: 2, To: 3}, 80 * ms}, {Probe{From: 3, To: 4}, 80 * ms}, {Probe{From: 1, To: 3}, 50 * ms},
			{Probe{From: 2, To: 5}, 80 * ms}, {Probe{From: 1, To: 5}, 5 * ms},
		} {
			iv, err := p.Measure(context.Background(), tt.probe, 2, 10)
			if err != nil {
				t.Fatal(err)
			}
			if got := iv.Elapsed / 10; got != tt.want {
				t.Errorf("%v: %v a step, want %v", tt.probe, got, tt.want)
			}
		}
	})
}

// queued is a step of an asynchronous device: Submit returns at once, and steps wait for each other on the device.
type queued struct {
	stepFunc
	took, host time.Duration // on the device, and before that on the host
	idle       time.Time
}

func (q *queued) NewStep(gpu.Device, gpu.Input) (gpu.Step, error) { return q, nil }
func (q *queued) Submit(context.Context, *gpu.Batch) (gpu.Event, error) {
	time.Sleep(q.host)
	if now := time.Now(); q.idle.Before(now) {
		q.idle = now
	}
	q.idle = q.idle.Add(q.took)
	return &queuedEvent{q.idle, q.took}, nil
}

type queuedEvent struct {
	end  time.Time
	took time.Duration
}

func (e *queuedEvent) Wait(context.Context) error {
	time.Sleep(time.Until(e.end))
	return nil
}
func (e *queuedEvent) Elapsed() (time.Duration, bool) { return e.took, true }

// TestAsynchronousStep checks that starvation is for how long both the device has nothing to do, by its own clock, and the host no batch:
// the host fetches batches while the device computes.
func TestAsynchronousStep(t *testing.T) {
	for _, tt := range []struct{ item, host, step, every, starved time.Duration }{
		{40 * ms, 0, 30 * ms, 40 * ms, 10 * ms},
		{20 * ms, 0, 30 * ms, 30 * ms, 0},
		{10 * ms, 30 * ms, 20 * ms, 31 * ms, 0}, // the host takes longer to start a step than the device to do it, and the last is waited for
	} {
		synctest.Test(t, func(t *testing.T) {
			e := chain(&countSource{items: 100}, 1, nothing, nap("a", tt.item))
			e.Stages[3].Spec = &queued{stepFunc: nothing, host: tt.host, took: tt.step}
			iv, err := openTest(t, e).Measure(context.Background(), Probe{}, 3, 20)
			if err != nil {
				t.Fatal(err)
			}
			if got := iv.Elapsed / 20; got != tt.every {
				t.Errorf("%v a step, want %v", got, tt.every)
			}
			if got := iv.Starved / 20; got != tt.starved {
				t.Errorf("starved for %v a step, want %v", got, tt.starved)
			}
		})
	}
}
