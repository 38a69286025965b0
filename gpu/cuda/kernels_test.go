//go:build cuda

package cuda

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/cpu"
	"github.com/pipectl/pipectl/gpu/cuda/driver"
	"github.com/pipectl/pipectl/gpu/cuda/emulator/control"
	"github.com/pipectl/pipectl/stages"
)

// rerun executes tests of this binary in a process of its own, where the emulated driver starts with other settings.
func rerun(t *testing.T, pattern string, settings ...string) (output string, passed bool) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run", pattern)
	c.Env = append(os.Environ(), settings...)
	text, err := c.CombinedOutput()
	return string(text), err == nil
}

// interpret makes the emulated driver interpret the PTX, with checks of bounds and races, where it else runs what g++ makes of
// the same sources.
const interpret = "PIPECTL_EMULATOR_BACKEND=ptx"

// The PTX that ships does what its sources do.
func TestPTX(t *testing.T) {
	emulator(t)
	if output, passed := rerun(t, "^Test(Gradients|GradientsTF32|Refuses|Apply)$/^(one|colour|two|stride|three|not|inf|all)", interpret); !passed {
		t.Error(output)
	}
}

// plantedFault names, in a process that TestFaultyKernels has started, the fault to run into.
const plantedFault = "PIPECTL_TEST_FAULT"

// What is broken in a kernel comes out. Each fault is tried in a process of its own.
func TestFaultyKernels(t *testing.T) {
	if fault := os.Getenv(plantedFault); fault != "" {
		runInto(t, fault)
		return
	}
	emulator(t)
	for _, tc := range []struct {
		fault    string
		settings []string
		want     string // what the test then says
	}{
		{"none", []string{interpret}, ""},
		{"race", []string{interpret}, `conv_forward_64: threads 0 and \d+ touch the same shared memory without a barrier between them`},
		{"bounds", []string{interpret}, `CUDA_ERROR_ILLEGAL_ADDRESS`},
		{"stale", nil, `finding the kernel sgd_momentum: CUDA_ERROR_NOT_FOUND`},
		{"barrier", []string{driver.Variable + "=" + withoutBarrier(t)}, `gradient \d+ of the weights of layer 0`},
	} {
		t.Run(tc.fault, func(t *testing.T) {
			output, passed := rerun(t, "^TestFaultyKernels$", append(tc.settings, plantedFault+"="+tc.fault)...)
			if passed != (tc.want == "") || !regexp.MustCompile(tc.want).MatchString(output) {
				t.Errorf("passed: %v, want %q in\n%s", passed, tc.want, output)
			}
		})
	}
}

// runInto compares gradients with the fault in the kernels.
func runInto(t *testing.T, fault string) {
	modules := slices.Clone(images())
	edit := func(kernel, old, new string) {
		for i, m := range modules {
			if strings.Contains(m, ".entry "+kernel+"(") && strings.Contains(m, old) {
				modules[i] = strings.ReplaceAll(m, old, new)
				return
			}
		}
		t.Fatalf("the kernel %s has no %q", kernel, old)
	}
	switch fault {
	case "race": // no barriers
		edit("conv_forward_64", "bar.sync \t0;", "")
	case "bounds": // whatever the number of parameters, threads beyond it go on
		edit("sgd_momentum", "setp.ge.s32 \t%p1, ", "setp.lt.s32 \t%p1, 0, -1; //")
	case "stale": // the rate is a double in the PTX, and a float in the source
		edit("sgd_momentum", ".param .f32 sgd_momentum_param_2", ".param .f64 sgd_momentum_param_2")
	}
	d, err := open("Test.", modules)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() }) // whose error is the one that the test has met
	c := gpu.CNN{Width: 36, Depth: 1, Stride: 1}
	in := gpu.Input{Sample: stages.TensorType(3, 7, 9), Batch: 3, Classes: 4, Seed: 7}
	b := randomBatch(in.Sample, 3, 4, 5)
	want, _ := gradients(t, cpu.New("Reference."), c, in, b)
	got, _ := gradients(t, d, c, in, b)
	compareGradients(t, &c, in, got, want, 1e-3)
}

// withoutBarrier builds the emulated driver anew, with kernels that lack the barrier between the turns of a product.
func withoutBarrier(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, part := range []string{"driver/include", "emulator", "kernels"} {
		if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(part)); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "kernels", "tile.h")
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const last = "\t\t}\n\t\t__syncthreads();\n\t}\n"
	if strings.Count(string(source), last) != 1 {
		t.Fatalf("%s has not one barrier at the end of a turn", file)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(source), last, "\t\t}\n\t}\n", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(dir, "libcuda.so.1")
	if output, err := exec.CommandContext(t.Context(), filepath.Join(dir, "emulator", "build"), library).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return library
}

