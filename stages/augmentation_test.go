package stages

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestAugmentations(t *testing.T) {
	small := golden(t, "resize_bilinear_24x32")
	tests := []struct {
		augmentation  augmentation
		name          string
		magnitude     float64
		interpolation string
	}{
		{shearX, "ShearX", 0.561, "nearest"},
		{shearX, "ShearX", -0.297, "bilinear"},
		{shearY, "ShearY", -0.561, "nearest"},
		{shearY, "ShearY", 0.297, "bicubic"},
		{translateX, "TranslateX", 5.9, "nearest"},
		{translateX, "TranslateX", -40, "nearest"},
		{translateY, "TranslateY", -5.9, "bilinear"},
		{rotate, "Rotate", 27, "bilinear"},
		{changeBrightness, "Brightness", 0.5, "nearest"},
		{changeColour, "Color", -0.7, "nearest"},
		{changeContrast, "Contrast", 0.8, "nearest"},
		{changeSharpness, "Sharpness", 0.99, "nearest"},
		{changeSharpness, "Sharpness", -0.9, "nearest"},
		{posterize, "Posterize", 3, "nearest"},
		{solarize, "Solarize", 127.5, "nearest"},
		{autocontrast, "AutoContrast", 0, "nearest"},
		{equalize, "Equalize", 0, "nearest"},
	}
	for _, tt := range tests {
		name := fmt.Sprintf("augment_%s_%v", tt.name, tt.magnitude)
		t.Run(name, func(t *testing.T) {
			a := augmenter{kernels: fastKernels(), interpolation: tt.interpolation, fill: [3]byte{10, 200, 90}}
			got := new(Element)
			got.Image(24, 32)
			a.apply(augmentationStep{tt.augmentation, tt.magnitude}, pixelsOf(got), pixelsOf(small))
			equalsGolden(t, got, name)
		})
	}
}

// Channels of few values have tables of their own kind.
func TestTablesOfFewValues(t *testing.T) {
	apply := func(step augmentation, in *Element) *Element {
		got := new(Element)
		got.Image(in.Type.Shape[0], in.Type.Shape[1])
		new(augmenter).apply(augmentationStep{augmentation: step}, pixelsOf(got), pixelsOf(in))
		return got
	}
	flat := golden(t, "flat")
	equalsGolden(t, apply(autocontrast, flat), "autocontrast_flat")
	equalsGolden(t, apply(equalize, flat), "flat") // fewer than 255 pixels are left as they are
	equalsGolden(t, apply(equalize, process(t, &Resize{[]int{22, 23}, "bilinear"}, golden(t, "resize_bilinear_24x32"))), "equalize_22x23")
}

// An image without pixels that have neighbours on all sides isn't sharpened.
func TestSharpnessOfLittle(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {2, 9}, {9, 2}, {1, 9}} {
		in, got := testImage(size[0], size[1]), new(Element)
		got.Image(size[0], size[1])
		new(sharpener).apply(pixelsOf(got), pixelsOf(in), 1.9)
		if !slices.Equal(got.U8, in.U8) {
			t.Errorf("%d×%d: %v, want %v", size[0], size[1], got.U8, in.U8)
		}
	}
}

// The magnitudes of all bins, and which have signs, are torchvision's.
func TestMagnitudes(t *testing.T) {
	f, err := os.Open("testdata/torchvision/magnitudes.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	trivial, err := (&TrivialAugment{Fill: []int{0}}).New()
	if err != nil {
		t.Fatal(err)
	}
	kinds := []struct {
		name       string
		magnitudes magnitudes
	}{
		{"trivial", trivial.(*trivialAugmenter).magnitudes},
		{"rand", randMagnitudes(24, 33)},
	}
	names := strings.Fields("Identity ShearX ShearY TranslateX TranslateY Rotate Brightness Color Contrast Sharpness Posterize Solarize AutoContrast Equalize")
	lines := bufio.NewScanner(f)
	for _, bins := range []int{2, 11, 31} {
		for _, kind := range kinds {
			for a := range augmentations {
				got := fmt.Sprint(kind.name, " ", bins, " ", names[a])
				if a.signed() {
					got += " signed"
				} else {
					got += " unsigned"
				}
				n := 1
				if a.graded() {
					n = bins
				}
				for bin := range n {
					got += fmt.Sprintf(" %.6g", kind.magnitudes.of(a, bin, bins))
				}
				if lines.Scan(); got != lines.Text() {
					t.Errorf("\n got %s\nwant %s", got, lines.Text())
				}
			}
		}
	}
}

func BenchmarkAugmentation(b *testing.B) {
	image, out := testImage(224, 224), new(Element)
	out.Image(224, 224)
	for _, bm := range []struct {
		name string
		step augmentationStep
	}{
		{"shear", augmentationStep{shearY, 0.2}},
		{"translate", augmentationStep{translateX, 20}},
		{"rotate", augmentationStep{rotate, 20}},
		{"sharpness", augmentationStep{changeSharpness, 0.5}},
		{"posterize", augmentationStep{posterize, 4}},
		{"equalize", augmentationStep{augmentation: equalize}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			a := augmenter{kernels: fastKernels(), interpolation: "nearest"}
			b.SetBytes(int64(image.Size()))
			b.ReportAllocs()
			for b.Loop() {
				a.apply(bm.step, pixelsOf(out), pixelsOf(image))
			}
		})
	}
}
