//go:build cuda

package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/pipectl/pipectl/gpu/cuda/driver"
	"github.com/pipectl/pipectl/gpu/cuda/emulator/control"
	"github.com/pipectl/pipectl/stages"
)

func TestOpenRefuses(t *testing.T) {
	for _, tc := range []struct{ name, variable, value, ptx, want string }{
		{"old GPU", "CAPABILITY", "61", selftest, "the GPU emulated GPU has compute capability 6.1, and the kernels need 7.0"},
		{"old driver", "VERSION", "11020", strings.Replace(selftest, ".version 6.0", ".version 7.4", 1),
			"the CUDA driver is too old for the kernels: it serves CUDA 11.2; update it (CUDA_ERROR_UNSUPPORTED_PTX_VERSION (the provided PTX was compiled with an unsupported toolchain.))"},
		{"kernels for a newer GPU", "CAPABILITY", "75", strings.Replace(selftest, ".target sm_70", ".target sm_80", 1),
			"the kernels can't run on the GPU emulated GPU: CUDA_ERROR_NO_BINARY_FOR_GPU (no kernel image is available for execution on the device)"},
		{"no PTX", "VERSION", "", "hello", "loading the kernels: CUDA_ERROR_INVALID_IMAGE (device kernel image is invalid)"},
		{"broken PTX", "VERSION", "", strings.Replace(selftest, "bar.sync", "barr.sync", 1), "loading the kernels: CUDA_ERROR_INVALID_PTX (a PTX JIT compilation failed)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := emulator(t)
			t.Setenv("PIPECTL_EMULATOR_"+tc.variable, tc.value)
			d, err := open("Test.", []string{tc.ptx})
			if err == nil {
				d.Close()
			}
			if got := text(err); got != tc.want {
				t.Errorf("error\n%s\nwant\n%s", got, tc.want)
			}
			if s := e.State(); s.Held != (control.Held{}) || s.Left != (control.Held{}) {
				t.Errorf("left %+v and %+v", s.Held, s.Left)
			}
		})
	}
}

func TestOutOfMemory(t *testing.T) {
	t.Setenv("PIPECTL_EMULATOR_MEMORY", "10000000")
	d, _ := openSelftest(t)
	sample := stages.TensorType(3, 100, 100)
	_, err := d.Upload(t.Context(), &stages.Batch{Len: 100, Sample: sample, F32: make([]float32, 100*sample.Len())})
	want := "a batch's samples need 11.4 MiB of device memory, of which 9.54 MiB of 9.54 MiB are free: CUDA_ERROR_OUT_OF_MEMORY (out of memory); a batch of 83 samples would fit"
	if text(err) != want {
		t.Errorf("error\n%v\nwant\n%s", err, want)
	}
	if !errors.Is(err, driver.OutOfMemory) {
		t.Error("not OutOfMemory")
	}
	// The device is as good as before.
	b, err := d.Upload(t.Context(), &stages.Batch{Len: 1, Sample: sample, F32: make([]float32, sample.Len())})
	if err != nil {
		t.Fatal(err)
	}
	b.Free()
}

func TestLaunchRefuses(t *testing.T) {
	d, _ := openSelftest(t)
	one := [3]int{1, 1, 1}
	for _, tc := range []struct {
		kernel    string
		block     [3]int
		arguments []any
		want      string
	}{
		{"no_such", one, nil, "finding the kernel no_such: CUDA_ERROR_NOT_FOUND (named symbol not found)"},
		{"saxpy_reversed", [3]int{2048, 1, 1}, []any{0, float32(0), cu.DevicePtr(0), cu.DevicePtr(0)}, "launching the kernel saxpy_reversed: CUDA_ERROR_INVALID_VALUE (invalid argument)"},
		{"saxpy_reversed", one, []any{math.MaxInt32 + 1}, "argument 0 of the kernel saxpy_reversed is 2147483648, which an int of the GPU can't hold"},
		{"saxpy_reversed", one, []any{"n"}, "argument 0 of the kernel saxpy_reversed is a string"},
	} {
		err := d.do(func() error {
			k, err := d.kernel(tc.kernel)
			if err != nil {
				return err
			}
			return k.launch(d.compute, one, tc.block, 0, tc.arguments...)
		})
		if text(err) != tc.want {
			t.Errorf("error %v, want %s", err, tc.want)
		}
	}
}

