package improve_test

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/engine/improve"
	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

// simLab computes the time of a step from a model: the slowest of the segments of a plan, and of the CPU that all share.
type simLab struct {
	cost  func(s engine.Stage) float64 // milliseconds of work a step
	cores float64                      // 0: nothing computes
	noise float64                      // sigma of the lognormal noise of an interval
	rng   *rand.Rand
}

func (l *simLab) Open(_ context.Context, e *engine.Experiment) (*improve.Variant, error) {
	plan, problems := engine.Compile(e, engine.Dataset{Items: 1000}, 0)
	if len(problems) > 0 {
		panic(problems[0].Summary)
	}
	return &improve.Variant{Experiment: e, Plan: plan, Bench: simBench{l, plan}, Close: func() error { return nil }}, nil
}

func (l *simLab) Search(ctx context.Context, v *improve.Variant, _ time.Duration) (*bisect.Report, error) {
	return bisect.Search(ctx, v.Plan, v.Bench, bisect.Options{Cores: int(l.cores)})
}

type simBench struct {
	*simLab
	plan *engine.Plan
}

func (b simBench) Measure(_ context.Context, p engine.Probe, _, steps int) (engine.Interval, error) {
	list := b.plan.Experiment.Stages
	var worst, cpu float64
	work := make([]float64, len(list))
	for _, g := range b.plan.Segments {
		sum := 0.0
		for i := g.First; i <= g.Last; i++ {
			if i < p.From || i >= p.To {
				work[i] = b.cost(list[i])
				sum += work[i]
			}
		}
		worst = max(worst, sum/float64(max(g.Workers, 1)))
		if g.Last < len(list)-1 {
			cpu += sum
		}
	}
	t := worst
	if b.cores > 0 {
		t = max(t, cpu/b.cores)
	}
	if b.noise > 0 {
		t *= math.Exp(b.noise * b.rng.NormFloat64())
	}
	iv := engine.Interval{Steps: steps, Samples: int64(2 * steps), Elapsed: time.Duration(t * float64(steps) * 1e6), CPU: -1, Others: -1, Throttled: -1, Swapped: -1}
	if b.cores > 0 {
		iv.CPU = cpu / t
	}
	iv.Starved = time.Duration((1 - work[len(list)-1]/t) * float64(iv.Elapsed))
	for i, s := range list {
		a := engine.Account{Address: s.Address, Workers: 1, Items: iv.Samples, Busy: time.Duration(work[i] * float64(steps) * 1e6), Queue: -1}
		for _, g := range b.plan.Segments {
			if g.First <= i && i <= g.Last {
				a.Workers = max(g.Workers, 1)
			}
		}
		if s.Block == stages.Train || s.Block == engine.TransferBlock {
			a.Items = int64(steps)
		}
		if work[i] == 0 {
			a.Items = 0
		}
		iv.Stages = append(iv.Stages, a)
	}
	return iv, nil
}

// pixels is a load spec of images.
type pixels struct{ blanks }

func (pixels) Output() stages.Type { return stages.ImageType(8, 8) }

// images is an experiment whose stages' work a simLab decides on.
func images(edit func(e *engine.Experiment)) *engine.Experiment {
	e := line(0)
	e.Stages = []engine.Stage{
		{Address: "load.items", Block: stages.Load, Spec: pixels{}, Workers: 1, MaxSkips: -1},
		{Address: "prepare.float", Block: stages.Prepare, Type: "to_float", Spec: new(stages.ToFloat), Workers: 1},
		{Address: "prepare.normalize", Block: stages.Prepare, Type: "normalize", Spec: &stages.Normalize{Mean: []float64{0}, Std: []float64{1}}, Workers: 1},
		{Address: "batch", Block: engine.BatchBlock, Spec: &engine.BatchSpec{Size: 2, DropLast: true}},
		{Address: "transfer", Block: engine.TransferBlock, Spec: new(engine.TransferSpec)},
		{Address: "train.step", Block: stages.Train, Spec: &gpu.Emulated{Mode: "sleep"}},
	}
	if edit != nil {
		edit(e)
	}
	return e
}

// costs returns a cost function of milliseconds by address.
func costs(ms map[string]float64) func(engine.Stage) float64 {
	return func(s engine.Stage) float64 { return ms[s.Address] }
}

