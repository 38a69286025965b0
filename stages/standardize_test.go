package stages

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// closeTo reports whether all values of got are those of want, up to an error.
func closeTo(got, want []float32, most float64) bool {
	return slices.EqualFunc(got, want, func(a, b float32) bool { return math.Abs(float64(a)-float64(b)) <= most })
}

func TestStandardizeBySample(t *testing.T) {
	data, err := os.ReadFile("testdata/torchvision/standardized.f32")
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float32, 3*3*4)
	if err := binary.Read(bytes.NewReader(data), binary.LittleEndian, want); err != nil {
		t.Fatal(err)
	}
	image := golden(t, "tiny")
	levels := process(t, &ToFloat{}, image)
	for i, v := range levels.F32 {
		levels.F32[i] = v * 255
	}
	for _, in := range []*Element{image, levels} {
		got := process(t, &Standardize{}, in)
		if got.Type != TensorType(3, 3, 4) || !closeTo(got.F32, want, 1e-6) {
			t.Errorf("from %v: %v %v, want %v", in.Type, got.Type, got.F32, want)
		}
	}
}

// A sample without contrast becomes 0, and one with hardly any isn't blown up.
func TestStandardizeFlat(t *testing.T) {
	image := new(Element)
	for i := range image.Image(5, 7) {
		image.U8[i] = 77
	}
	tests := []struct {
		in   *Element
		want []float32
	}{
		{image, make([]float32, 3*5*7)},
		{&Element{Type: TensorType(1, 2, 2), F32: []float32{0.1, 0.1, 0.1, 0.1}}, make([]float32, 4)},
		{&Element{Type: TensorType(1, 2, 2), F32: []float32{0.1, -0.1, 0.1, -0.1}}, []float32{0.2, -0.2, 0.2, -0.2}}, // by 1/√4
	}
	for _, tt := range tests {
		if got := process(t, &Standardize{}, tt.in); !slices.Equal(got.F32, tt.want) {
			t.Errorf("from %v: %v, want %v", tt.in.Type, got.F32, tt.want)
		}
	}
}

func TestStandardizeByDataSet(t *testing.T) {
	f, err := os.Open("testdata/torchvision/scaled.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows [4][]float64 // means, deviations, a sample, and what becomes of it
	var sample, want []float32
	for lines, i := bufio.NewScanner(f), 0; lines.Scan(); i++ {
		for _, word := range strings.Fields(lines.Text()) {
			v, err := strconv.ParseFloat(word, 64)
			if err != nil {
				t.Fatal(err)
			}
			rows[i] = append(rows[i], v)
		}
	}
	for i := range rows[2] {
		sample, want = append(sample, float32(rows[2][i])), append(want, float32(rows[3][i]))
	}
	for _, shape := range []Type{TensorType(1, 1, 4), TensorType(4, 1, 1)} {
		got := process(t, &Standardize{Mean: rows[0], Std: rows[1]}, &Element{Type: shape, F32: sample})
		if got.Type != shape || !slices.Equal(got.F32, want) {
			t.Errorf("%v %v, want %v", got.Type, got.F32, want)
		}
	}
	got := process(t, &Standardize{[]float64{1}, []float64{2}}, testTensor(1, 1, 3))
	if want := []float32{-0.5, 0, 0.5}; !slices.Equal(got.F32, want) {
		t.Errorf("%v, want %v", got.F32, want)
	}
}

func TestStandardizeOutput(t *testing.T) {
	one, two := []float64{1}, []float64{1, 2}
	tests := []struct {
		mean, std []float64
		in        Type
		want      string
	}{
		{nil, nil, ImageType(0, 224), "float32 3×?×224 <nil>"},
		{nil, nil, TensorType(1, 1, 9), "float32 1×1×9 <nil>"},
		{two, one, TensorType(1, 1, 2), "float32 1×1×2 <nil>"},
		{two, two, TensorType(1, 1, 0), "float32 1×1×? <nil>"},
		{two, one, TensorType(1, 1, 3), "unknown It gets float32 1×1×3, but mean has 2 values for a sample of 3. Give one number, or one for each value."},
		{one, two, TensorType(1, 1, 3), "unknown It gets float32 1×1×3, but std has 2 values for a sample of 3. Give one number, or one for each value."},
		{one, one, ImageType(2, 2), `unknown It gets uint8 image 2×2×3, and has the data set's mean and std. For images that is the work of prepare "normalize".`},
		{nil, nil, Type{Kind: Encoded}, `unknown It takes a tensor or an image, and gets encoded bytes. Put a decode stage (prepare "decode_jpeg") above it.`},
	}
	for _, tt := range tests {
		out, err := (&Standardize{tt.mean, tt.std}).Output(tt.in)
		if got := fmt.Sprint(out, err); got != tt.want {
			t.Errorf("mean %v, std %v of %v:\n got %s\nwant %s", tt.mean, tt.std, tt.in, got, tt.want)
		}
	}
	const want = "mean has 2 values for a sample of 3"
	err := newStage(t, &Standardize{two, one}).Process(&Call{}, testTensor(1, 1, 3), new(Element))
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestStandardizeValidate(t *testing.T) {
	one := []float64{1}
	tests := []struct {
		mean, std []float64
		want      string
	}{
		{nil, nil, "[]"},
		{one, one, "[]"},
		{one, nil, "[{mean Half of the statistics Give std too, or neither: then each sample is standardized by its own. false}]"},
		{nil, one, "[{std Half of the statistics Give mean too, or neither: then each sample is standardized by its own. false}]"},
	}
	for _, tt := range tests {
		if got := fmt.Sprint((&Standardize{tt.mean, tt.std}).Validate()); got != tt.want {
			t.Errorf("mean %v, std %v:\n got %s\nwant %s", tt.mean, tt.std, got, tt.want)
		}
	}
}

func BenchmarkStandardize(b *testing.B) {
	image := testImage(224, 224)
	tensor := process(b, &ToFloat{}, image)
	b.Run("image", func(b *testing.B) { benchmark(b, &Standardize{}, image) })
	b.Run("tensor", func(b *testing.B) { benchmark(b, &Standardize{}, tensor) })
	b.Run("given", func(b *testing.B) { benchmark(b, &Standardize{[]float64{1}, []float64{2}}, tensor) })
}
