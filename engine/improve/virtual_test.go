package improve_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/engine/improve"
	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/devices"
	"github.com/pipectl/pipectl/stages"
)

const ms = time.Millisecond

// TestMain fixes the number of workers that the planner takes where it decides.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(2)
	m.Run()
}

// blanks is a load spec whose items cost nothing.
type blanks struct{}

func (blanks) Output() stages.Type { return stages.Type{Kind: stages.Opaque, Shape: stages.Shape{1}} }
func (blanks) Shuffled() bool      { return false }
func (blanks) Open(context.Context, uint64) (stages.Source, error) {
	return blanks{}, nil
}
func (blanks) Len() int          { return 1000 }
func (blanks) Classes() int      { return 0 }
func (blanks) Name(i int) string { return fmt.Sprint("item ", i) }
func (blanks) Close() error      { return nil }
func (b blanks) Read(_ *stages.Call, _ int, out *stages.Element) (int32, error) {
	out.Bytes(b.Output(), 1)
	return 0, nil
}

// gated is a stage that only so many workers can be at, however many there are: what accounting can't know.
type gated struct {
	time time.Duration
	gate chan struct{}
}

func (g *gated) Output(in stages.Type) (stages.Type, error) { return in, nil }
func (g *gated) New() (stages.Stage, error)                 { return g, nil }
func (g *gated) Process(_ *stages.Call, in, out *stages.Element) error {
	g.gate <- struct{}{}
	time.Sleep(g.time)
	<-g.gate
	out.Pass(in)
	return nil
}

// broken is a stage of which there can be only so many.
type broken struct {
	stages.Sleep
	left int
}

func (b *broken) New() (stages.Stage, error) {
	if b.left--; b.left < 0 {
		return nil, fmt.Errorf("there is no room for another one")
	}
	return b.Sleep.New()
}

// line is an experiment of stages that each have workers of their own, batches of 2, and a step that waits.
func line(step time.Duration, specs ...stage) *engine.Experiment {
	e := &engine.Experiment{Name: "line", Bisect: engine.Bisect{Strategy: bisect.Bisection, Warmup: 2, Steps: 20, Rounds: 6, Confidence: 0.95, MinEffect: 0.05}}
	e.Stages = append(e.Stages, engine.Stage{Address: "load.items", Block: stages.Load, Spec: blanks{}, Workers: 1, MaxSkips: -1})
	for i, s := range specs {
		e.Stages = append(e.Stages, engine.Stage{Address: fmt.Sprintf("prepare.s%d", i+1), Block: stages.Prepare, Spec: s.spec, Workers: s.workers, MaxSkips: -1})
	}
	e.Stages = append(e.Stages,
		engine.Stage{Address: "batch", Block: engine.BatchBlock, Spec: &engine.BatchSpec{Size: 2, DropLast: true}},
		engine.Stage{Address: "train.step", Block: stages.Train, Spec: &gpu.Emulated{Time: step, Mode: "sleep"}})
	return e
}

type stage struct {
	spec    any
	workers int
}

func sleep(d time.Duration, workers int) stage { return stage{&stages.Sleep{Time: d}, workers} }

// lab opens variants on the real engine, and counts those that are open.
type lab struct {
	t        *testing.T
	open     int
	searches []string // verdicts
}

func (l *lab) Open(ctx context.Context, e *engine.Experiment) (*improve.Variant, error) {
	p, problems, err := engine.Open(ctx, e, engine.Options{OpenDevice: devices.Open, Cores: 2, CPUTime: func() time.Duration { return -1 }})
	if err != nil || len(problems) > 0 {
		return nil, fmt.Errorf("%v %v", err, problems)
	}
	l.open++
	return &improve.Variant{Experiment: e, Plan: p.Plan, Bench: p, Close: func() error {
		l.open--
		return p.Close()
	}}, nil
}

