package stages

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// cropPair holds the fused operator and the two that it stands for.
type cropPair struct{ decode, crop, fused Stage }

func newCropPair(tb testing.TB, crop RandomResizedCrop, decode DecodeJPEG) cropPair {
	p := cropPair{newDecoder(tb, &decode), newStage(tb, &crop), newStage(tb, &DecodeRandomResizedCrop{crop, decode})}
	tb.Cleanup(func() {
		if err := p.fused.(*croppingDecoder).Close(); err != nil {
			tb.Error(err)
		}
	})
	return p
}

// run returns what both ways make of a file with the same random numbers.
func (p cropPair) run(data []byte, seed uint64) (got, want *Element, gotErr, wantErr error) {
	in, whole := &Element{Type: Type{Kind: Encoded}, U8: data}, new(Element)
	call := func() *Call { return &Call{Rand: rand.New(rand.NewPCG(seed, 0))} }
	got, want = new(Element), new(Element)
	gotErr = p.fused.Process(call(), in, got)
	if wantErr = p.decode.Process(call(), in, whole); wantErr == nil {
		wantErr = p.crop.Process(call(), whole, want)
	}
	return got, want, gotErr, wantErr
}

func jpegFiles(tb testing.TB, patterns ...string) map[string][]byte {
	tb.Helper()
	files := make(map[string][]byte)
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			tb.Fatal(pattern, err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				tb.Fatal(err)
			}
			files[name] = data
		}
	}
	return files
}

// Part of a picture, decoded by itself, is the same as in the whole: for each way of encoding it, each orientation and at all places.
func TestDecodeRandomResizedCrop(t *testing.T) {
	files := jpegFiles(t, "testdata/decode/*.jpg", "../examples/photos/photos/*/*_00.jpg")
	turned := files["testdata/decode/orientation.jpg"]
	for o := byte(1); o <= 8; o++ {
		files["orientation "+string('0'+o)] = bytes.Replace(turned, []byte(orientationTag), []byte(orientationTag[:9]+string(rune(o))), 1)
	}
	for _, interpolation := range []string{"bilinear", "bicubic", "nearest"} {
		for _, upright := range []bool{false, true} {
			crop := *defaultCrop(100)
			crop.Scale[0], crop.Interpolation = 0.001, interpolation
			pair := newCropPair(t, crop, DecodeJPEG{ExifOrientation: upright, MaxPixels: maxDecoded})
			for name, data := range files {
				for seed := range uint64(4) {
					got, want, err, wantErr := pair.run(data, seed)
					if (err == nil) != (wantErr == nil) {
						t.Errorf("%s: error %v, want %v", name, err, wantErr)
					} else if err == nil && (got.Type != want.Type || !slices.Equal(got.U8, want.U8)) {
						mean, most := difference(got.U8, want.U8)
						t.Errorf("%s, %s, upright %v, seed %d: %v differs from %v by %.3f in the mean, %d at most", name, interpolation, upright, seed, got.Type, want.Type, mean, most)
					}
				}
			}
		}
	}
}

// orientationTag is the EXIF orientation 6 as orientation.jpg has it.
const orientationTag = "\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06"

// Pictures that are decoded at a lower resolution differ a little from those that aren't, however they are turned.
func TestDecodeRandomResizedCropReduced(t *testing.T) {
	photos := jpegFiles(t, "../examples/photos/photos/*/*_00.jpg")
	exif := jpegFiles(t, "testdata/decode/orientation.jpg")["testdata/decode/orientation.jpg"][2:56] // its segments up to the EXIF data
	for _, tt := range []struct {
		size, denominator int
		mean, worst       float64
	}{{60, 2, 0.5, 1.2}, {30, 4, 0.6, 1.2}, {15, 8, 0.8, 1.6}} {
		crop := *defaultCrop(tt.size)
		crop.Scale[0] = 0.9 // so that it is reduced where the picture's height is 4 times the size, or more
		if got := (&croppingDecoder{spec: DecodeRandomResizedCrop{RandomResizedCrop: crop}}).denominator(box{Height: 260, Width: 300}); got != tt.denominator {
			t.Errorf("size %d: denominator %d, want %d", tt.size, got, tt.denominator)
		}
		for o := byte(1); o <= 8; o++ {
			pair := newCropPair(t, crop, DecodeJPEG{ExifOrientation: true, MaxPixels: maxDecoded})
			sum := 0.0
			for name, data := range photos {
				tag := bytes.Replace(exif, []byte(orientationTag), []byte(orientationTag[:9]+string(rune(o))), 1)
				got, want, err, wantErr := pair.run(slices.Concat(data[:2], tag, data[2:]), 1)
				if err != nil || wantErr != nil {
					t.Fatal(err, wantErr)
				}
				mean, most := difference(got.U8, want.U8)
				if sum += mean; mean > tt.worst {
					t.Errorf("%s, orientation %d, size %d: mean difference %.3f, at most %d", name, o, tt.size, mean, most)
				}
			}
			if mean := sum / float64(len(photos)); mean > tt.mean {
				t.Errorf("orientation %d, size %d: mean difference %.3f, want %v at most", o, tt.size, mean, tt.mean)
			}
		}
	}
}

