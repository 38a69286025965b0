package stages

import "testing"

func FuzzDecodeImage(f *testing.F) {
	fuzzDecode(f, &DecodeImage{ExifOrientation: true, MaxPixels: 1e6})
}

func BenchmarkDecodeImage(b *testing.B) {
	for _, name := range []string{"420.jpg", "rgb.png", "palette.gif", "rgb.bmp", "lossy.webp", "rgb.tiff"} {
		b.Run(name, func(b *testing.B) {
			benchmarkDecode(b, &DecodeImage{MaxPixels: maxDecoded}, "testdata/decode/"+name)
		})
	}
}
