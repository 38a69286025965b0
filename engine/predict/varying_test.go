package predict_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/predict"
	"github.com/pipectl/pipectl/stages"
)

// moody is a stage whose items take exponential times, which nothing in its attributes tells.
type moody struct {
	mean time.Duration
	seed uint64
}

func (m moody) Output(in stages.Type) (stages.Type, error) { return in, nil }
func (m moody) New() (stages.Stage, error)                 { return m, nil }
func (m moody) Process(c *stages.Call, in, out *stages.Element) error {
	out.Pass(in)
	time.Sleep(time.Duration(rand.New(rand.NewPCG(m.seed, uint64(c.Item.Seq))).ExpFloat64() * float64(m.mean)))
	return nil
}

// moody makes the stages of a line take exponential times.
func (l line) moody() *engine.Experiment {
	e := l.experiment()
	for i, s := range l.stages {
		e.Stages[i+1].Spec = moody{s.time, uint64(i)}
	}
	return e
}

// TestVaryingWork predicts lines of about equally slow stages with short queues between them, which are a good deal slower than their
// slowest stage. How much the work varies must be found out from the baseline.
func TestVaryingWork(t *testing.T) {
	var off errors
	for seed := range 12 {
		rng := rand.New(rand.NewPCG(uint64(seed), 11))
		l := line{batch: 1 + rng.IntN(3), step: ms}
		for range 3 + rng.IntN(3) {
			s := sleeper{workers: 1 + rng.IntN(2), prefetch: 1 + rng.IntN(4)}
			s.time = time.Duration(float64(s.workers) * (8 + 4*rng.Float64()) * float64(ms))
			l.stages = append(l.stages, s)
		}
		synctest.Test(t, func(t *testing.T) {
			p := open(t, l.moody())
			baseline := measure(t, p, engine.Probe{}, 6, 500)
			m, err := predict.Learn(p.Plan, baseline, predict.Options{Cores: 2, Confidence: 0.95})
			if err != nil {
				t.Fatal(err)
			}
			off.add(t, m.Probe(engine.Probe{}).Rate.Median, rate(baseline), fmt.Sprintf("seed %d of %+v", seed, l))
			for k := 1; k <= len(l.stages); k++ {
				for _, probe := range []engine.Probe{{To: k}, {From: k, To: k + 1}} {
					off.add(t, m.Probe(probe).Rate.Median, rate(measure(t, p, probe, 2, 500)), fmt.Sprintf("seed %d, %v of %+v", seed, probe, l))
				}
			}
			p.Close()
			for i := range l.stages {
				changed := l
				changed.stages = slices.Clone(l.stages)
				changed.stages[i].workers *= 2
				c, err := predict.ParseChange(fmt.Sprintf("prepare.s%d.workers=%d", i+1, changed.stages[i].workers))
				if err != nil {
					t.Fatal(err)
				}
				got, err := m.With(c)
				if err != nil {
					t.Fatal(err)
				}
				q := open(t, changed.moody())
				off.add(t, got.Rate.Median, rate(measure(t, q, engine.Probe{}, 2, 500)), fmt.Sprintf("seed %d, %v of %+v", seed, c, l))
				q.Close()
			}
		})
	}
	off.within(t, 0.03, 0.15)
}