func (l *lab) Search(ctx context.Context, v *improve.Variant, budget time.Duration) (*bisect.Report, error) {
	plan := *v.Plan
	e := *plan.Experiment
	e.Bisect.Budget = max(budget, 0)
	plan.Experiment = &e
	r, err := bisect.Search(ctx, &plan, v.Bench, bisect.Options{Cores: 2})
	if r != nil {
		l.searches = append(l.searches, fmt.Sprint(r.Verdict, " ", r.Bottleneck))
	}
	return r, err
}

// search searches an experiment and then for improvements, in virtual time.
func search(t *testing.T, e func() *engine.Experiment, o improve.Options, then func(*improve.Result, *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &lab{t: t}
		v, err := l.Open(t.Context(), e())
		if err != nil {
			t.Fatal(err)
		}
		report, err := l.Search(t.Context(), v, 0)
		if err != nil {
			t.Fatal(err)
		}
		if o.MaxTries == 0 {
			o.MaxTries = 8
		}
		o.Cores = 2
		r, err := improve.Search(t.Context(), v, report, l, o)
		if err != nil {
			t.Error(err)
		}
		if l.open != 1 {
			t.Errorf("%d variants are open, want the first alone", l.open)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
		then(r, l)
	})
}

// tried words tries: what was changed, what was foretold and measured, and the outcome.
func tried(r *improve.Result) []string {
	var list []string
	for _, try := range r.Tries {
		foretold, measured := "?", "–"
		if try.Predicted != nil {
			foretold = fmt.Sprintf("%.1f", try.Predicted.Median)
		}
		if try.Speedup != nil {
			measured = fmt.Sprintf("%.1f", try.Speedup.Median)
		}
		list = append(list, fmt.Sprintf("%s: ×%s, ×%s, %s", improve.Text(try.Changes), foretold, measured, try.Outcome))
	}
	return list
}

func changes(r *improve.Result) []string {
	list := []string{}
	for _, c := range r.Changes {
		list = append(list, c.String()+" for "+c.Was)
	}
	return list
}

