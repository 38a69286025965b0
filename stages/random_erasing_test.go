package stages

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func defaultErasing() *RandomErasing { return randomErasingOperator().New().(*RandomErasing) }

// The first item of a stream of random numbers always has the same part erased.
func TestRandomErasing(t *testing.T) {
	spec := defaultErasing()
	spec.P, spec.Scale, spec.Value = 1, []float64{0.3, 0.3}, []float64{-1, -2}
	part, ok := spec.draw(testCall(t.Context()).Rand, 4, 6)
	if want := (box{Top: 0, Left: 0, Height: 3, Width: 3}); part != want || !ok {
		t.Fatalf("drew %+v, %v, want %+v", part, ok, want)
	}
	want := []float32{
		-1, -1, -1, 3, 4, 5,
		-1, -1, -1, 9, 10, 11,
		-1, -1, -1, 15, 16, 17,
		18, 19, 20, 21, 22, 23,

		-2, -2, -2, 27, 28, 29,
		-2, -2, -2, 33, 34, 35,
		-2, -2, -2, 39, 40, 41,
		42, 43, 44, 45, 46, 47,
	}
	in := testTensor(2, 4, 6)
	if got := process(t, spec, in); got.Type != in.Type || !slices.Equal(got.F32, want) {
		t.Errorf("%v %v, want %v", got.Type, got.F32, want)
	}
	if !slices.Equal(in.F32, testTensor(2, 4, 6).F32) {
		t.Error("it wrote to its input")
	}
	spec.P = 0
	if process(t, spec, in) != in {
		t.Error("the tensor isn't passed on with p = 0")
	}
}

// Noise has mean 0 and deviation 1, and is new for each value.
func TestRandomErasingNoise(t *testing.T) {
	spec := defaultErasing()
	spec.P, spec.Scale, spec.Noise = 1, []float64{0.5, 0.5}, true
	in := new(Element)
	for i := range in.Tensor(3, 100, 100) {
		in.F32[i] = 99
	}
	n, sum, squares := 0.0, 0.0, 0.0
	seen := make(map[float32]bool)
	for _, v := range process(t, spec, in).F32 {
		if v != 99 {
			n++
			sum += float64(v)
			squares += float64(v) * float64(v)
			seen[v] = true
		}
	}
	if n < 14000 || math.Abs(sum/n) > 0.03 || math.Abs(squares/n-1) > 0.05 || len(seen) < 13000 {
		t.Errorf("%v values, %d of them different, with mean %v and mean square %v", n, len(seen), sum/n, squares/n)
	}
}

// Parts are lower and narrower than the tensor, whatever its size and the limits.
func TestRandomErasingDraw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := &RandomErasing{P: 1, Scale: []float64{0, rapid.Float64Range(0, 1).Draw(t, "scale")}, Ratio: []float64{rapid.Float64Range(1e-3, 10).Draw(t, "ratio"), 10}}
		h, w := rapid.IntRange(1, 1000).Draw(t, "h"), rapid.IntRange(1, 1000).Draw(t, "w")
		b, ok := spec.draw(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), h, w)
		if ok && (b.Height < 0 || b.Width < 0 || b.Top < 0 || b.Left < 0 || b.Height >= h || b.Width >= w || b.Top+b.Height > h || b.Left+b.Width > w) {
			t.Errorf("%+v isn't within %d×%d", b, h, w)
		}
	})
}

// Areas are uniform, and the ratios of height to width uniform in their logarithm. The chance is p.
func TestRandomErasingDistribution(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	spec := &RandomErasing{P: 0.7, Scale: []float64{0.1, 0.3}, Ratio: []float64{1, 3}}
	const n = 10000
	erased, area, logRatio := 0.0, 0.0, 0.0
	for range n {
		if b, ok := spec.draw(r, 1000, 1000); ok {
			erased++
			area += float64(b.Height*b.Width) / 1e6
			logRatio += math.Log(float64(b.Height) / float64(b.Width))
		}
	}
	if math.Abs(erased/n-0.7) > 0.01 || math.Abs(area/erased-0.2) > 0.005 || math.Abs(logRatio/erased-math.Log(3)/2) > 0.02 {
		t.Errorf("%v erased, want 0.7; mean area %v, want 0.2; mean logarithm of the ratio %v, want %v", erased/n, area/erased, logRatio/erased, math.Log(3)/2)
	}
}

// Where no draw fits, nothing is erased.
func TestRandomErasingTooLarge(t *testing.T) {
	spec := defaultErasing()
	spec.P, spec.Scale, spec.Ratio = 1, []float64{1, 1}, []float64{1, 1}
	if in := testTensor(1, 5, 5); process(t, spec, in) != in {
		t.Error("the tensor isn't passed on")
	}
}

func TestRandomErasingOutput(t *testing.T) {
	tests := []struct {
		value []float64
		in    Type
		want  string
	}{
		{[]float64{0}, TensorType(3, 5, 0), "float32 3×5×? <nil>"},
		{[]float64{1, 2, 3}, TensorType(0, 5, 5), "float32 ?×5×5 <nil>"},
		{[]float64{1, 2}, TensorType(3, 5, 5), "unknown It gets float32 3×5×5, but value has 2 values for 3 channels. Give one number, or one for each channel."},
		{[]float64{0}, ImageType(5, 5), `unknown It takes a tensor, and gets uint8 image 5×5×3. Put the stage that makes a tensor (prepare "to_float" or "normalize") above it.`},
	}
	for _, tt := range tests {
		out, err := (&RandomErasing{Value: tt.value}).Output(tt.in)
		if got := fmt.Sprint(out, err); got != tt.want {
			t.Errorf("value %v of %v:\n got %s\nwant %s", tt.value, tt.in, got, tt.want)
		}
	}
	const want = "value has 2 values for 3 channels"
	err := newStage(t, &RandomErasing{Value: []float64{1, 2}}).Process(testCall(t.Context()), testTensor(3, 2, 2), new(Element))
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestRandomErasingValidate(t *testing.T) {
	tests := []struct {
		spec *RandomErasing
		want string
	}{
		{defaultErasing(), "[]"},
		{&RandomErasing{Scale: []float64{0.3, 0.2}, Ratio: []float64{1}}, "[" +
			"{scale Range upside down The least value comes first: [0.2, 0.3]. false} " +
			"{ratio Not a range It is a list of two numbers, the least and the greatest. This list has 1. false} " +
			"{value No value Give a number, or a list with one for each channel. false}]"},
	}
	for _, tt := range tests {
		if got := fmt.Sprint(tt.spec.Validate()); got != tt.want {
			t.Errorf("%+v:\n got %s\nwant %s", *tt.spec, got, tt.want)
		}
	}
}

func BenchmarkRandomErasing(b *testing.B) {
	tensor := testTensor(3, 224, 224)
	value, noise := defaultErasing(), defaultErasing()
	value.P, noise.P, noise.Noise = 1, 1, true
	b.Run("value", func(b *testing.B) { benchmark(b, value, tensor) })
	b.Run("noise", func(b *testing.B) { benchmark(b, noise, tensor) })
}
