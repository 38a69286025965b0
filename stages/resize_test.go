package stages

import (
	"fmt"
	"testing"
)

func TestResize(t *testing.T) {
	photo := golden(t, "photo")
	for _, interpolation := range []string{"bilinear", "bicubic", "nearest"} {
		for name, size := range map[string][]int{
			"45": {45}, "24x32": {24, 32}, "24x150": {24, 150}, "110x31": {110, 31}, "96x20": {96, 20}, "20x128": {20, 128},
		} {
			t.Run(interpolation+"_"+name, func(t *testing.T) {
				equalsGolden(t, process(t, &Resize{size, interpolation}, photo), "resize_"+interpolation+"_"+name)
			})
		}
	}
}

func TestResizePasses(t *testing.T) {
	in := testImage(30, 20)
	for _, size := range [][]int{{20}, {30, 20}} {
		if process(t, &Resize{size, "bilinear"}, in) != in {
			t.Errorf("an image of 30×20 isn't passed on with size %v", size)
		}
	}
}

func TestResizeOutput(t *testing.T) {
	tests := []struct {
		size     []int
		in, want Type
	}{
		{[]int{256}, ImageType(0, 0), ImageType(0, 0)},
		{[]int{256}, ImageType(0, 640), ImageType(0, 0)},
		{[]int{256}, ImageType(480, 640), ImageType(256, 341)},
		{[]int{256}, ImageType(500, 375), ImageType(341, 256)},
		{[]int{256}, ImageType(10, 10), ImageType(256, 256)},
		{[]int{24, 32}, ImageType(0, 0), ImageType(24, 32)},
		{[]int{24, 32}, Type{}, ImageType(24, 32)},
	}
	for _, tt := range tests {
		if got, err := (&Resize{Size: tt.size}).Output(tt.in); err != nil || got != tt.want {
			t.Errorf("size %v of %v: %v, %v, want %v", tt.size, tt.in, got, err, tt.want)
		}
	}
}

func TestResizeTooLarge(t *testing.T) {
	const want = "resizing the image of 1×60000 to 224×13440000: that is over 268435456 pixels"
	err := newStage(t, &Resize{[]int{224}, "bilinear"}).Process(&Call{}, testImage(1, 60000), new(Element))
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func BenchmarkResize(b *testing.B) {
	for _, interpolation := range []string{"bilinear", "bicubic", "nearest"} {
		for _, from := range [][2]int{{300, 400}, {1200, 1600}} {
			b.Run(fmt.Sprintf("%s/%dx%d", interpolation, from[0], from[1]), func(b *testing.B) {
				benchmark(b, &Resize{[]int{224}, interpolation}, testImage(from[0], from[1]))
			})
		}
	}
}
