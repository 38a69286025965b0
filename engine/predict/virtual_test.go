package predict_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/predict"
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

// sleeper is a stage of a line: its time an item and its workers; 0 workers: those of the stage before.
type sleeper struct {
	time     time.Duration
	jitter   float64
	workers  int
	prefetch int
}

// line describes an experiment: stages and a step that wait. Stages without workers of their own share those of a pool.
type line struct {
	stages []sleeper
	batch  int
	step   time.Duration
}

func (l line) experiment() *engine.Experiment {
	e := &engine.Experiment{Name: "line", Bisect: engine.Bisect{Rounds: 6, Confidence: 0.95, MinEffect: 0.05}}
	e.Stages = append(e.Stages, engine.Stage{Address: "load.items", Block: stages.Load, Spec: blanks{}, Workers: 1, MaxSkips: -1})
	for i, s := range l.stages {
		st := engine.Stage{Address: fmt.Sprintf("prepare.s%d", i+1), Block: stages.Prepare, MaxSkips: -1,
			Spec: &stages.Sleep{Time: s.time, Jitter: stages.Jitter{Fraction: s.jitter}}, Workers: s.workers, Prefetch: s.prefetch}
		if s.workers == 0 {
			before := &e.Stages[len(e.Stages)-1]
			if before.Pool == "" {
				before.Pool = fmt.Sprintf("p%d", i)
				e.Pools = append(e.Pools, engine.Pool{Name: before.Pool, Workers: before.Workers, Prefetch: before.Prefetch})
			}
			st.Pool = before.Pool
		}
		e.Stages = append(e.Stages, st)
	}
	e.Stages = append(e.Stages,
		engine.Stage{Address: "batch", Block: engine.BatchBlock, Spec: &engine.BatchSpec{Size: l.batch, DropLast: true}},
		engine.Stage{Address: "train.step", Block: stages.Train, Spec: &gpu.Emulated{Time: l.step, Mode: "sleep"}})
	return e
}

// open makes an experiment a pipeline of the real engine.
func open(t *testing.T, e *engine.Experiment) *engine.Pipeline {
	t.Helper()
	p, problems, err := engine.Open(t.Context(), e, engine.Options{OpenDevice: devices.Open})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	return p
}

// measure returns n intervals of a probe.
func measure(t *testing.T, p *engine.Pipeline, probe engine.Probe, n, steps int) []engine.Interval {
	t.Helper()
	var list []engine.Interval
	for range n {
		iv, err := p.Measure(t.Context(), probe, 4, steps)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, iv)
	}
	return list
}

// rate returns the median step rate of some intervals.
func rate(list []engine.Interval) float64 {
	var rates []float64
	for _, iv := range list {
		rates = append(rates, iv.Rate())
	}
	slices.Sort(rates)
	return (rates[(len(rates)-1)/2] + rates[len(rates)/2]) / 2
}

// random returns a line of 3 to 8 stages, with jitter up to what is given.
func random(rng *rand.Rand, jitter float64) line {
	l := line{batch: 1 + rng.IntN(4)}
	for i := range 3 + rng.IntN(6) {
		s := sleeper{time: time.Duration((1 + 30*rng.Float64()) * float64(ms)), jitter: jitter * rng.Float64(), workers: 1 + rng.IntN(4), prefetch: 1 + rng.IntN(16)}
		if i > 0 && rng.IntN(4) == 0 {
			s.workers = 0
		}
		l.stages = append(l.stages, s)
	}
	l.step = time.Duration(float64(l.batch) * 25 * rng.Float64() * float64(ms))
	return l
}

// errors are the relative errors of predictions.
type errors []float64

func (e *errors) add(t *testing.T, predicted, measured float64, of string) {
	off := math.Abs(predicted/measured - 1)
	*e = append(*e, off)
	if off > 0.15 {
		t.Logf("%s: predicted %.3f, measured %.3f", of, predicted, measured)
	}
}

// within fails the test where the median or the largest error is over its limit.
func (e errors) within(t *testing.T, median, most float64) {
	t.Helper()
	slices.Sort(e)
	m, top := e[len(e)/2], e[len(e)-1]
	t.Logf("%d predictions: median error %.2f %%, 95 %% below %.1f %%, largest %.1f %%", len(e), 100*m, 100*e[len(e)*95/100], 100*top)
	if m > median || top > most {
		t.Errorf("median error %.2f %%, want at most %.1f %%; largest %.1f %%, want at most %.0f %%", 100*m, 100*median, 100*top, 100*most)
	}
}

