package predict_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/predict"
	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/devices"
	"github.com/pipectl/pipectl/stages"
)

// burner is a stage of a pipeline in real time.
type burner struct {
	time    time.Duration
	spin    bool
	workers int
}

func burning(list []burner, step burner) *engine.Experiment {
	e := &engine.Experiment{Name: "shared", Bisect: engine.Bisect{Rounds: 6, Confidence: 0.95, MinEffect: 0.05}}
	e.Stages = append(e.Stages, engine.Stage{Address: "load.items", Block: stages.Load, Spec: blanks{}, Workers: 1, MaxSkips: -1})
	for i, b := range list {
		st := engine.Stage{Address: fmt.Sprintf("prepare.s%d", i+1), Block: stages.Prepare, MaxSkips: -1, Spec: &stages.Sleep{Time: b.time}, Workers: b.workers}
		if b.spin {
			st.Spec = &stages.Spin{Time: b.time}
		}
		e.Stages = append(e.Stages, st)
	}
	train := &gpu.Emulated{Time: step.time, Mode: "sleep"}
	if step.spin {
		train.Mode = "spin"
	}
	e.Stages = append(e.Stages,
		engine.Stage{Address: "batch", Block: engine.BatchBlock, Spec: &engine.BatchSpec{Size: 4, DropLast: true}},
		engine.Stage{Address: "train.step", Block: stages.Train, Spec: train})
	return e
}

// BenchmarkSharedCores measures, in real time, pipelines whose workers want more cores than there are, and reports by how much the
// predictions are off: of the probes, and of changed workers and costs.
func BenchmarkSharedCores(b *testing.B) {
	ctx := stages.WithExactWaits(b.Context())
	cores := runtime.GOMAXPROCS(0)
	measured := func(e *engine.Experiment, probes ...engine.Probe) (*engine.Plan, [][]engine.Interval) {
		p, problems, err := engine.Open(ctx, e, engine.Options{OpenDevice: devices.Open})
		if err != nil || len(problems) > 0 {
			b.Fatal(err, problems)
		}
		defer p.Close()
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores + p.Plan.Workers()))
		list := make([][]engine.Interval, len(probes))
		for range 3 {
			for i, probe := range probes {
				iv, err := p.Measure(ctx, probe, 4, 40)
				if err != nil {
					b.Fatal(err)
				}
				list[i] = append(list[i], iv)
			}
		}
		return p.Plan, list
	}
	for _, kind := range []string{"spin", "mixed", "burning step"} {
		b.Run(kind, func(b *testing.B) {
			var probes, changes errors
			for n := range b.N {
				rng := rand.New(rand.NewPCG(uint64(n), 9))
				var list []burner
				for range 3 + rng.IntN(4) {
					list = append(list, burner{time: time.Duration((0.2 + 2*rng.Float64()) * float64(ms)), spin: kind == "spin" || rng.IntN(2) == 0, workers: 1 + rng.IntN(3)})
				}
				step := burner{time: time.Duration(8 * rng.Float64() * float64(ms)), spin: kind == "burning step"}
				targets := []engine.Probe{{}}
				train := len(list) + 2
				for k := 2; k <= train; k++ {
					targets = append(targets, engine.Probe{To: k}, engine.Probe{From: k - 1, To: k})
				}
				plan, ivs := measured(burning(list, step), targets...)
				m, err := predict.Learn(plan, ivs[0], predict.Options{Cores: float64(cores), Confidence: 0.5})
				if err != nil {
					b.Fatal(err)
				}
				note := func(e *errors, predicted, measured float64, of string) {
					off := predicted/measured - 1
					*e = append(*e, max(off, -off))
					if testing.Verbose() {
						b.Logf("%d %s: predicted %.1f, measured %.1f, %+.1f %%", n, of, predicted, measured, 100*off)
					}
				}
				for i, probe := range targets {
					note(&probes, m.Probe(probe).Rate.Median, rate(ivs[i]), probe.String())
				}
				for range 3 {
					changed := slices.Clone(list)
					i := rng.IntN(len(list))
					text := ""
					if rng.IntN(2) == 0 {
						changed[i].workers = 1 + rng.IntN(6)
						text = fmt.Sprintf("prepare.s%d.workers=%d", i+1, changed[i].workers)
					} else {
						changed[i].time /= 2
						text = fmt.Sprintf("prepare.s%d.cost=0.5x", i+1)
					}
					c, err := predict.ParseChange(text)
					if err != nil {
						b.Fatal(err)
					}
					got, err := m.With(c)
					if err != nil {
						b.Fatal(err)
					}
					_, ivs := measured(burning(changed, step), engine.Probe{})
					note(&changes, got.Rate.Median, rate(ivs[0]), text)
				}
			}
			for name, e := range map[string]errors{"probes": probes, "changes": changes} {
				slices.Sort(e)
				b.ReportMetric(100*e[len(e)/2], name+"-median-error-%")
				b.ReportMetric(100*e[len(e)*9/10], name+"-p90-error-%")
			}
		})
	}
}
