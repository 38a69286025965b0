package engine

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

var errBad = errors.New("truncated file")

// failing fails on every item whose index is a multiple of n.
func failing(n int) func(*stages.Call, *stages.Element, *stages.Element) error {
	return func(c *stages.Call, in, out *stages.Element) error {
		if c.Item.Index%n == 0 {
			return errBad
		}
		return double(c, in, out)
	}
}

// TestSkip leaves out the items that a stage fails on: counted and told of once each, their batch shorter, the same for
// any number of workers.
func TestSkip(t *testing.T) {
	var want []uint64
	for _, workers := range []int{1, 4} {
		var sums []uint64
		var sizes []int
		hash := hashStep(&sums)
		e := chain(&countSource{items: 40}, 8, func(ctx context.Context, b *gpu.Batch) error {
			sizes = append(sizes, b.Len)
			return hash(ctx, b)
		}, prepare("bad", failing(10)), prepare("double", double))
		for i := range 3 {
			e.Stages[i].Workers = workers
		}
		e.Stages[1].OnError = Skip
		var mu sync.Mutex
		var told []SkippedItem
		d := new(hostDevice)
		p, _, err := Open(context.Background(), e, Options{
			OpenDevice: func(string) (gpu.Device, error) { return d, nil },
			OnSkip: func(s SkippedItem) {
				mu.Lock()
				told = append(told, s)
				mu.Unlock()
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Train(context.Background(), 2, nil, nil); err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if len(told) != 4 {
			t.Fatalf("told of %d items, want 4: %v", len(told), told)
		}
		seen := map[int]bool{}
		for _, s := range told {
			seen[s.Index] = true
			if s.Address != "prepare.bad" || !strings.HasPrefix(s.Item, "item ") || s.Reason != "truncated file" {
				t.Errorf("told of %+v", s)
			}
		}
		if !seen[0] || !seen[10] || !seen[20] || !seen[30] {
			t.Errorf("told of %v", told)
		}
		if got, want := sizes, []int{7, 7, 7, 7, 8, 7, 7, 7, 7, 8}; len(got) != len(want) {
			t.Errorf("batch sizes %v, want %v", got, want)
		} else {
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("batch sizes %v, want %v", got, want)
				}
			}
		}
		if want == nil {
			want = sums
		}
		for i := range sums {
			if sums[i] != want[i] {
				t.Errorf("%d workers: batch %d differs", workers, i)
			}
		}
	}
}

// TestFaults checks how runs end that can't go on, under every probe that meets the fault: with an error at the stage,
// and without a goroutine left.
func TestFaults(t *testing.T) {
	tests := []struct {
		name string
		edit func(e *Experiment)
		want string // the error
	}{
		{"a stage fails", func(e *Experiment) { e.Stages[1].Spec = &stageFunc{f: failing(10)} }, "prepare.a: item 0: truncated file"},
		{"the source fails", func(e *Experiment) {
			e.Stages[0].Spec.(*countSource).bad = func(i int) error {
				if i == 3 {
					return errBad
				}
				return nil
			}
		}, "load.items: item 3: truncated file"},
		{"too many are skipped", func(e *Experiment) {
			e.Stages[1].Spec, e.Stages[1].OnError, e.Stages[1].MaxSkips = &stageFunc{f: failing(10)}, Skip, 2
		}, "prepare.a: item 20: more than max_skips = 2 items would be skipped: truncated file"},
		{"all are skipped", func(e *Experiment) { e.Stages[1].Spec, e.Stages[1].OnError = &stageFunc{f: failing(1)}, Skip },
			"batch: every item of an epoch was skipped: there is nothing to train on"},
		{"a stage panics", func(e *Experiment) {
			e.Stages[2].Spec = &stageFunc{f: func(c *stages.Call, _, _ *stages.Element) error { panic("oops") }}
		}, "prepare.b: panic: oops"},
		{"a stage breaks its promise", func(e *Experiment) {
			e.Stages[2].Spec = &stageFunc{f: func(_ *stages.Call, _, out *stages.Element) error {
				out.Tensor(1, 2, 3)
				return nil
			}}
		}, "prepare.b: item 0: gave float32 1×2×3 where float32 1×2×2 was promised"},
		{"the step fails", func(e *Experiment) {
			e.Stages[4].Spec = stepFunc(func(context.Context, *gpu.Batch) error { return errBad })
		}, "train.step: truncated file"},
		{"the step panics", func(e *Experiment) {
			e.Stages[4].Spec = stepFunc(func(context.Context, *gpu.Batch) error { panic("oops") })
		}, "train.step: panic: oops"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := chain(&countSource{items: 40}, 8, nothing, prepare("a", double), prepare("b", double))
			tt.edit(e)
			p := openTest(t, e)
			before := runtime.NumGoroutine()
			for i := range 2 { // it fails again
				_, err := p.Measure(context.Background(), Probe{}, 0, 100)
				if err == nil || i == 0 && !strings.HasPrefix(err.Error(), tt.want) {
					t.Fatalf("error %v, want %s…", err, tt.want)
				}
				var at *StageError
				if !errors.As(err, &at) {
					t.Fatalf("%T, want a *StageError", err)
				}
				clear(p.next)
			}
			settle(t, before)
		})
	}
}