// TestProbes predicts every probe of random lines, in virtual time, from their baselines' accounts.
func TestProbes(t *testing.T) {
	for _, tt := range []struct {
		name               string
		jitter             float64
		median, mostWanted float64
	}{
		{"steady", 0, 0.01, 0.12},
		{"jittery", 1, 0.02, 0.15},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var off errors
			for seed := range 25 {
				l := random(rand.New(rand.NewPCG(uint64(seed), 7)), tt.jitter)
				synctest.Test(t, func(t *testing.T) {
					p := open(t, l.experiment())
					m, err := predict.Learn(p.Plan, measure(t, p, engine.Probe{}, 6, 40), predict.Options{Cores: 2, Confidence: 0.95})
					if err != nil {
						t.Fatal(err)
					}
					n := len(l.stages) + 2
					for from := range n {
						for to := from + 1; to <= n; to++ {
							if from > 0 && to > from+1 {
								break
							}
							probe := engine.Probe{From: from, To: to}
							off.add(t, m.Probe(probe).Rate.Median, rate(measure(t, p, probe, 2, 60)), fmt.Sprintf("seed %d, %v of %+v", seed, probe, l))
						}
					}
					p.Close()
				})
			}
			off.within(t, tt.median, tt.mostWanted)
		})
	}
}

// TestChanges predicts what random lines give with other workers, queues and costs, and measures such lines.
func TestChanges(t *testing.T) {
	for _, tt := range []struct {
		name               string
		jitter             float64
		median, mostWanted float64
	}{
		{"steady", 0, 0.01, 0.12},
		{"jittery", 1, 0.02, 0.15},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var off errors
			for seed := range 30 {
				rng := rand.New(rand.NewPCG(uint64(seed), 8))
				l := random(rng, tt.jitter)
				synctest.Test(t, func(t *testing.T) {
					p := open(t, l.experiment())
					m, err := predict.Learn(p.Plan, measure(t, p, engine.Probe{}, 6, 40), predict.Options{Cores: 2, Confidence: 0.95})
					p.Close()
					if err != nil {
						t.Fatal(err)
					}
					for range 4 {
						changed := l
						changed.stages = slices.Clone(l.stages)
						var changes []predict.Change
						change := func(format string, args ...any) {
							c, err := predict.ParseChange(fmt.Sprintf(format, args...))
							if err != nil {
								t.Fatal(err)
							}
							changes = append(changes, c)
						}
						for i := range changed.stages {
							s := &changed.stages[i]
							pooled := s.workers == 0 || i+1 < len(l.stages) && l.stages[i+1].workers == 0
							switch rng.IntN(4) {
							case 0:
								f := float64(rng.IntN(30)) / 10
								s.time = time.Duration(f * float64(s.time))
								change("prepare.s%d.cost=%gx", i+1, f)
							case 1:
								s.time = time.Duration(rng.IntN(40)) * ms
								change("prepare.s%d.cost=%v", i+1, s.time)
							case 2:
								if !pooled {
									s.workers = 1 + rng.IntN(8)
									change("prepare.s%d.workers=%d", i+1, s.workers)
									if i+1 < len(l.stages) { // the last one's workers put the batches together
										s.prefetch = 1 + rng.IntN(20)
										change("prepare.s%d.prefetch=%d", i+1, s.prefetch)
									}
								}
							}
						}
						if rng.IntN(2) == 0 {
							changed.step /= 2
							change("train.step.cost=0.5x")
						}
						got, err := m.With(changes...)
						if err != nil {
							t.Fatal(err)
						}
						q := open(t, changed.experiment())
						measured := rate(measure(t, q, engine.Probe{}, 2, 60))
						q.Close()
						if changed.step == 0 && measured > 1e6 {
							continue
						}
						off.add(t, got.Rate.Median, measured, fmt.Sprintf("seed %d, %v of %+v", seed, changes, l))
					}
				})
			}
			off.within(t, tt.median, tt.mostWanted)
		})
	}
}