// TestPlanted plants pipelines whose right changes are known.
func TestPlanted(t *testing.T) {
	for _, tt := range []struct {
		name     string
		e        func() *engine.Experiment // made in the bubble of virtual time
		o        improve.Options
		tries    []string
		changes  []string
		searches []string
		ended    improve.Ending
		total    float64 // speed-up
	}{
		{
			name:     "one more worker",
			e:        func() *engine.Experiment { return line(22*ms, sleep(2*ms, 1), sleep(20*ms, 1), sleep(5*ms, 1)) },
			tries:    []string{"prepare.s2.workers = 2: ×1.8, ×1.8, kept"},
			changes:  []string{"prepare.s2.workers = 2 for 1"},
			searches: []string{"input_bound prepare.s2", "step_bound train.step"},
			ended:    improve.StepBound, total: 40. / 22,
		},
		{
			name: "two changes in sequence",
			e:    func() *engine.Experiment { return line(23*ms, sleep(14*ms, 1), sleep(22*ms, 1), sleep(2*ms, 1)) },
			tries: []string{
				"prepare.s2.workers = 2: ×1.6, ×1.6, kept",
				"prepare.s1.workers = 2: ×1.2, ×1.2, kept",
			},
			changes:  []string{"prepare.s2.workers = 2 for 1", "prepare.s1.workers = 2 for 1"},
			searches: []string{"input_bound prepare.s2", "input_bound prepare.s1", "step_bound train.step"},
			ended:    improve.StepBound, total: 44. / 23,
		},
		{
			name: "a stage at a time, then both",
			e:    func() *engine.Experiment { return line(10*ms, sleep(16*ms, 1), sleep(40*ms, 1), sleep(2*ms, 1)) },
			tries: []string{
				"prepare.s2.workers = 3: ×2.5, ×2.5, kept",
				"prepare.s1.workers = 2: ×1.2, ×1.2, kept",
				"prepare.s2.workers = 5: ×1.7, ×1.7, kept",
				"prepare.s1.workers = 4, prepare.s2.workers = 8: ×1.6, ×1.6, kept",
			},
			changes: []string{"prepare.s2.workers = 8 for 1", "prepare.s1.workers = 4 for 1"},
			searches: []string{"input_bound prepare.s2", "input_bound prepare.s1", "input_bound prepare.s2", "undecided ",
				"step_bound train.step"},
			ended: improve.StepBound, total: 8,
		},
		{
			name:     "two that are equally slow",
			e:        func() *engine.Experiment { return line(22*ms, sleep(20*ms, 1), sleep(20*ms, 1), sleep(2*ms, 1)) },
			tries:    []string{"prepare.s1.workers = 2, prepare.s2.workers = 2: ×1.8, ×1.8, kept"},
			changes:  []string{"prepare.s1.workers = 2 for 1", "prepare.s2.workers = 2 for 1"},
			searches: []string{"undecided ", "step_bound train.step"},
			ended:    improve.StepBound, total: 40. / 22,
		},
		{
			name: "nothing helps",
			e: func() *engine.Experiment {
				return line(10*ms, stage{&gated{20 * ms, make(chan struct{}, 1)}, 1})
			},
			tries: []string{
				"prepare.s1.workers = 4: ×4.0, ×1.0, slight",
				"prepare.s1.workers = 2: ×2.0, ×1.0, slight",
				`load.items.workers = "auto", prepare.s1.workers = "auto": ×2.0, ×1.0, slight`,
			},
			changes:  []string{},
			searches: []string{"input_bound prepare.s1"},
			ended:    improve.NothingHelps,
		},
		{
			name: "only two can be at it",
			e: func() *engine.Experiment {
				return line(10*ms, stage{&gated{20 * ms, make(chan struct{}, 2)}, 1}, sleep(4*ms, 1))
			},
			tries: []string{
				"prepare.s1.workers = 4: ×4.0, ×2.0, kept",
				"prepare.s1.workers = 2: ×?, ×1.0, kept",
				"prepare.s1.workers = 4: ×2.0, ×1.0, slight",
				"prepare.s1.workers = 3: ×1.5, ×1.0, slight",
			},
			changes:  []string{"prepare.s1.workers = 2 for 1"},
			searches: []string{"input_bound prepare.s1", "input_bound prepare.s1"},
			ended:    improve.NothingHelps, total: 2,
		},
		{
			name: "no room for more",
			e: func() *engine.Experiment {
				return line(10*ms, stage{&broken{stages.Sleep{Time: 20 * ms}, 1}, 1})
			},
			tries: []string{
				"prepare.s1.workers = 4: ×4.0, ×–, failed",
				"prepare.s1.workers = 2: ×2.0, ×–, failed",
				`load.items.workers = "auto", prepare.s1.workers = "auto": ×2.0, ×–, failed`,
			},
			changes:  []string{},
			searches: []string{"input_bound prepare.s1"},
			ended:    improve.NothingHelps,
		},
		{
			name:     "the step is the slowest",
			e:        func() *engine.Experiment { return line(50*ms, sleep(2*ms, 1)) },
			changes:  []string{},
			searches: []string{"step_bound train.step"},
			ended:    improve.StepBound,
		},
		{
			name:     "tries run out",
			e:        func() *engine.Experiment { return line(10*ms, sleep(15*ms, 1), sleep(40*ms, 1)) },
			o:        improve.Options{MaxTries: 1},
			tries:    []string{"prepare.s2.workers = 3: ×2.7, ×2.7, kept"},
			changes:  []string{"prepare.s2.workers = 3 for 1"},
			searches: []string{"input_bound prepare.s2", "input_bound prepare.s1"},
			ended:    improve.MaxTries, total: 80. / 30,
		},
		{
			name:     "the budget runs out",
			e:        func() *engine.Experiment { return line(10*ms, sleep(15*ms, 1), sleep(40*ms, 1)) },
			o:        improve.Options{Budget: 10 * time.Second},
			tries:    []string{"prepare.s2.workers = 3: ×2.7, ×2.7, unfinished"},
			changes:  []string{},
			searches: []string{"input_bound prepare.s2"},
			ended:    improve.OutOfBudget,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			search(t, tt.e, tt.o, func(r *improve.Result, l *lab) {
				if d := cmp.Diff(tt.tries, tried(r)); d != "" {
					t.Errorf("tries (-want +got):\n%s", d)
				}
				if d := cmp.Diff(tt.changes, changes(r)); d != "" {
					t.Errorf("changes (-want +got):\n%s", d)
				}
				if d := cmp.Diff(tt.searches, l.searches); d != "" {
					t.Errorf("searches (-want +got):\n%s", d)
				}
				if r.Ended != tt.ended {
					t.Errorf("ended: %s, want %s", r.Ended, tt.ended)
				}
				switch {
				case tt.total == 0 && r.Speedup != nil:
					t.Errorf("×%.2f in all, want none", r.Speedup.Median)
				case tt.total > 0 && (r.Speedup == nil || math.Abs(r.Speedup.Median-tt.total) > 0.01*tt.total):
					t.Errorf("%+v in all, want ×%.2f", r.Speedup, tt.total)
				}
			})
		})
	}
}

