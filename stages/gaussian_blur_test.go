package stages

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestGaussianBlur(t *testing.T) {
	small := golden(t, "resize_bilinear_24x32")
	for _, tt := range []struct {
		kernel []int
		sigma  float64
	}{
		{[]int{3}, 0.1},
		{[]int{5}, 1.3},
		{[]int{3, 7}, 0.8},
		{[]int{23, 1}, 5},
		{[]int{1, 23}, 5},
	} {
		name := fmt.Sprintf("blur_%dx%d_%v", tt.kernel[0], tt.kernel[len(tt.kernel)-1], tt.sigma)
		t.Run(name, func(t *testing.T) {
			got := process(t, &GaussianBlur{tt.kernel, []float64{tt.sigma}}, small)
			equalsGolden(t, got, name) // no value of these is near the middle between two levels
		})
	}
}

// A picture in mirrors goes on as it goes back.
func TestMirrored(t *testing.T) {
	var got [3][]int
	for i := -6; i <= 8; i++ {
		for n := range got {
			got[n] = append(got[n], mirrored(i, n+1))
		}
	}
	want := [3][]int{
		{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0},
		{2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// An image of one colour stays as it is, even where it is much smaller than the kernel.
func TestGaussianBlurOfLittle(t *testing.T) {
	in := new(Element)
	for i := range in.Image(2, 1) {
		in.U8[i] = []byte{3, 128, 255}[i%3]
	}
	for _, sigma := range [][]float64{{0.001, 9}, {1e-300}, {1e300}} {
		if got := process(t, &GaussianBlur{[]int{21, 31}, sigma}, in); !slices.Equal(got.U8, in.U8) {
			t.Errorf("sigma %v: %v, want %v", sigma, got.U8, in.U8)
		}
	}
}

func TestGaussianBlurDraw(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	mean := 0.0
	const n = 10000
	for range n {
		sigma := (&GaussianBlur{Sigma: []float64{0.5, 2.5}}).draw(r)
		if sigma < 0.5 || sigma > 2.5 {
			t.Fatalf("drew %v", sigma)
		}
		mean += sigma / n
	}
	if mean < 1.45 || mean > 1.55 {
		t.Errorf("mean %v, want about 1.5", mean)
	}
	if sigma := (&GaussianBlur{Sigma: []float64{3}}).draw(r); sigma != 3 {
		t.Errorf("one number gives %v", sigma)
	}
}

func TestGaussianBlurValidate(t *testing.T) {
	tests := []struct {
		kernel []int
		sigma  []float64
		want   string
	}{
		{[]int{5}, []float64{0.1, 2}, "[]"},
		{[]int{5, 9}, []float64{3}, "[]"},
		{[]int{}, []float64{1}, "[{kernel Not a size A kernel's size is one odd number of pixels, or a list of two, [width, height]. This list has 0. false}]"},
		{[]int{3, 4, 6}, []float64{2, 1}, "[" +
			"{kernel Not a size A kernel's size is one odd number of pixels, or a list of two, [width, height]. This list has 3. false} " +
			"{kernel Even number A kernel has a pixel in its middle, so its size is odd: write 3 or 5. false} " +
			"{sigma Range upside down The least value comes first: [1, 2]. false}]"},
	}
	for _, tt := range tests {
		if got := fmt.Sprint((&GaussianBlur{tt.kernel, tt.sigma}).Validate()); got != tt.want {
			t.Errorf("kernel %v, sigma %v:\n got %s\nwant %s", tt.kernel, tt.sigma, got, tt.want)
		}
	}
}

func BenchmarkGaussianBlur(b *testing.B) {
	image := testImage(224, 224)
	for _, size := range []int{3, 5, 9, 23} {
		b.Run(fmt.Sprint(size), func(b *testing.B) { benchmark(b, &GaussianBlur{[]int{size}, []float64{0.1, 2}}, image) })
	}
}
