//go:build cuda

package engine

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/cuda"
	"github.com/pipectl/pipectl/gpu/cuda/driver"
	"github.com/pipectl/pipectl/gpu/cuda/emulator/control"
)

// trained trains for two epochs on the emulated GPU, measures the caches around the device's stages, and returns the parameters after
// the training. At the end nothing may be left on the device.
func trained(t *testing.T, e *Experiment) []float32 {
	t.Helper()
	emulator, err := control.Open(os.Getenv(driver.Variable))
	if err != nil {
		t.Fatal(err)
	}
	emulator.Reset()
	p, problems, err := Open(context.Background(), e, Options{OpenDevice: func(string) (gpu.Device, error) { return cuda.Open("Test.") }})
	if err != nil || len(problems) > 0 {
		t.Fatalf("Open: %v, %v", problems, err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if s := emulator.State(); s.Held != (control.Held{}) || s.Left != (control.Held{}) {
			t.Errorf("after Close the driver holds %+v, and freed %+v itself", s.Held, s.Left)
		}
	}()
	if _, err := p.Train(context.Background(), 2, nil); err != nil {
		t.Fatal(err)
	}
	params, err := p.Step().(gpu.Classifier).Params(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	transfer, train := p.Plan.transfer, p.Plan.train
	for _, probe := range []Probe{{}, {To: transfer}, {To: train}, {From: transfer, To: train}} {
		iv, err := p.Measure(context.Background(), probe, 1, 5)
		if err != nil {
			t.Fatalf("%v: %v", probe, err)
		}
		for i := transfer; i < train; i++ {
			a := iv.Stages[i]
			if works := probe.To <= transfer; works != (a.Items > 0) || works && a.Busy <= 0 {
				t.Errorf("%v: %s did %d batches in %v", probe, a.Address, a.Items, a.Busy)
			}
		}
	}
	return params
}

// TestCUDADeviceStages trains on batches whose last stages run on the host or on the GPU: where they run may not change a bit of what
// is learnt.
func TestCUDADeviceStages(t *testing.T) {
	if os.Getenv(driver.Variable) == "" && os.Getenv("PIPECTL_REQUIRE_CUDA") != "1" {
		t.Skip("the emulated driver isn't named: run make test-cuda")
	}
	if err := driver.Open(); err != nil {
		t.Fatal(err)
	}
	var want []float32
	for _, tc := range []struct {
		workers, onDevice int
		convert           string
		store             string // of the cache right above train
	}{
		{1, 0, ConvertInPlace, MemoryStore},
		{2, 0, ConvertOnDevice, MemoryStore},
		{3, 3, ConvertInPlace, DeviceStore},
		{2, 5, ConvertInPlace, DeviceStore},
	} {
		t.Run(fmt.Sprintf("%+v", tc), func(t *testing.T) {
			e := augmented(&gpu.CNN{Device: "cuda", Width: 4, Depth: 1, Stride: 1, LearningRate: 0.1, Momentum: 0.9, Precision: "float32"}, tc.workers, tc.onDevice, tc.convert)
			e.Stages[len(e.Stages)-2].Checkpoint = &Checkpoint{Name: "ready", Store: tc.store, Limit: 1 << 20}
			got := trained(t, e)
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("parameters %v\nwant       %v", got[:8], want[:8])
			}
		})
	}
}