// program does all that a run does with a device, and returns every error.
func program(ptx string) (err error) {
	d, err := open("Test.", []string{ptx})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	const n = 300
	var y cu.DevicePtr
	err = d.do(func() (err error) {
		if y, err = d.alloc("the sums", 4*n, 0, 0); err != nil {
			return err
		}
		return failed(cu.MemsetD32Async(y, 0, n, d.compute), "clearing the sums")
	})
	if y != 0 {
		defer func() { err = errors.Join(err, d.do(func() error { return failed(cu.MemFree(y), "freeing") })) }()
	}
	if err != nil {
		return err
	}
	s := &sum{d: d, y: y, n: n, await: true, release: true}
	for _, pinned := range []bool{true, false} {
		mem, free, err := d.Alloc(4*n, pinned)
		if err != nil {
			return err
		}
		defer free()
		for range 2 {
			b, err := d.Upload(context.Background(), batchIn(mem, stages.TensorType(1, 1, n), 1, 3))
			if err != nil {
				return err
			}
			defer b.Free()
			e, err := s.submit(b)
			if err != nil {
				return err
			}
			if err := errors.Join(b.Ready.Wait(context.Background()), e.Wait(context.Background())); err != nil {
				return err
			}
			b.Free()
		}
	}
	return nil
}

// Whichever call of the driver fails, the program hears of it, and nothing is left: of a call that frees, the context does.
func TestEveryCallFails(t *testing.T) {
	e := emulator(t)
	e.Fail(0, 0)
	if err := program(selftest); err != nil {
		t.Fatal(err)
	}
	calls := e.State().Calls
	if s := e.State(); s.Held != (control.Held{}) || s.Left != (control.Held{}) {
		t.Fatalf("left %+v and %+v", s.Held, s.Left)
	}
	const invalid, lost = 1, 719
	for _, result := range []int{invalid, lost} {
		for n := int64(1); n <= calls; n++ {
			e.Reset()
			e.Fail(n, result)
			err := program(selftest)
			if err == nil {
				t.Errorf("call %d of %d fails with %d, and nobody hears of it", n, calls, result)
				continue
			}
			if !errors.Is(err, driver.Result(result)) {
				t.Errorf("call %d fails with %d, and the error is: %v", n, result, err)
			}
			s := e.State()
			if left := s.Left; result == invalid && left != (control.Held{}) && !strings.Contains(err.Error(), "freeing") && !strings.Contains(err.Error(), "ending") && !strings.Contains(err.Error(), "unloading") {
				t.Errorf("call %d fails with %d (%v): the context freed %+v itself", n, result, err, left)
			}
			if s.Held != (control.Held{}) && !strings.Contains(err.Error(), "leaving the GPU's primary context") {
				t.Errorf("call %d fails with %d (%v): left %+v", n, result, err, s.Held)
			}
		}
	}
}

// After the device is lost every call says so, and says since when.
func TestLostDevice(t *testing.T) {
	e := emulator(t)
	d, err := open("Test.", []string{selftest})
	if err != nil {
		t.Fatal(err)
	}
	sample := stages.ImageType(2, 2)
	host := &stages.Batch{Len: 1, Sample: sample, U8: make([]byte, sample.Size())}
	b, err := d.Upload(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	const launchFailed = 719
	e.Fail(1, launchFailed)
	first := b.Ready.Wait(t.Context())
	if first == nil {
		t.Fatal("the device isn't lost")
	}
	want := "the device is lost since " + first.Error()
	_, uploadErr := d.Upload(t.Context(), host)
	_, _, allocErr := d.Alloc(10, true)
	for i, err := range []error{uploadErr, allocErr, d.Close()} {
		if text(err) != want {
			t.Errorf("%d: %v\nwant %s", i, err, want)
		}
		if !errors.Is(err, driver.Result(launchFailed)) {
			t.Errorf("%d: %v isn't the driver's result", i, err)
		}
	}
	if s := e.State(); s.Held != (control.Held{}) {
		t.Errorf("left %+v", s.Held)
	}
	if _, err := d.Upload(t.Context(), host); text(err) != "the device is closed" {
		t.Error(err)
	}
	if err := b.Ready.Wait(t.Context()); text(err) != first.Error() {
		t.Error(err)
	}
}

// The interpreter of the PTX sees faults that a GPU may hide, and the program hears of them.
func TestPlantedFaults(t *testing.T) {
	const launchFailed, illegalAddress, notFound = "CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_NOT_FOUND"
	saxpy := selftest[strings.Index(selftest, ".visible .entry saxpy_reversed"):]
	saxpy = saxpy[:strings.Index(saxpy, "ret;")]
	for _, tc := range []struct{ name, old, new, want string }{
		{"as it is", "", "", ""},
		{"a barrier left out", "bar.sync \t0;", "", launchFailed},
		{"a bound left out", "setp.ge.s32", "setp.ge.s32", illegalAddress},
		{"parameters of another source", ".param .u32 saxpy_reversed_param_0", ".param .u64 saxpy_reversed_param_0", notFound},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := emulator(t)
			t.Setenv("PIPECTL_EMULATOR_BACKEND", "ptx")
			changed := strings.ReplaceAll(saxpy, tc.old, tc.new)
			if tc.name == "a bound left out" {
				changed = boundless(t, saxpy)
			} else if tc.old != "" && changed == saxpy {
				t.Fatalf("%q isn't in the PTX", tc.old)
			}
			err := program(strings.Replace(selftest, saxpy, changed, 1))
			if tc.want == "" && err != nil || !strings.Contains(text(err), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
			if s := e.State(); s.Held != (control.Held{}) {
				t.Errorf("left %+v", s.Held)
			}
		})
	}
}

