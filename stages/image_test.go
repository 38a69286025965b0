package stages

import (
	"context"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// golden reads an image that testdata/make_goldens.py made.
func golden(tb testing.TB, name string) *Element {
	tb.Helper()
	f, err := os.Open(filepath.Join("testdata", "torchvision", name+".png"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		tb.Fatal(err)
	}
	rgba := image.NewRGBA(img.Bounds())
	draw.Draw(rgba, rgba.Rect, img, img.Bounds().Min, draw.Src)
	e := new(Element)
	rgb := e.Image(rgba.Rect.Dy(), rgba.Rect.Dx())
	for i := range len(rgb) / 3 {
		copy(rgb[3*i:3*i+3], rgba.Pix[4*i:])
	}
	return e
}

// equalsGolden reports where got differs from the golden image.
func equalsGolden(t *testing.T, got *Element, name string) {
	t.Helper()
	want := golden(t, name)
	if got.Type != want.Type {
		t.Fatalf("%v, want %v", got.Type, want.Type)
	}
	differ, sum, most := 0, 0, 0
	for i, v := range got.U8 {
		d := int(v) - int(want.U8[i])
		if d = max(d, -d); d > 0 {
			differ++
			sum += d
			most = max(most, d)
		}
	}
	if differ > 0 {
		t.Errorf("%d of %d values differ, by %.4f levels in the mean over all and %d at most",
			differ, len(got.U8), float64(sum)/float64(len(got.U8)), most)
	}
}

// process runs one item through a new instance of a stage.
func process(tb testing.TB, spec StageSpec, in *Element) *Element {
	tb.Helper()
	out := new(Element)
	if err := newStage(tb, spec).Process(testCall(tb.Context()), in, out); err != nil {
		tb.Fatal(err)
	}
	return out.Result()
}

// testCall returns a call with random numbers, always the same.
func testCall(ctx context.Context) *Call {
	return &Call{Context: ctx, Rand: rand.New(rand.NewPCG(1, 2))}
}

// testImage returns an image of h×w whose bytes are noise.
func testImage(h, w int) *Element {
	r := rand.New(rand.NewPCG(uint64(h), uint64(w)))
	e := new(Element)
	for i := range e.Image(h, w) {
		e.U8[i] = byte(r.Uint32())
	}
	return e
}

// testTensor returns a tensor of c×h×w whose values count up from 0.
func testTensor(c, h, w int) *Element {
	e := new(Element)
	for i := range e.Tensor(c, h, w) {
		e.F32[i] = float32(i)
	}
	return e
}

// benchmark measures a stage on one element.
func benchmark(b *testing.B, spec StageSpec, in *Element) {
	s, c, out := newStage(b, spec), testCall(b.Context()), new(Element)
	b.SetBytes(int64(in.Size()))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Process(c, in, out); err != nil {
			b.Fatal(err)
		}
		out.Result()
	}
}

// imageStages returns the specs that take images, with attributes drawn by t.
func imageStages(t *rapid.T) map[string]StageSpec {
	size := rapid.SliceOfN(rapid.IntRange(1, 40), 1, 2).Draw(t, "size")
	interpolation := rapid.SampledFrom([]string{"bilinear", "bicubic", "nearest"}).Draw(t, "interpolation")
	return map[string]StageSpec{
		"resize":              &Resize{size, interpolation},
		"center_crop":         &CenterCrop{size},
		"to_float":            &ToFloat{},
		"normalize":           &Normalize{[]float64{0.5}, []float64{0.25}},
		"random_resized_crop": &RandomResizedCrop{size, []float64{0.01, 1}, []float64{0.1, 10}, interpolation},
		"random_flip":         &RandomFlip{0.5},
		"random_rotation":     &RandomRotation{[]float64{180}, interpolation, false, nil, []int{128}},
		"gaussian_blur":       &GaussianBlur{[]int{2*size[0]%12 + 1, 5}, []float64{0.1, 5}},
		"random_grayscale":    &RandomGrayscale{0.5},
		"trivial_augment":     &TrivialAugment{31, interpolation, []int{1, 2, 3}},
		"rand_augment":        &RandAugment{3, 9, 31, interpolation, []int{0}},
		"standardize":         &Standardize{},
		"color_jitter":        &ColorJitter{[]float64{1.5}, []float64{0.5}, []float64{0.1, 3}, []float64{0.5}},
	}
}

// Every image operator takes images of any size, leaves them as they are, gives what Output says, gives the same from the
// same random numbers whatever the instance did before, and allocates nothing once its buffers have their size.
func TestImageOperators(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, w := rapid.IntRange(1, 40).Draw(t, "h"), rapid.IntRange(1, 40).Draw(t, "w")
		seed := rapid.Uint64().Draw(t, "seed")
		in := testImage(h, w)
		before := slices.Clone(in.U8)
		pcg := rand.NewPCG(seed, 0)
		c := &Call{Context: context.Background(), Rand: rand.New(pcg)}
		for name, spec := range imageStages(t) {
			s, err := spec.New()
			if err != nil {
				t.Fatal(err)
			}
			run := func(in *Element, out *Element) *Element {
				pcg.Seed(seed, 0)
				if err := s.Process(c, in, out); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				return out.Result()
			}
			want, err := spec.Output(in.Type)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			first := run(in, new(Element))
			if first.Type != want || first.Size() != want.Size() {
				t.Errorf("%s gives %v with %d bytes, and said %v", name, first.Type, first.Size(), want)
			}
			out := run(testImage(w, h+1), new(Element))
			second := run(in, out)
			if !slices.Equal(first.U8, second.U8) || !slices.Equal(first.F32, second.F32) {
				t.Errorf("%s isn't the same the second time", name)
			}
			if !slices.Equal(in.U8, before) {
				t.Errorf("%s wrote to its input", name)
			}
			if n := testing.AllocsPerRun(5, func() { run(in, out) }); n > 0 {
				t.Errorf("%s allocates %v times an item", name, n)
			}
		}
	})
}

func TestSize(t *testing.T) {
	tests := []struct {
		size []int
		want string
	}{
		{[]int{224}, "[]"},
		{[]int{224, 320}, "[]"},
		{[]int{}, "[{size Not a size A size is one number of pixels, or a list of two, [height, width]. This list has 0. false}]"},
		{[]int{3, 224, 224}, "[{size Not a size A size is one number of pixels, or a list of two, [height, width]. This list has 3. false}]"},
	}
	for _, tt := range tests {
		for _, spec := range []Validator{&Resize{Size: tt.size}, &CenterCrop{tt.size}, &RandomResizedCrop{Size: tt.size, Scale: []float64{0, 1}, Ratio: []float64{1, 1}}} {
			if got := fmt.Sprint(spec.Validate()); got != tt.want {
				t.Errorf("%T with size %v: %s, want %s", spec, tt.size, got, tt.want)
			}
		}
	}
}
