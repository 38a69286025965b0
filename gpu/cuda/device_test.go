//go:build cuda

package cuda

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/cuda/driver"
	"github.com/pipectl/pipectl/gpu/cuda/emulator/control"
	"github.com/pipectl/pipectl/stages"
)

//go:embed emulator/testdata/selftest.ptx
var selftest string

// emulator returns the emulated driver as new. Where no driver is named the test is skipped, unless one is asked for.
func emulator(tb testing.TB) *control.Emulator {
	tb.Helper()
	file := os.Getenv(driver.Variable)
	if file == "" && os.Getenv("PIPECTL_REQUIRE_CUDA") != "1" {
		tb.Skip("the emulated driver isn't named: run make test-cuda")
	}
	if err := driver.Open(); err != nil {
		tb.Fatal(err)
	}
	e, err := control.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	e.Reset()
	return e
}

// openSelftest opens the emulated GPU with the kernels of selftest.cu alone. At the end nothing of it may be left.
func openSelftest(tb testing.TB) (*Device, *control.Emulator) {
	tb.Helper()
	e := emulator(tb)
	d, err := open("Test.", []string{selftest})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Error(err)
		}
		if s := e.State(); s.Held != (control.Held{}) || s.Left != (control.Held{}) {
			tb.Errorf("after Close the driver holds %+v, and freed %+v itself", s.Held, s.Left)
		}
	})
	return d, e
}

// download returns n bytes of device memory.
func download(tb testing.TB, d *Device, from cu.DevicePtr, n int) []byte {
	tb.Helper()
	to := make([]byte, n)
	if n == 0 {
		return to
	}
	err := d.do(func() error {
		if err := cu.Synchronize(); err != nil {
			return failed(err, "waiting")
		}
		return failed(cu.MemcpyDtoH(unsafe.Pointer(&to[0]), from, int64(n)), "copying")
	})
	if err != nil {
		tb.Fatal(err)
	}
	return to
}

