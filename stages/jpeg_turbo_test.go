//go:build cgo && !purejpeg

package stages

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// stricter reports whether the JPEG decoder may refuse a picture that PIL decodes.
func stricter(string) bool { return false }

// tolerance returns by how much a picture may differ from PIL's, in the mean: not at all with the libjpeg-turbo that
// made the goldens, a little with another.
func tolerance(name string) float64 {
	if strings.HasSuffix(name, ".jpg") {
		return 0.5
	}
	return 0
}

func TestDecodeJPEGAllocates(t *testing.T) {
	data, err := os.ReadFile("../examples/photos/photos/coffee/coffee_00.jpg")
	if err != nil {
		t.Fatal(err)
	}
	crop := newCropPair(t, RandomResizedCrop{[]int{60}, []float64{1, 1}, []float64{1, 1}, "bilinear"}, DecodeJPEG{MaxPixels: maxDecoded})
	for _, s := range []Stage{newDecoder(t, &DecodeJPEG{MaxPixels: maxDecoded}), crop.fused} {
		c, in, out := testCall(t.Context()), Element{U8: data}, Element{}
		if n := testing.AllocsPerRun(20, func() {
			if err := s.Process(c, &in, &out); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%T: %v allocations an item, want none", s, n)
		}
	}
}

func TestDecodeJPEGUnsupported(t *testing.T) {
	data, err := os.ReadFile("testdata/decode/420.jpg")
	if err != nil {
		t.Fatal(err)
	}
	frame := bytes.Index(data, []byte("\xff\xc0"))
	s := newDecoder(t, &DecodeJPEG{MaxPixels: maxDecoded})
	for _, tt := range []struct {
		at   int
		to   byte
		want string
	}{
		{frame + 1, 0xc3, "decoding JPEG: lossless or hierarchical coding (SOF3) isn't supported: convert the file"},
		{frame + 4, 12, "decoding JPEG: samples of 12 bits aren't supported: convert the file to 8"},
	} {
		changed := bytes.Clone(data)
		changed[tt.at] = tt.to
		if err := s.Process(new(Call), &Element{U8: changed}, new(Element)); err == nil || err.Error() != tt.want {
			t.Errorf("error %v, want %s", err, tt.want)
		}
	}
}

// A progressive file may hold thousands of scans of a few bytes, each over all its pixels.
func TestDecodeJPEGScans(t *testing.T) {
	data, err := os.ReadFile("testdata/decode/progressive.jpg")
	if err != nil {
		t.Fatal(err)
	}
	end := len(data) - 2 // of the last scan, before the end of the image
	last := bytes.LastIndex(data, []byte("\xff\xda"))
	bomb := append(bytes.Clone(data[:end]), bytes.Repeat(data[last:end], 600)...)
	bomb = append(bomb, "\xff\xd9"...)
	err = newDecoder(t, &DecodeJPEG{MaxPixels: maxDecoded}).Process(new(Call), &Element{U8: bomb}, new(Element))
	if err == nil || err.Error() != "decoding JPEG: more than 500 scans" {
		t.Errorf("error %v, want one about too many scans", err)
	}
}