// boundless takes the branches out of a kernel, so that all threads do everything.
func boundless(t *testing.T, ptx string) string {
	lines := strings.Split(ptx, "\n")
	n := len(lines)
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, "bra ") })
	if len(lines) == n {
		t.Fatal("no branch in the PTX")
	}
	return strings.Join(lines, "\n")
}

// The interpreted PTX computes what the compiled source does, and what Go does.
func TestBackendsAgree(t *testing.T) {
	const n = 500
	r := rand.New(rand.NewPCG(1, 2))
	special := []int32{0, 1, -1, 2, 31, 32, -31, math.MaxInt32, math.MinInt32, 255, -128}
	integers, floats := make([]int32, 2*n), make([]float32, 2*n)
	for i := range integers {
		integers[i] = int32(r.Uint32()) >> r.IntN(32)
		if i < 2*len(special)*len(special) {
			integers[i] = special[[]int{i / 2 / len(special), i / 2 % len(special)}[i%2]]
		}
		floats[i] = float32(r.NormFloat64() * math.Pow(10, float64(r.IntN(18)-4)))
		if i%50 == 49 {
			floats[i] = float32(math.NaN())
		}
	}
	d, _ := openSelftest(t)
	results := func(backend string) []byte {
		t.Setenv("PIPECTL_EMULATOR_BACKEND", backend)
		var in, fl, out cu.DevicePtr
		err := d.do(func() (err error) {
			for _, p := range []*cu.DevicePtr{&in, &fl, &out} {
				if *p, err = d.alloc("arrays", 96*n, 0, 0); err != nil {
					return err
				}
			}
			if err := cu.MemcpyHtoD(in, unsafe.Pointer(&integers[0]), 8*n); err != nil {
				return err
			}
			if err := cu.MemcpyHtoD(fl, unsafe.Pointer(&floats[0]), 8*n); err != nil {
				return err
			}
			k, err := d.kernel("arithmetic")
			if err != nil {
				return err
			}
			return k.launch(d.compute, [3]int{(n + 63) / 64, 1, 1}, [3]int{64, 1, 1}, 0, n, in, fl, out)
		})
		if err != nil {
			t.Fatal(err)
		}
		got := download(t, d, out, 96*n)
		if err := d.do(func() error { return errors.Join(cu.MemFree(in), cu.MemFree(fl), cu.MemFree(out)) }); err != nil {
			t.Fatal(err)
		}
		return got
	}
	native, ptx := results(""), results("ptx")
	bad := 0
	for i := 0; i < 24*n && bad < 10; i++ {
		if a, b := binary.LittleEndian.Uint32(native[4*i:]), binary.LittleEndian.Uint32(ptx[4*i:]); a != b {
			bad++
			t.Errorf("result %d of a, b = %d, %d and x, y = %g, %g: %#x compiled, %#x interpreted", i%24, integers[i/24*2], integers[i/24*2+1], floats[i/24*2], floats[i/24*2+1], a, b)
		}
	}
}
