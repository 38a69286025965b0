//go:build cuda

package cuda

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

// Each stage on the device gives the host's bytes, from the same random numbers.
func TestApply(t *testing.T) {
	crop := func(size []int, interpolation string) stages.StageSpec {
		return &stages.RandomResizedCrop{Size: size, Scale: []float64{0.08, 1}, Ratio: []float64{0.5, 2}, Interpolation: interpolation}
	}
	image, tensor := stages.ImageType(37, 45), stages.TensorType(4, 9, 11)
	for _, tc := range []struct {
		name   string
		sample stages.Type
		specs  []stages.StageSpec
	}{
		{"to_float", image, []stages.StageSpec{new(stages.ToFloat)}},
		{"one normalize", image, []stages.StageSpec{&stages.Normalize{Mean: []float64{0.4, 0.5, 0.6}, Std: []float64{0.3}}}},
		{"one random_flip", image, []stages.StageSpec{&stages.RandomFlip{P: 0.5}}},
		{"two random_flips of tensors", tensor, []stages.StageSpec{&stages.RandomFlip{P: 0.5}, &stages.RandomFlip{P: 0.7}}},
		{"one random_resized_crop", image, []stages.StageSpec{crop([]int{16}, "bilinear")}},
		{"enlarged", image, []stages.StageSpec{crop([]int{40, 80}, "bicubic")}},
		{"nearest", image, []stages.StageSpec{crop([]int{20, 90}, "nearest")}},
		{"one color_jitter", image, []stages.StageSpec{&stages.ColorJitter{Brightness: []float64{0.4}, Contrast: []float64{0.4}, Saturation: []float64{0.4}, Hue: []float64{0.5}}}},
		{"contrast alone", image, []stages.StageSpec{&stages.ColorJitter{Brightness: []float64{0}, Contrast: []float64{3}, Saturation: []float64{0}, Hue: []float64{0}}}},
		{"no jitter", image, []stages.StageSpec{&stages.ColorJitter{Brightness: []float64{0}, Contrast: []float64{0}, Saturation: []float64{0}, Hue: []float64{0}}}},
		{"all in turn", image, []stages.StageSpec{
			crop([]int{24, 20}, "bilinear"),
			&stages.ColorJitter{Brightness: []float64{0.4}, Contrast: []float64{0.4}, Saturation: []float64{0.4}, Hue: []float64{0.1}},
			&stages.RandomFlip{P: 0.5},
			&stages.Normalize{Mean: []float64{0.485, 0.456, 0.406}, Std: []float64{0.229, 0.224, 0.225}},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := openDevice(t)
			for round := range 2 { // the second in the first one's memory
				const n = 6
				b := &stages.Batch{Index: int64(round), Len: n - round, Sample: tc.sample, Labels: make([]int32, n)}
				r := rand.New(rand.NewPCG(uint64(round), 9))
				if tc.sample.Kind == stages.Tensor {
					b.F32 = make([]float32, n*tc.sample.Len())
					for i := range b.F32 {
						b.F32[i] = r.Float32()
					}
				} else {
					b.U8 = make([]byte, n*tc.sample.Len())
					for i := range b.U8 {
						b.U8[i] = byte(r.Uint32())
					}
				}
				applied, err := d.Upload(t.Context(), b)
				if err != nil {
					t.Fatal(err)
				}
				for stage, spec := range tc.specs {
					applied, err = d.Apply(t.Context(), applied, spec, func(i int) *rand.Rand { return drawsOf(stage, i) })
					if err != nil {
						t.Fatal(err)
					}
				}
				if err := applied.Ready.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				size := applied.Sample.Size()
				got := download(t, d, applied.Memory.(*buffer).now, applied.Len*size)
				for i := range b.Len {
					want := onHost(t, b, i, tc.specs)
					if mine := got[i*size:][:size]; !bytes.Equal(mine, want) {
						t.Fatalf("round %d, sample %d of %v:\n got %v\nwant %v", round, i, applied.Sample, mine[:min(size, 48)], want[:min(len(want), 48)])
					}
				}
				applied.Free()
			}
		})
	}
}

func drawsOf(stage, sample int) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(stage), uint64(sample)))
}

// onHost returns what the host's operators make of sample i.
func onHost(t *testing.T, b *stages.Batch, i int, specs []stages.StageSpec) []byte {
	t.Helper()
	n := b.Sample.Len()
	e := &stages.Element{Type: b.Sample}
	if b.F32 != nil {
		e.F32 = b.F32[i*n:][:n]
	} else {
		e.U8 = b.U8[i*n:][:n]
	}
	for stage, spec := range specs {
		s, err := spec.New()
		if err != nil {
			t.Fatal(err)
		}
		out := new(stages.Element)
		if err := s.Process(&stages.Call{Context: t.Context(), Rand: drawsOf(stage, i)}, e, out); err != nil {
			t.Fatal(err)
		}
		e = out.Result()
	}
	if e.Type.Kind == stages.Tensor {
		return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(e.F32))), 4*len(e.F32))
	}
	return e.U8
}

// What can't be applied is an error, and a batch of bytes trains as well as one of floats once it is converted.
func TestApplyBeforeStep(t *testing.T) {
	d := openDevice(t)
	image := stages.ImageType(8, 8)
	b := &stages.Batch{Len: 4, Sample: image, U8: make([]byte, 4*image.Len()), Labels: []int32{0, 1, 2, 1}}
	for i := range b.U8 {
		b.U8[i] = byte(i * 7)
	}
	upload := func(b *stages.Batch) *gpu.Batch {
		t.Helper()
		batch, err := d.Upload(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		return batch
	}
	batch := upload(b)
	for want, spec := range map[string]stages.StageSpec{
		"there is no kernel for *stages.Resize": &stages.Resize{Size: []int{4}, Interpolation: "bilinear"},
	} {
		if _, err := d.Apply(t.Context(), batch, spec, nil); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Apply(cancelled, batch, new(stages.ToFloat), nil); err != context.Canceled {
		t.Errorf("error %v, want the context's", err)
	}
	batch.Free()

	floats := &stages.Batch{Len: 4, Sample: stages.TensorType(3, 8, 8), Labels: b.Labels}
	for i := range b.Len {
		mem := onHost(t, b, i, []stages.StageSpec{new(stages.ToFloat)})
		floats.F32 = append(floats.F32, unsafe.Slice((*float32)(unsafe.Pointer(&mem[0])), len(mem)/4)...)
	}
	in := gpu.Input{Sample: floats.Sample, Batch: 4, Classes: 3}
	c := gpu.CNN{Width: 4, Depth: 1, Stride: 1, LearningRate: 0.1}
	want := train(t, d, classifierOn(t, d, c, in), floats)
	s := classifierOn(t, d, c, in)
	batch, err := d.Apply(t.Context(), upload(b), new(stages.ToFloat), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer batch.Free()
	e, err := s.Submit(t.Context(), batch)
	if err == nil {
		err = e.Wait(t.Context())
	}
	if loss, _ := s.Loss(); err != nil || loss != want {
		t.Errorf("loss %v, %v, want %v", loss, err, want)
	}
}
