package stages

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func TestRotation(t *testing.T) {
	small := golden(t, "resize_bilinear_24x32")
	odd := &Element{Type: ImageType(23, 32), U8: small.U8[:23*32*3]}
	tests := []struct {
		name          string
		image         *Element
		degrees       float64
		interpolation string
		expand        bool
		centre        []float64
	}{
		{"nearest", small, 30, "nearest", false, nil},
		{"bilinear", small, -17.3, "bilinear", false, nil},
		{"bicubic", small, 133, "bicubic", false, nil},
		{"expand", small, 45, "bilinear", true, nil},
		{"center", small, 400, "nearest", false, []float64{10.25, 7}},
		{"half_turn", small, 180, "bilinear", false, []float64{10.25, 7}},
		{"quarter", odd, -270, "nearest", true, nil},
		{"far_center", odd, 12, "bicubic", true, []float64{-3, 40}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			// With limits that are equal, the angle is always the same.
			got := process(t, &RandomRotation{[]float64{tt.degrees, tt.degrees}, tt.interpolation, tt.expand, tt.centre, []int{10, 200, 90}}, tt.image)
			equalsGolden(t, got, "rotation_"+tt.name)
		})
	}
}

// What fixed-point numbers don't hold is computed without them: a shear far out moves whole pixels.
func TestAffineFarAway(t *testing.T) {
	in := testImage(2, 4)
	var got Element
	got.Image(2, 4)
	m := affine{1, -40000, 60001, 0, 1, 0} // the first row moves by 40001 pixels to the left, the second by 1 to the right
	m.warp(pixelsOf(&got), pixelsOf(in), "nearest", [3]byte{7, 8, 9})
	want := fmt.Sprint([]byte{7, 8, 9, 7, 8, 9, 7, 8, 9, 7, 8, 9}, append(append([]byte{}, in.U8[15:24]...), 7, 8, 9))
	if got := fmt.Sprint(got.U8[:12], got.U8[12:]); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestRandomRotationPasses(t *testing.T) {
	in := testImage(3, 4)
	for _, degrees := range [][]float64{{0}, {360, 360}} {
		if process(t, &RandomRotation{Degrees: degrees, Interpolation: "bilinear", Expand: true, Fill: []int{0}}, in) != in {
			t.Errorf("the image isn't passed on where it turns by %v", degrees)
		}
	}
}

func TestRandomRotationDraw(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, tt := range []struct {
		degrees         []float64
		low, high, mean float64
	}{
		{[]float64{30}, -30, 30, 0},
		{[]float64{-10, 50}, -10, 50, 20},
	} {
		mean := 0.0
		const n = 10000
		for range n {
			angle := (&RandomRotation{Degrees: tt.degrees}).draw(r)
			if angle < tt.low || angle > tt.high {
				t.Fatalf("drew %v from %v", angle, tt.degrees)
			}
			mean += angle / n
		}
		if mean < tt.mean-1 || mean > tt.mean+1 {
			t.Errorf("the mean of %v is %v, want about %v", tt.degrees, mean, tt.mean)
		}
	}
}

func TestRandomRotationOutput(t *testing.T) {
	for expand, want := range map[bool]Type{false: ImageType(5, 7), true: ImageType(0, 0)} {
		if got, err := (&RandomRotation{Expand: expand}).Output(ImageType(5, 7)); got != want || err != nil {
			t.Errorf("with expand = %v: %v, %v, want %v", expand, got, err, want)
		}
	}
}

func TestRandomRotationValidate(t *testing.T) {
	black := []int{0}
	tests := []struct {
		spec RandomRotation
		want string
	}{
		{RandomRotation{Degrees: []float64{30}, Fill: black}, "[]"},
		{RandomRotation{Degrees: []float64{-90, -30}, Center: []float64{0, 5}, Fill: []int{1, 2, 3}}, "[]"},
		{RandomRotation{Degrees: []float64{-30}, Fill: black}, "[{degrees Negative number A single number x stands for the range [-x, x]: write 30, or give a list of two. false}]"},
		{RandomRotation{Degrees: []float64{30, -30}, Center: []float64{4}, Fill: []int{1, 2}}, "[" +
			"{degrees Range upside down The least value comes first: [-30, 30]. false} " +
			"{center Not a point A point is a list of two numbers, [x, y]. This list has 1. false} " +
			"{fill Not a colour A colour is one number for all channels, or a list of three, [red, green, blue]. This list has 2. false}]"},
	}
	for _, tt := range tests {
		if got := fmt.Sprint(tt.spec.Validate()); got != tt.want {
			t.Errorf("%+v:\n got %s\nwant %s", tt.spec, got, tt.want)
		}
	}
}

func BenchmarkRandomRotation(b *testing.B) {
	image := testImage(224, 224)
	for _, interpolation := range []string{"nearest", "bilinear", "bicubic"} {
		b.Run(interpolation, func(b *testing.B) {
			benchmark(b, &RandomRotation{Degrees: []float64{30}, Interpolation: interpolation, Fill: []int{0}}, image)
		})
	}
}