// TestRandomLines improves random lines of stages that wait, which workers can always be added to: it goes on until the step is the
// slowest, and the rate is then the step's.
func TestRandomLines(t *testing.T) {
	undecided := 0
	for seed := range 30 {
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		step := time.Duration(10+rng.IntN(20)) * ms
		var specs []stage
		for range 1 + rng.IntN(4) {
			specs = append(specs, sleep(time.Duration(1+rng.IntN(40))*ms, 1+rng.IntN(2)))
		}
		search(t, func() *engine.Experiment { return line(step, specs...) }, improve.Options{MaxTries: 20}, func(r *improve.Result, l *lab) {
			// Where several stages are about as slow, or what is left is about min_effect, it may end undecided.
			if r.Ended == improve.Undecided {
				undecided++
			} else if r.Ended != improve.StepBound {
				t.Errorf("seed %d: ended with %s: %v, searches %v", seed, r.Ended, tried(r), l.searches)
			} else if want := 1 / step.Seconds(); r.Last != nil && math.Abs(r.Last.Median/want-1) > 0.06 {
				t.Errorf("seed %d: %.1f steps/s, want %.1f: %v", seed, r.Last.Median, want, tried(r))
			}
			if len(r.Tries) > 8 {
				t.Errorf("seed %d: %d tries: %v", seed, len(r.Tries), tried(r))
			}
		})
	}
	if undecided > 3 {
		t.Errorf("%d searches ended undecided", undecided)
	}
}

// TestInterrupted ends a search while it measures a try.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lab{t: t}
		v, err := l.Open(t.Context(), line(10*ms, sleep(20*ms, 1)))
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		report, err := l.Search(t.Context(), v, 0)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		r, err := improve.Search(ctx, v, report, l, improve.Options{MaxTries: 8, Observe: func(e improve.Event) {
			if d, ok := e.(improve.RoundDone); ok && d.Round == 3 {
				cancel()
			}
		}})
		if err == nil || r.Ended != improve.Interrupted || l.open != 1 || len(r.Changes) > 0 {
			t.Errorf("%v, ended with %s, %d open, changes %v", err, r.Ended, l.open, r.Changes)
		}
		want := []improve.Try{{Number: 1, Bottleneck: "prepare.s1", Outcome: improve.Unfinished, Reason: "It was stopped after 2 rounds.", Rounds: 2}}
		if d := cmp.Diff(want, r.Tries, cmpopts.IgnoreFields(improve.Try{}, "Changes", "Predicted", "Before", "After", "Speedup")); d != "" {
			t.Error(d)
		}
	})
}