func TestInfo(t *testing.T) {
	d, _ := openSelftest(t)
	want := gpu.Info{Kind: "cuda", Name: "emulated GPU", Memory: 1 << 30,
		Why: "Test. Its driver is " + os.Getenv(driver.Variable) + ", which PIPECTL_LIBCUDA names."}
	if got := d.Info(); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestAlloc(t *testing.T) {
	d, e := openSelftest(t)
	for _, pinned := range []bool{false, true} {
		before := e.State().Held
		mem, free, err := d.Alloc(1000, pinned)
		if err != nil {
			t.Fatal(err)
		}
		if len(mem) != 1000 || uintptr(unsafe.Pointer(&mem[0]))%64 != 0 || !bytes.Equal(mem, make([]byte, 1000)) {
			t.Errorf("pinned %v: %d bytes at %p, zeroed %v", pinned, len(mem), mem, bytes.Equal(mem, make([]byte, 1000)))
		}
		if got := e.State().Held.PinnedMemory - before.PinnedMemory; got != map[bool]int64{true: 1}[pinned] {
			t.Errorf("pinned %v: took %d pieces of pinned memory", pinned, got)
		}
		free()
		free()
		if got := e.State().Held; got != before {
			t.Errorf("pinned %v: after free %+v, want %+v", pinned, got, before)
		}
	}
	if mem, free, err := d.Alloc(0, true); len(mem) != 0 || err != nil {
		t.Errorf("no bytes: %d, %v", len(mem), err)
	} else {
		free()
	}
	if _, _, err := d.Alloc(-1, true); err == nil || err.Error() != "can't allocate -1 bytes" {
		t.Error(err)
	}
	// Close frees what isn't given back, and free does nothing after it.
	for _, pinned := range []bool{false, true} {
		_, free, err := d.Alloc(1000, pinned)
		if err != nil {
			t.Fatal(err)
		}
		defer free()
	}
}

// batchIn makes a batch of n random samples and labels in mem.
func batchIn(mem []byte, sample stages.Type, n int, seed uint64) *stages.Batch {
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	r.Read(mem)
	b := &stages.Batch{Len: n, Sample: sample, Labels: make([]int32, len(mem)/sample.Size())}
	for i := range b.Labels {
		b.Labels[i] = int32(r.Uint64() % 1000)
	}
	switch sample.Kind {
	case stages.Tensor:
		b.F32 = unsafe.Slice((*float32)(unsafe.Pointer(&mem[0])), len(mem)/4)
	case stages.Tokens:
		b.I32 = unsafe.Slice((*int32)(unsafe.Pointer(&mem[0])), len(mem)/4)
	default:
		b.U8 = mem
	}
	return b
}

func TestUpload(t *testing.T) {
	for _, sample := range []stages.Type{stages.ImageType(5, 7), stages.TensorType(3, 4, 5), {Kind: stages.Tokens, Shape: stages.Shape{9}}, {Kind: stages.Opaque, Shape: stages.Shape{13}}} {
		for _, memory := range []string{"pinned", "pageable", "Go's"} {
			for _, n := range []int{8, 3} {
				t.Run(fmt.Sprintf("%s, %s memory, %d of 8", sample, memory, n), func(t *testing.T) {
					d, _ := openSelftest(t)
					mem := make([]byte, 8*sample.Size())
					if memory != "Go's" {
						var err error
						if mem, _, err = d.Alloc(len(mem), memory == "pinned"); err != nil {
							t.Fatal(err)
						}
					}
					host := batchIn(mem, sample, n, 1)
					b, err := d.Upload(t.Context(), host)
					if err != nil {
						t.Fatal(err)
					}
					defer b.Free()
					if err := b.Ready.Wait(t.Context()); err != nil {
						t.Fatal(err)
					}
					if b.Batch != host {
						t.Error("the batch isn't the host's")
					}
					if took, ok := b.Ready.Elapsed(); !ok || took <= 0 {
						t.Errorf("took %v, %v", took, ok)
					}
					buf, err := bufferOf(b)
					if err != nil {
						t.Fatal(err)
					}
					if got, want := download(t, d, buf.data, n*sample.Size()), mem[:n*sample.Size()]; !bytes.Equal(got, want) {
						t.Errorf("data:\n got %v\nwant %v", got, want)
					}
					if got, want := download(t, d, buf.labels, 4*n), bytesIn(host.Labels[:n]); !bytes.Equal(got, want) {
						t.Errorf("labels:\n got %v\nwant %v", got, want)
					}
				})
			}
		}
	}
}

// Pinned memory is read when the copy runs, as on a GPU, and the other kinds before Upload returns.
func TestCopyIsLate(t *testing.T) {
	d, _ := openSelftest(t)
	sample := stages.ImageType(2, 2)
	for _, pinned := range []bool{true, false} {
		mem, _, err := d.Alloc(sample.Size(), pinned)
		if err != nil {
			t.Fatal(err)
		}
		mem[0] = 1
		b, err := d.Upload(t.Context(), &stages.Batch{Len: 1, Sample: sample, U8: mem})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Free()
		mem[0] = 2
		if err := b.Ready.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := download(t, d, b.Memory.(*buffer).data, 1)[0], map[bool]byte{true: 2, false: 1}[pinned]; got != want {
			t.Errorf("pinned %v: %d arrived, want %d", pinned, got, want)
		}
	}
}

func TestUploadRefuses(t *testing.T) {
	d, _ := openSelftest(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	image := stages.ImageType(2, 2)
	for _, tc := range []struct {
		ctx   context.Context
		batch stages.Batch
		want  string
	}{
		{ended, stages.Batch{}, "context canceled"},
		{t.Context(), stages.Batch{Sample: stages.ImageType(0, 0), Ragged: []stages.Element{}}, "samples that differ in size can't be copied to the GPU: the batch is of uint8 image ?×?×3"},
		{t.Context(), stages.Batch{Len: 2, Sample: image, U8: make([]byte, 12)}, "a batch of 2 samples of uint8 image 2×2×3 has only 12 bytes and 0 labels"},
		{t.Context(), stages.Batch{Len: 1, Sample: image, U8: make([]byte, 12), Labels: []int32{}}, ""},
		{t.Context(), stages.Batch{Len: 2, Sample: image, U8: make([]byte, 24), Labels: []int32{1}}, "a batch of 2 samples of uint8 image 2×2×3 has only 24 bytes and 1 labels"},
	} {
		b, err := d.Upload(tc.ctx, &tc.batch)
		if got := text(err); got != tc.want {
			t.Errorf("error %q, want %q", got, tc.want)
		}
		if err == nil {
			b.Free()
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A thousand uploads take no more of the driver than ten.
func TestUploadsLeakNothing(t *testing.T) {
	d, e := openSelftest(t)
	sample := stages.TensorType(1, 8, 8)
	mem, _, err := d.Alloc(4*sample.Size(), true)
	if err != nil {
		t.Fatal(err)
	}
	host := batchIn(mem, sample, 4, 2)
	var held control.Held
	for i := range 1000 {
		b, err := d.Upload(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		if i%3 > 0 { // a batch that is given up isn't waited for
			if err := b.Ready.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		b.Free()
		b.Free()
		if i == 10 {
			held = e.State().Held
		}
	}
	if got := e.State().Held; got != held {
		t.Errorf("held %+v after 10 uploads and %+v after 1000", held, got)
	}
}

// sum adds batches on the GPU, one after the other: the step of the tests. Leaving out what orders it with the copies shows
// in the sum.
type sum struct {
	d              *Device
	y              cu.DevicePtr
	n              int
	await, release bool
}

func newSum(tb testing.TB, d *Device, n int) *sum {
	tb.Helper()
	s := &sum{d: d, n: n, await: true, release: true}
	err := d.do(func() (err error) {
		if s.y, err = d.alloc("the sums", 4*n, 0, 0); err != nil {
			return err
		}
		return failed(cu.MemsetD32Async(s.y, 0, int64(n), d.compute), "clearing the sums")
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.do(func() error { return failed(cu.MemFree(s.y), "freeing") }); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// submit adds a batch, as a step of the classifier is submitted.
func (s *sum) submit(b *gpu.Batch) (e *event, err error) {
	buf, err := bufferOf(b)
	if err != nil {
		return nil, err
	}
	return e, s.d.do(func() error {
		if s.await {
			if err := buf.await(s.d.compute); err != nil {
				return err
			}
		}
		var err error
		if e, err = s.d.begin("the sum", s.d.compute); err != nil {
			return err
		}
		k, err := s.d.kernel("saxpy_reversed")
		if err != nil {
			return err
		}
		if err := k.launch(s.d.compute, [3]int{(s.n + 255) / 256, 1, 1}, [3]int{256, 1, 1}, 0, s.n, float32(1), buf.data, s.y); err != nil {
			return err
		}
		if s.release {
			if err := buf.release(s.d.compute); err != nil {
				return err
			}
		}
		return e.finish(s.d.compute)
	})
}

// Steps see the batches that were uploaded for them, whatever the order in which the GPU gets round to things, and a wait
// that is left out is seen.
func TestOrder(t *testing.T) {
	for _, tc := range []struct {
		name, streams         string
		await, release, right bool
	}{
		{"late", "", true, true, true},
		{"late, the newest first", "newest", true, true, true},
		{"at once", "eager", true, true, true},
		{"the step doesn't wait for the copy", "", false, true, false},
		{"the copy doesn't wait for the step before", "", true, false, false},
		{"the copy doesn't wait for the step before, the newest first", "newest", true, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("PIPECTL_EMULATOR_STREAMS", tc.streams)
			d, _ := openSelftest(t)
			const batches, buffers, n = 12, 2, 1000
			sample := stages.TensorType(1, 1, n)
			s := newSum(t, d, n)
			s.await, s.release = tc.await, tc.release
			want := make([]float32, n)
			var hosts [buffers][]float32
			for i := range hosts {
				mem, _, err := d.Alloc(4*n, true)
				if err != nil {
					t.Fatal(err)
				}
				hosts[i] = unsafe.Slice((*float32)(unsafe.Pointer(&mem[0])), n)
			}
			var pending [buffers]*gpu.Batch
			for i := range batches {
				if b := pending[i%buffers]; b != nil {
					if err := b.Ready.Wait(t.Context()); err != nil { // before the host's memory is filled anew
						t.Fatal(err)
					}
					b.Free() // the step may still be reading it
				}
				host := hosts[i%buffers]
				for j := range host {
					host[j] = float32(i*10 + j%7)
					want[j] += host[j]
				}
				b, err := d.Upload(t.Context(), &stages.Batch{Len: 1, Sample: sample, F32: host})
				if err != nil {
					t.Fatal(err)
				}
				pending[i%buffers] = b
				if _, err := s.submit(b); err != nil {
					t.Fatal(err)
				}
			}
			got := download(t, d, s.y, 4*n)
			if right := bytes.Equal(got, bytesIn(want)); right != tc.right {
				t.Errorf("the sum is right: %v, want %v", right, tc.right)
			}
		})
	}
}

// Copies run beside steps by the GPU's clock: all together take less time than one after the other.
func TestOverlap(t *testing.T) {
	d, _ := openSelftest(t)
	const n = 1 << 18
	s := newSum(t, d, n)
	mem, _, err := d.Alloc(4*n, true)
	if err != nil {
		t.Fatal(err)
	}
	host := &stages.Batch{Len: 1, Sample: stages.TensorType(1, 1, n), F32: unsafe.Slice((*float32)(unsafe.Pointer(&mem[0])), n)}
	var work []*event
	for range 9 {
		b, err := d.Upload(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Free()
		e, err := s.submit(b)
		if err != nil {
			t.Fatal(err)
		}
		work = append(work, b.Ready.(*event), e)
	}
	var together float64 // in ms
	err = d.do(func() (err error) {
		if err := cu.Synchronize(); err != nil {
			return err
		}
		together, err = work[0].start.Elapsed(work[len(work)-1].end)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var apart time.Duration
	for _, e := range work {
		if err := e.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		took, ok := e.Elapsed()
		if !ok || took <= 0 {
			t.Errorf("%s took %v, %v", e.what, took, ok)
		}
		apart += took
	}
	if together >= apart.Seconds()*1000 {
		t.Errorf("together %v ms, one after the other %v", together, apart)
	}
}

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
	want := "a batch's samples need 11.44MiB of device memory, of which 9.54MiB of 9.54MiB are free: CUDA_ERROR_OUT_OF_MEMORY (out of memory); a batch of 83 samples would fit"
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

// BenchmarkUpload copies batches of 32 images and waits for each. On the emulated driver it shows the cost of the calls
// alone, and on a GPU the link's.
func BenchmarkUpload(b *testing.B) {
	for _, memory := range []struct {
		name   string
		pinned bool
	}{{"pinned", true}, {"pageable", false}} {
		b.Run(memory.name, func(b *testing.B) {
			d := openDevice(b)
			sample := stages.ImageType(224, 224)
			mem, _, err := d.Alloc(32*sample.Size(), memory.pinned)
			if err != nil {
				b.Fatal(err)
			}
			host := batchIn(mem, sample, 32, 1)
			b.SetBytes(int64(len(mem)))
			for b.Loop() {
				batch, err := d.Upload(b.Context(), host)
				if err != nil {
					b.Fatal(err)
				}
				if err := batch.Ready.Wait(b.Context()); err != nil {
					b.Fatal(err)
				}
				batch.Free()
			}
		})
	}
}
