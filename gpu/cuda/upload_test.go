//go:build cuda

package cuda

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/cuda/emulator/control"
	"github.com/pipectl/pipectl/stages"
)

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
