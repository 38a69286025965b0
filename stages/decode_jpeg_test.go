package stages

import "testing"

func FuzzDecodeJPEG(f *testing.F) { fuzzDecode(f, &DecodeJPEG{ExifOrientation: true, MaxPixels: 1e6}) }

func BenchmarkDecodeJPEG(b *testing.B) {
	benchmarkDecode(b, &DecodeJPEG{MaxPixels: maxDecoded}, "../examples/photos/photos/coffee/coffee_00.jpg")
}