// settle waits until no more goroutines run than before.
func settle(t *testing.T, before int) {
	t.Helper()
	for range 200 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// TestCancel ends runs from outside, at moments spread over them: in virtual time, where a goroutine that stays behind
// is a deadlock that synctest reports.
func TestCancel(t *testing.T) {
	for _, probe := range []Probe{{}, {To: 1}, {To: 3}, {To: 5}, {From: 1, To: 2}, {From: 2, To: 5}} {
		for _, after := range []time.Duration{0, 1, 10 * ms, 35 * ms, 300 * ms, 1111 * ms} {
			synctest.Test(t, func(t *testing.T) {
				e := chain(&countSource{items: 40}, 8, napStep(7*ms), two(nap("a", 5*ms)), nap("b", 3*ms))
				e.Stages = append(e.Stages[:4:4], Stage{Address: "transfer", Block: TransferBlock, Spec: &TransferSpec{}, Workers: 1}, e.Stages[4])
				p := openTest(t, e)
				ctx, cancel := context.WithTimeout(context.Background(), after)
				defer cancel()
				if _, err := p.Measure(ctx, probe, 0, 1000); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v after %v: error %v", probe, after, err)
				}
				// The pipeline is as good as new.
				if _, err := p.Measure(context.Background(), probe, 1, 5); err != nil {
					t.Errorf("%v after a cancelled run: %v", probe, err)
				}
			})
		}
	}
}

// TestSlowItemHoldsNobodyIn stops one item for longer than all queues can hold: its followers must wait, and go on.
func TestSlowItemHoldsNobodyIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sums []uint64
		slow := prepare("slow", func(c *stages.Call, in, out *stages.Element) error {
			if c.Item.Seq == 1 {
				time.Sleep(time.Minute)
			}
			return double(c, in, out)
		})
		slow.Workers = 4
		e := chain(&countSource{items: 10_000}, 1, hashStep(&sums), slow, prepare("b", double))
		p := openTest(t, e)
		if _, err := p.Measure(context.Background(), Probe{}, 0, 5000); err != nil {
			t.Fatal(err)
		}
		if len(sums) != 5000 {
			t.Errorf("%d steps", len(sums))
		}
	})
}

// TestCacheLimit measures with what a cache may hold, and says so where that isn't even a batch.
func TestCacheLimit(t *testing.T) {
	e := chain(&countSource{items: 40}, 8, nothing, prepare("a", double), prepare("b", double))
	e.Stages[1].Checkpoint = &Checkpoint{Name: "small", Store: "memory", Mode: "probe", Limit: 16 * 20} // 20 of 40 items
	e.Stages[2].Checkpoint = &Checkpoint{Name: "none", Store: "memory", Mode: "probe", Limit: 16 * 7}
	p := openTest(t, e)
	if _, err := p.Measure(context.Background(), Probe{To: 2}, 1, 20); err != nil {
		t.Fatal(err)
	}
	if got := p.usable(2); got != 16 {
		t.Errorf("%d items are replayed, want 2 batches of 8", got)
	}
	var limit *LimitError
	if _, err := p.Measure(context.Background(), Probe{To: 3}, 1, 20); !errors.As(err, &limit) {
		t.Errorf("error %v, want a *LimitError", err)
	}
}

// broken is a train spec that can't make its step, and returns what isn't quite nil.
type broken struct{ stepFunc }

func (broken) NewStep(gpu.Device, gpu.Input) (gpu.Step, error) { return stepFunc(nil), errBad }

// TestOpenFaults opens pipelines whose step can't be made: an error at the train block, and everything closed.
func TestOpenFaults(t *testing.T) {
	e := chain(&countSource{items: 40}, 8, nothing, prepare("a", double))
	e.Stages[3].Spec = broken{}
	p, problems, err := Open(context.Background(), e, Options{OpenDevice: func(string) (gpu.Device, error) { return new(hostDevice), nil }})
	var at *StageError
	if p != nil || len(problems) > 0 || !errors.As(err, &at) || at.Address != "train.step" || !errors.Is(err, errBad) {
		t.Errorf("Open: %v, %v, %v", p, problems, err)
	}
	var none *hostDevice
	e.Stages[3].Spec = stepFunc(nothing)
	p, _, err = Open(context.Background(), e, Options{OpenDevice: func(string) (gpu.Device, error) { return none, errBad }})
	if p != nil || !errors.Is(err, errBad) {
		t.Errorf("Open without a device: %v, %v", p, err)
	}
}

// TestAllSkippedInOneEpoch trains for one epoch in which nothing is left.
func TestAllSkippedInOneEpoch(t *testing.T) {
	e := chain(&countSource{items: 40}, 8, nothing, prepare("bad", failing(1)))
	e.Stages[1].OnError = Skip
	err := openTest(t, e).Train(context.Background(), 1, nil, nil)
	if !errors.Is(err, errAllSkipped) {
		t.Errorf("error %v, want %v", err, errAllSkipped)
	}
}

// TestEndIsAProbePoint measures the ceiling of a pipeline whose last checkpoint is off.
func TestEndIsAProbePoint(t *testing.T) {
	e := chain(&countSource{items: 40}, 8, nothing, prepare("a", double))
	e.Stages[2].Checkpoint = &Checkpoint{Name: "end", Store: "memory", Mode: "off"}
	if _, err := openTest(t, e).Measure(context.Background(), Probe{To: 3}, 1, 5); err != nil {
		t.Error(err)
	}
}