// Chroma of a quarter of the height or width isn't reduced: libjpeg-turbo doesn't skip and crop it rightly.
func TestDecodeRandomResizedCropIrreducible(t *testing.T) {
	crop := *defaultCrop(3)
	crop.Scale[0] = 0.3
	pair := newCropPair(t, crop, DecodeJPEG{MaxPixels: maxDecoded})
	for name, data := range jpegFiles(t, "testdata/decode/?x?.jpg") {
		for seed := range uint64(20) {
			got, want, err, wantErr := pair.run(data, seed)
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("%s: error %v, want %v", name, err, wantErr)
			}
			if !slices.Equal(got.U8, want.U8) {
				t.Errorf("%s, seed %d: %v, want %v", name, seed, got.U8, want.U8)
			}
		}
	}
}

// Nothing but damage below the crop stays unseen.
func TestDecodeRandomResizedCropBroken(t *testing.T) {
	pair := newCropPair(t, *defaultCrop(16), DecodeJPEG{MaxPixels: 1e6})
	for name, data := range broken(t) {
		if _, _, err, wantErr := pair.run(data, 1); err == nil || err.Error() != wantErr.Error() {
			t.Errorf("%s: error %v, want %v", name, err, wantErr)
		}
	}
	small := newCropPair(t, *defaultCrop(16), DecodeJPEG{MaxPixels: 961})
	data := jpegFiles(t, "testdata/decode/420.jpg")["testdata/decode/420.jpg"]
	const want = "the picture has 37×26 pixels, which is more than max_pixels = 961"
	if _, _, err, _ := small.run(data, 1); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, _, err, _ := pair.run(data, 1); err != nil { // the stage is of use after its failures
		t.Error(err)
	}
}

func TestDecodeRandomResizedCropOutput(t *testing.T) {
	spec := decodeRandomResizedCropOperator().New().(*DecodeRandomResizedCrop)
	spec.Size = []int{24, 32}
	for _, tt := range []struct {
		in, want Type
		err      string
	}{
		{in: Type{Kind: Encoded}, want: ImageType(24, 32)},
		{in: Type{}, want: ImageType(24, 32)},
		{in: ImageType(0, 0), err: "It takes encoded bytes, and gets uint8 image ?×?×3. It's decoded already, so remove this stage."},
	} {
		got, err := spec.Output(tt.in)
		msg := ""
		if err != nil {
			msg = err.Error()
		}
		if got != tt.want || msg != tt.err {
			t.Errorf("%v: %v, %q; want %v, %q", tt.in, got, msg, tt.want, tt.err)
		}
	}
}

// What decode_jpeg makes a picture of, the fused operator does too, and the same.
func FuzzDecodeRandomResizedCrop(f *testing.F) {
	addPictures(f)
	pair := newCropPair(f, *defaultCrop(20), DecodeJPEG{ExifOrientation: true, MaxPixels: 1e4}) // too few to be reduced
	f.Fuzz(func(t *testing.T, data []byte) {
		got, want, err, wantErr := pair.run(data, 1)
		if wantErr == nil && (err != nil || got.Type != want.Type || !slices.Equal(got.U8, want.U8)) {
			t.Errorf("%v %v (%v), want %v %v", got.Type, got.U8, err, want.Type, want.U8)
		}
		if err == nil && len(got.U8) != 20*20*3 {
			t.Errorf("%v with %d bytes", got.Type, len(got.U8))
		}
	})
}

func BenchmarkDecodeRandomResizedCrop(b *testing.B) {
	benchmark(b, &DecodeRandomResizedCrop{*defaultCrop(224), DecodeJPEG{MaxPixels: maxDecoded}},
		&Element{Type: Type{Kind: Encoded}, U8: jpegFiles(b, "../examples/photos/photos/coffee/coffee_00.jpg")["../examples/photos/photos/coffee/coffee_00.jpg"]})
}
