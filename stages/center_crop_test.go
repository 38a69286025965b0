package stages

import "testing"

func TestCenterCrop(t *testing.T) {
	photo := golden(t, "photo")
	for name, size := range map[string][]int{
		"33x35": {33, 35}, "35x33": {35, 33}, "101x31": {101, 31}, "20x140": {20, 140}, "97x20": {97, 20}, "12x129": {12, 129},
	} {
		t.Run(name, func(t *testing.T) {
			s, out := newStage(t, &CenterCrop{size}), new(Element)
			for i := range out.Image(256, 256) {
				out.U8[i] = 99 // what the padding has to cover
			}
			if err := s.Process(&Call{}, photo, out); err != nil {
				t.Fatal(err)
			}
			equalsGolden(t, out, "center_crop_"+name)
		})
	}
	if process(t, &CenterCrop{[]int{96, 128}}, photo) != photo {
		t.Error("an image that has the size isn't passed on")
	}
}

func BenchmarkCenterCrop(b *testing.B) { benchmark(b, &CenterCrop{[]int{224}}, testImage(300, 400)) }
