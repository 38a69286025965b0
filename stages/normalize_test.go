package stages

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"testing"
)

func imageNet() *Normalize { return normalizeOperator().New().(*Normalize) }

func TestNormalize(t *testing.T) {
	data, err := os.ReadFile("testdata/torchvision/normalize.f32")
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float32, 3*6*8)
	if err := binary.Read(bytes.NewReader(data), binary.LittleEndian, want); err != nil {
		t.Fatal(err)
	}
	small := process(t, &Resize{[]int{6, 8}, "bilinear"}, golden(t, "photo"))
	for _, in := range []*Element{small, process(t, &ToFloat{}, small)} {
		got := process(t, imageNet(), in)
		if got.Type != TensorType(3, 6, 8) || !slices.Equal(got.F32, want) {
			t.Errorf("from %v: %v %v, want %v", in.Type, got.Type, got.F32, want)
		}
	}
}

func TestNormalizeChannels(t *testing.T) {
	got := process(t, &Normalize{[]float64{1, 3}, []float64{0.5}}, testTensor(2, 1, 3))
	if want := []float32{-2, 0, 2, 0, 2, 4}; !slices.Equal(got.F32, want) {
		t.Errorf("%v, want %v", got.F32, want)
	}
	const want = "mean has 3 values for 2 channels"
	err := newStage(t, imageNet()).Process(&Call{}, testTensor(2, 1, 3), new(Element))
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestNormalizeOutput(t *testing.T) {
	one, three := []float64{0.5}, []float64{0.5, 0.5, 0.5}
	tests := []struct {
		mean, std []float64
		in        Type
		want      string
	}{
		{three, three, ImageType(0, 224), "float32 3×?×224 <nil>"},
		{one, three, TensorType(3, 224, 224), "float32 3×224×224 <nil>"},
		{one, one, TensorType(7, 2, 2), "float32 7×2×2 <nil>"},
		{three, three, TensorType(0, 28, 28), "float32 ?×28×28 <nil>"},
		{three, one, TensorType(1, 28, 28), "unknown It gets float32 1×28×28, but mean has 3 values for 1 channels. Give one number, or one for each channel."},
		{one, []float64{1, 2}, ImageType(28, 28), "unknown It gets uint8 image 28×28×3, but std has 2 values for 3 channels. Give one number, or one for each channel."},
	}
	for _, tt := range tests {
		out, err := (&Normalize{tt.mean, tt.std}).Output(tt.in)
		if got := fmt.Sprint(out, err); got != tt.want {
			t.Errorf("mean %v, std %v of %v:\n got %s\nwant %s", tt.mean, tt.std, tt.in, got, tt.want)
		}
	}
}

func TestNormalizeValidate(t *testing.T) {
	tests := []struct {
		spec *Normalize
		want string
	}{
		{imageNet(), "[]"},
		{&Normalize{[]float64{0}, []float64{-1}}, "[]"},
		{&Normalize{nil, nil}, "[{mean No value Give a number, or a list with one for each channel. false} {std No value Give a number, or a list with one for each channel. false}]"},
		{&Normalize{[]float64{0}, []float64{1, 0, 1e-60}}, "[{std Division by zero A standard deviation can't be 0: give 1 for a channel that is only to be shifted. false}]"},
	}
	for _, tt := range tests {
		if got := fmt.Sprint(tt.spec.Validate()); got != tt.want {
			t.Errorf("%+v:\n got %s\nwant %s", *tt.spec, got, tt.want)
		}
	}
}

func BenchmarkNormalize(b *testing.B) {
	image := testImage(224, 224)
	b.Run("image", func(b *testing.B) { benchmark(b, imageNet(), image) })
	b.Run("tensor", func(b *testing.B) { benchmark(b, imageNet(), process(b, &ToFloat{}, image)) })
}