// TestChanges tries changes of each kind, where they are right.
func TestChanges(t *testing.T) {
	pool := func(e *engine.Experiment) {
		e.Pools = []engine.Pool{{Name: "p", Workers: 1}}
		for i := range 4 {
			e.Stages[i].Pool = "p"
		}
	}
	shared := func(e *engine.Experiment) {
		for i := range 3 {
			e.Stages[i].Workers = engine.Auto
		}
	}
	for _, tt := range []struct {
		name  string
		edit  func(*engine.Experiment)
		lab   simLab
		tries []string
		ended improve.Ending
	}{
		{"a pool", pool, simLab{cost: costs(map[string]float64{"load.items": 2, "prepare.float": 6, "batch": 2, "train.step": 6})},
			[]string{"pool.p.workers = 2: ×1.7, ×1.7, kept"}, improve.StepBound},
		{"workers of its own", shared, simLab{cost: costs(map[string]float64{"load.items": 4, "prepare.float": 40, "prepare.normalize": 4, "train.step": 14})},
			[]string{"prepare.float.workers = 3: ×1.7, ×1.7, kept"}, improve.StepBound},
		{"collating apart", nil, simLab{cost: func(s engine.Stage) float64 {
			if s.Address == "prepare.normalize" {
				return 9 * float64(max(s.Workers, 1)) // its workers hinder each other
			}
			return map[string]float64{"batch": 5, "train.step": 8.8}[s.Address]
		}}, []string{
			"prepare.normalize.workers = 2: ×1.6, ×1.2, kept",
			"prepare.normalize.workers = 3: ×1.3, ×1.1, kept",
			"prepare.normalize.workers = 4: ×1.2, ×1.0, slight",
			"batch.workers = 1: ×1.2, ×1.2, kept",
		}, improve.StepBound},
		{"collating is as slow", nil, simLab{cost: costs(map[string]float64{"prepare.normalize": 6, "batch": 6, "train.step": 5})},
			[]string{"prepare.normalize.workers = 3: ×2.4, ×2.4, kept"}, improve.StepBound},
		{"pinned memory", nil, simLab{cost: func(s engine.Stage) float64 {
			if spec, ok := s.Spec.(*engine.TransferSpec); ok && !spec.Pinned {
				return 10
			}
			return 4
		}}, []string{"transfer.pinned = true: ×?, ×1.2, kept", "prepare.normalize.workers = 2: ×2.0, ×2.0, kept"}, improve.StepBound},
		{"one pass for two", nil, simLab{cost: costs(map[string]float64{"prepare.float": 9, "prepare.normalize": 6, "train.step": 7}), cores: 1},
			[]string{
				"prepare.float.workers = 2: ×1.0, ×–, not_tried",
				"prepare.float left to prepare.normalize: ×2.1, ×2.1, kept",
			}, improve.StepBound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := tt.lab.Open(t.Context(), images(tt.edit))
			if err != nil {
				t.Fatal(err)
			}
			report, err := tt.lab.Search(t.Context(), v, 0)
			if err != nil {
				t.Fatal(err)
			}
			r, err := improve.Search(t.Context(), v, report, &tt.lab, improve.Options{Cores: tt.lab.cores, MaxTries: 12})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.tries, tried(r)); d != "" {
				t.Errorf("tries (-want +got):\n%s\nfirst %s %s %v", d, report.Verdict, report.Bottleneck, report.Notes)
			}
			if r.Ended != tt.ended {
				t.Errorf("ended: %s, want %s", r.Ended, tt.ended)
			}
		})
	}
}

// TestNoise has changes that help nothing tried on a noisy machine. Few may be kept.
func TestNoise(t *testing.T) {
	kept, all := 0, 0
	for seed := range 80 {
		// However many workers there are, the work takes as long.
		l := &simLab{noise: 0.08, rng: rand.New(rand.NewPCG(uint64(seed), 1))}
		l.cost = func(s engine.Stage) float64 {
			if s.Address == "prepare.float" {
				if s.Workers == engine.Auto {
					return 20 * float64(runtime.GOMAXPROCS(0))
				}
				return 20 * float64(s.Workers)
			}
			return 4
		}
		v, err := l.Open(t.Context(), images(func(e *engine.Experiment) { e.Stages[1].Type = "of another kind" }))
		if err != nil {
			t.Fatal(err)
		}
		report, err := l.Search(t.Context(), v, 0)
		if err != nil {
			t.Fatal(err)
		}
		r, err := improve.Search(t.Context(), v, report, l, improve.Options{MaxTries: 2})
		if err != nil {
			t.Fatal(err)
		}
		for _, try := range r.Tries {
			if try.Number > 0 {
				all++
			}
			if try.Outcome == improve.Kept {
				kept++
			}
		}
	}
	t.Logf("%d of %d tries were kept", kept, all)
	if all < 80 || kept > all/50 {
		t.Errorf("%d of %d tries were kept that help nothing", kept, all)
	}
}

// TestStore computes what storing the bottleneck's output is worth.
func TestStore(t *testing.T) {
	l := &simLab{cost: costs(map[string]float64{"prepare.float": 20, "prepare.normalize": 4, "train.step": 5}), cores: 1}
	v, err := l.Open(t.Context(), images(nil))
	if err != nil {
		t.Fatal(err)
	}
	report, err := l.Search(t.Context(), v, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := improve.Search(t.Context(), v, report, l, improve.Options{Cores: 1, MaxTries: 1, Budget: 1})
	if err != nil {
		t.Fatal(err)
	}
	// 500 steps of 24 ms, or of 5 ms; 1000 samples of 3×8×8 float32.
	want := &improve.Store{Address: "prepare.float", Bytes: 768000, Epoch: 12 * time.Second, Stored: 2500 * time.Millisecond, Fill: 12 * time.Second,
		BreakEven: 12 / 9.5, Read: 307200}
	if d := cmp.Diff(want, r.Store); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
