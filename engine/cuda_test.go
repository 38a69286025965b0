//go:build cuda

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/cuda"
	"github.com/pipectl/pipectl/gpu/cuda/driver"
	"github.com/pipectl/pipectl/gpu/cuda/emulator/control"
)

// emulated returns the emulated driver. Where no driver is named the test is skipped, unless one is asked for.
func emulated(t *testing.T) *control.Emulator {
	t.Helper()
	if os.Getenv(driver.Variable) == "" && os.Getenv("PIPECTL_REQUIRE_CUDA") != "1" {
		t.Skip("the emulated driver isn't named: run make test-cuda")
	}
	if err := driver.Open(); err != nil {
		t.Fatal(err)
	}
	emulator, err := control.Open(os.Getenv(driver.Variable))
	if err != nil {
		t.Fatal(err)
	}
	emulator.Reset()
	return emulator
}

func openCUDA(string) (gpu.Device, error) {
	d, err := cuda.Open("Test.")
	if err != nil {
		return nil, err
	}
	return d, nil
}

// smallCNN is a step that the emulated GPU does quickly.
func smallCNN() *gpu.CNN {
	return &gpu.CNN{Device: "cuda", Width: 4, Depth: 1, Stride: 1, LearningRate: 0.1, Momentum: 0.9, Precision: "float32"}
}

// trained trains for two epochs on the emulated GPU, measures the caches around the device's stages, and returns the parameters after
// the training. At the end nothing may be left on the device.
func trained(t *testing.T, e *Experiment) []float32 {
	t.Helper()
	emulator := emulated(t)
	p, problems, err := Open(context.Background(), e, Options{OpenDevice: openCUDA})
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
	if err := p.Train(context.Background(), 2, nil, nil); err != nil {
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
			e := augmented(smallCNN(), tc.workers, tc.onDevice, tc.convert)
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

// TestCUDACallsFail lets calls of the driver fail while a pipeline with stages on the device is opened, run and closed: the run ends with
// the driver's error, and nothing is left on the device.
func TestCUDACallsFail(t *testing.T) {
	emulator := emulated(t)
	program := func() error {
		p, problems, err := Open(context.Background(), augmented(smallCNN(), 2, 3, ConvertInPlace), Options{OpenDevice: openCUDA})
		if err != nil || len(problems) > 0 {
			return err
		}
		err = p.Train(context.Background(), 1, nil, nil)
		return errors.Join(err, p.Close())
	}
	emulator.Fail(0, 0)
	if err := program(); err != nil {
		t.Fatal(err)
	}
	calls := emulator.State().Calls
	const invalid, lost, every = 1, 719, 7
	for n := int64(1); n < calls/2; n += every { // the later ones aren't made in each run
		for _, result := range []int{invalid, lost} {
			emulator.Reset()
			emulator.Fail(n, result)
			err := program()
			if !errors.Is(err, driver.Result(result)) {
				t.Errorf("call %d of %d fails with %d, and the error is %v", n, calls, result, err)
			}
			if s := emulator.State(); s.Held != (control.Held{}) {
				t.Errorf("call %d fails with %d (%v): left %+v", n, result, err, s.Held)
			}
		}
	}
}
