package bisect_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/devices"
	"github.com/pipectl/pipectl/stages"
)

const ms = time.Millisecond

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

// sleeper is a stage of a line: its time an item and its workers.
type sleeper struct {
	time    time.Duration
	workers int
}

// line describes an experiment: stages that wait, each with its own workers, and a step that waits.
type line struct {
	stages []sleeper
	batch  int
	step   time.Duration
}

func (l line) experiment(strategy string) *engine.Experiment {
	e := &engine.Experiment{Name: "line", Bisect: engine.Bisect{Strategy: strategy, Warmup: 2, Steps: 20, Rounds: 6, Confidence: 0.95, MinEffect: 0.05}}
	e.Stages = append(e.Stages, engine.Stage{Address: "load.items", Block: stages.Load, Spec: blanks{}, Workers: 1, MaxSkips: -1})
	for i, s := range l.stages {
		e.Stages = append(e.Stages, engine.Stage{Address: fmt.Sprintf("prepare.s%d", i+1), Block: stages.Prepare,
			Spec: &stages.Sleep{Time: s.time}, Workers: s.workers, MaxSkips: -1})
	}
	e.Stages = append(e.Stages,
		engine.Stage{Address: "batch", Block: engine.BatchBlock, Spec: &engine.BatchSpec{Size: l.batch, DropLast: true}},
		engine.Stage{Address: "train.step", Block: stages.Train, Spec: &gpu.Emulated{Time: l.step, Mode: "sleep"}})
	return e
}

// search bisects the line on the real engine, in virtual time.
func (l line) search(t *testing.T, strategy string) *bisect.Report {
	t.Helper()
	return searchFor(t, l.experiment(strategy))
}

// searchFor bisects an experiment on the real engine.
func searchFor(t *testing.T, e *engine.Experiment) *bisect.Report {
	t.Helper()
	p, problems, err := engine.Open(t.Context(), e, engine.Options{OpenDevice: devices.Open, Cores: 2})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	defer p.Close()
	r, err := bisect.Search(t.Context(), p.Plan, p, bisect.Options{Cores: 2})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestQueueExperiments finds the bottlenecks of the SPDL project's queue experiments.
func TestQueueExperiments(t *testing.T) {
	one := func(times ...time.Duration) (s []sleeper) {
		for _, d := range times {
			s = append(s, sleeper{d, 1})
		}
		return s
	}
	a3 := one(10*ms, 25*ms, 40*ms)
	a3[2].workers = 2
	for _, tt := range []struct {
		name   string
		stages []sleeper
		want   string
	}{
		{"A1", one(10*ms, 25*ms, 40*ms), "prepare.s3"},
		{"A2", one(40*ms, 25*ms, 10*ms), "prepare.s1"},
		{"A3", a3, "train.step"},
		{"A4 faster", one(25 * ms), "train.step"},
		{"A4 slower", one(35 * ms), "prepare.s1"},
	} {
		for _, strategy := range []string{bisect.Bisection, bisect.Ladder} {
			t.Run(tt.name+" "+strategy, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if got := (line{tt.stages, 1, 30 * ms}).search(t, strategy); got.Bottleneck != tt.want {
						t.Errorf("%s %q, want %q; notes %v", got.Verdict, got.Bottleneck, tt.want, got.Notes)
					}
				})
			})
		}
	}
}

// TestPlanted plants a bottleneck in random lines of 3 to 9 stages, at least 1.5 times as slow as the next, in front of
// steps slower and faster than it, and searches on the real engine in virtual time: the right name every time, in about
// log2(n) + 3 probes.
func TestPlanted(t *testing.T) {
	lines, probes := 250, 0.0
	if raceEnabled {
		lines = 60
	}
	for seed := range lines {
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		n := 3 + rng.IntN(7)
		planted := rng.IntN(n)
		slowest := time.Duration(10+rng.IntN(30)) * ms
		l := line{batch: 1 + rng.IntN(3)}
		for i := range n {
			s := sleeper{workers: 1 + rng.IntN(2)}
			each := slowest
			if i != planted {
				each = time.Duration(rng.Float64() * float64(slowest) / 1.5)
			}
			s.time = each * time.Duration(s.workers)
			l.stages = append(l.stages, s)
		}
		want := fmt.Sprintf("prepare.s%d", planted+1)
		l.step = time.Duration(rng.Float64() * 0.9 * float64(slowest) * float64(l.batch))
		if rng.IntN(4) == 0 {
			want, l.step = "train.step", slowest*time.Duration(l.batch)+slowest/2
		}
		synctest.Test(t, func(t *testing.T) {
			r := l.search(t, bisect.Bisection)
			if r.Bottleneck != want {
				t.Errorf("seed %d: %s %q, want %q: %+v; notes %v", seed, r.Verdict, r.Bottleneck, want, l, r.Notes)
			}
			probes += float64(len(r.Probes) + len(r.Isolated))
		})
	}
	if mean := probes / float64(lines); mean > 7 {
		t.Errorf("%.1f probes on average", mean)
	}
}

// TestClearCaseHasNoNotes keeps the notes of a clear case short.
func TestClearCaseHasNoNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := line{[]sleeper{{10 * ms, 1}, {40 * ms, 1}, {5 * ms, 1}}, 2, 20 * ms}.search(t, bisect.Bisection)
		var notes []string
		for _, n := range r.Notes {
			notes = append(notes, n.Text)
		}
		if len(notes) > 0 {
			t.Errorf("notes: %s", strings.Join(notes, "\n"))
		}
	})
}
