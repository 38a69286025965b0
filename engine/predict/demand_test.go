package predict

import (
	"math"
	"testing"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

// TestDemandOf takes an interval of 100 steps of 10 ms apart: a load stage, one that a user wrote, one that computes, and a step.
func TestDemandOf(t *testing.T) {
	for _, tt := range []struct {
		name        string
		busy        [4]float64 // ms a step
		step        any
		cpu         float64 // cores busy
		cores       float64
		wantCPU     [4]float64 // ms a step
		wantWait    [4]float64
		wantExtra   float64
		wantCores   float64 // -1: all
		wantThreads int
	}{
		{"nothing but waiting", [4]float64{4, 0, 0, 9}, &gpu.Emulated{Mode: "sleep"}, 0, 2, [4]float64{}, [4]float64{4, 0, 0, 9}, 0, -1, 1},
		{"one computes, one may", [4]float64{4, 0, 5, 0}, &gpu.Emulated{Mode: "sleep"}, 0.7, 2, [4]float64{2, 0, 5, 0}, [4]float64{2, 0, 0, 0}, 0, -1, 1},
		{"two may, alike", [4]float64{4, 8, 0, 0}, &gpu.Emulated{Mode: "sleep"}, 0.6, 2, [4]float64{2, 4, 0, 0}, [4]float64{2, 4, 0, 0}, 0, -1, 1},
		{"two share a core", [4]float64{0, 10, 10, 0}, &gpu.Emulated{Mode: "sleep"}, 1, 1, [4]float64{0, 5, 5, 0}, [4]float64{}, 0, -1, 1},
		{"others took half the core", [4]float64{0, 0, 10, 0}, &gpu.Emulated{Mode: "sleep"}, 0.5, 1, [4]float64{0, 0, 5, 0}, [4]float64{}, 0, 0.5, 1},
		{"a step that tells its CPU time", [4]float64{0, 0, 10, 4}, &gpu.Emulated{Mode: "spin"}, 1, 1, [4]float64{0, 0, 6, 4}, [4]float64{}, 0, -1, 1},
		{"a step on four threads", [4]float64{0, 0, 2, 5}, nil, 2.2, 8, [4]float64{0, 0, 2, 20}, [4]float64{}, 0, -1, 4},
		{"more CPU time than work", [4]float64{0, 0, 2, 5}, &gpu.Emulated{Mode: "sleep"}, 0.5, 8, [4]float64{0, 0, 2, 0}, [4]float64{0, 0, 0, 5}, 3, -1, 1},
		{"unknown CPU time", [4]float64{1, 2, 3, 4}, nil, -1, 8, [4]float64{}, [4]float64{1, 2, 3, 4}, 0, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := &engine.Experiment{Stages: []engine.Stage{
				{Address: "load.a", Block: stages.Load}, {Address: "prepare.b", Block: stages.Prepare, Type: "mine"},
				{Address: "prepare.c", Block: stages.Prepare, Spec: &stages.Spin{}}, {Address: "train.d", Block: stages.Train, Spec: tt.step},
			}}
			iv := engine.Interval{Steps: 100, Samples: 100, Elapsed: time.Second, CPU: tt.cpu}
			plan := &engine.Plan{Experiment: e}
			for i, s := range e.Stages {
				iv.Stages = append(iv.Stages, engine.Account{Address: s.Address, Workers: 1, Items: 100, Busy: time.Duration(tt.busy[i] * 1e8)})
				plan.Segments = append(plan.Segments, engine.Segment{First: i, Last: i, Workers: 1})
			}
			m, err := Learn(plan, []engine.Interval{iv}, Options{Cores: tt.cores, Confidence: 0.95})
			if err != nil {
				t.Fatal(err)
			}
			d := m.rounds[byCPU][0]
			cores := tt.wantCores
			if cores < 0 {
				cores = tt.cores
			}
			off := math.Abs(1e3*d.extra-tt.wantExtra) + math.Abs(d.cores-cores) + math.Abs(float64(d.threads-tt.wantThreads))
			for i := range tt.busy {
				off += math.Abs(1e3*d.cpu[i]-tt.wantCPU[i]) + math.Abs(1e3*d.wait[i]-tt.wantWait[i])
			}
			if off > 1e-3 {
				t.Errorf("%+v, want on a core %v, waiting %v, extra %g, of %g cores, %d threads", d, tt.wantCPU, tt.wantWait, tt.wantExtra, cores, tt.wantThreads)
			}
		})
	}
}