// A step that doesn't wait for its batch, and a copy that doesn't wait for the step that reads its buffer, give another loss:
// the emulated GPU does everything as late as it may.
func TestMissingWaits(t *testing.T) {
	emulator(t)
	in := gpu.Input{Sample: stages.TensorType(3, 8, 8), Batch: 4, Classes: 3, Seed: 3}
	c := gpu.CNN{Width: 4, Depth: 1, Stride: 1, LearningRate: 0.1}
	first, second := randomBatch(in.Sample, 4, 3, 1), randomBatch(in.Sample, 4, 3, 2)
	for _, tc := range []struct {
		name         string
		await, reads bool // the waits that are there
	}{
		{"all there", true, true},
		{"no wait for the copy", false, true},
		{"no wait for the step", true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := openDevice(t)
			want := train(t, d, classifierOn(t, d, c, in), first)
			train(t, d, classifierOn(t, d, c, in), second) // the buffer then holds another batch
			s := classifierOn(t, d, c, in).(*classifier)

			past := d.past(t)
			batch, err := d.Upload(t.Context(), first)
			if err != nil {
				t.Fatal(err)
			}
			buf := batch.Memory.(*buffer)
			copied := buf.copied
			if !tc.await { // but for what is over
				buf.copied = past
			}
			e, err := s.Submit(t.Context(), batch)
			if err != nil {
				t.Fatal(err)
			}
			buf.copied = copied
			var waited error
			if !tc.await {
				waited = e.Wait(t.Context()) // before Upload waits for the last copy
			}
			buf.isRead = tc.reads
			batch.Free()
			next, err := d.Upload(t.Context(), second)
			if err != nil {
				t.Fatal(err)
			}
			if next.Memory != any(buf) {
				t.Fatal("the second batch has another buffer")
			}
			if !tc.reads {
				if err := next.Ready.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if tc.await {
				waited = e.Wait(t.Context())
			}
			loss, _ := e.(*step).read()
			if all := tc.await && tc.reads; (waited == nil && loss == want) != all {
				t.Errorf("loss %v, %v, and with all waits it is %v", loss, waited, want)
			}
			next.Free()
		})
	}
}

// past returns an event that is over.
func (d *Device) past(tb testing.TB) *event {
	tb.Helper()
	var e *event
	err := d.do(func() (err error) {
		if e, err = d.begin("nothing", d.compute); err != nil {
			return err
		}
		return e.finish(d.compute)
	})
	if err == nil {
		err = e.Wait(tb.Context())
	}
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// session trains and predicts, and returns the errors it meets; it goes on where a program would.
func session() error {
	d, err := Open("Test.")
	if err != nil {
		return err
	}
	return errors.Join(trainOn(d), d.Close())
}

func trainOn(d *Device) (err error) {
	ctx := context.Background()
	in := gpu.Input{Sample: stages.TensorType(3, 4, 4), Batch: 2, Classes: 3}
	s, err := d.NewClassifier(&gpu.CNN{Width: 2, Depth: 2, Stride: 1, Precision: "tf32"}, in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var last *gpu.Batch
	for i := range 2 {
		batch, err := d.Upload(ctx, randomBatch(in.Sample, 2, 3, uint64(i)))
		if err != nil {
			return err
		}
		defer batch.Free()
		e, err := s.Submit(ctx, batch)
		if err == nil {
			err = e.Wait(ctx)
		}
		if err != nil {
			return err
		}
		last = batch
	}
	_, lossErr := s.Loss()
	_, paramsErr := s.Params(ctx)
	return errors.Join(lossErr, paramsErr, s.Predict(ctx, last, make([]int32, 2)))
}

// Whichever call of the driver fails in a session, and whether the device is lost by it or not, the error says so and nothing
// is left behind.
func TestEveryCallOfTrainingFails(t *testing.T) {
	e := emulator(t)
	e.Fail(0, 0)
	if err := session(); err != nil {
		t.Fatal(err)
	}
	calls := e.State().Calls
	for _, result := range []driver.Result{driver.OutOfMemory, 719} {
		for n := int64(1); n <= calls; n++ {
			e.Reset()
			e.Fail(n, int(result))
			err := session()
			if !errors.Is(err, result) {
				t.Errorf("call %d of %d fails with %d, and the error is: %v", n, calls, result, err)
				continue
			}
			// What can't be freed goes with the context, as does what a lost device had.
			s, freed := e.State(), regexp.MustCompile("freeing|ending|unloading|leaving").MatchString(err.Error())
			if s.Held != (control.Held{}) && !freed || s.Left != (control.Held{}) && !freed && !result.Fatal() {
				t.Errorf("call %d fails with %d (%v): left %+v and %+v", n, result, err, s.Held, s.Left)
			}
		}
	}
}
