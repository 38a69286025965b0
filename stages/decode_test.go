package stages

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// decodeFile decodes a file with a stage.
func decodeFile(t *testing.T, s Stage, path string) (*Element, error) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := new(Element)
	err = s.Process(&Call{Context: t.Context()}, &Element{Type: Type{Kind: Encoded}, U8: data}, out)
	return out.Result(), err
}

// newDecoder makes a decode stage that is closed at the test's end.
func newDecoder(tb testing.TB, spec StageSpec) Stage {
	s := newStage(tb, spec)
	tb.Cleanup(func() {
		if err := s.(*decoder).Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// difference returns the mean and the largest absolute difference of two images' values.
func difference(a, b []byte) (mean float64, most int) {
	sum := 0
	for i := range a {
		d := int(a[i]) - int(b[i])
		if d < 0 {
			d = -d
		}
		sum, most = sum+d, max(most, d)
	}
	return float64(sum) / float64(len(a)), most
}

// TestDecode decodes each picture in testdata/decode and compares it with what PIL made of it.
func TestDecode(t *testing.T) {
	goldens, err := filepath.Glob("testdata/decode/*.rgb")
	if err != nil || len(goldens) < 40 {
		t.Fatal("testdata/decode lacks pictures", err)
	}
	decodeJPEG := newDecoder(t, &DecodeJPEG{MaxPixels: maxDecoded})
	decodeImage := newDecoder(t, &DecodeImage{MaxPixels: maxDecoded})
	upright := newDecoder(t, &DecodeImage{MaxPixels: maxDecoded, ExifOrientation: true})
	for _, golden := range goldens {
		path := strings.TrimSuffix(golden, ".rgb")
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			h, w := int(binary.BigEndian.Uint16(want)), int(binary.BigEndian.Uint16(want[2:]))
			decoders := map[string]Stage{"decode_image": decodeImage}
			if strings.HasPrefix(name, "orientation") {
				decoders = map[string]Stage{"upright": upright}
			} else if strings.HasSuffix(name, ".jpg") {
				decoders["decode_jpeg"] = decodeJPEG
			}
			for by, s := range decoders {
				got, err := decodeFile(t, s, path)
				if err != nil {
					if stricter(name) {
						continue
					}
					t.Fatalf("%s: %v", by, err)
				}
				if got.Type != ImageType(h, w) {
					t.Fatalf("%s: %v, want %d×%d", by, got.Type, h, w)
				}
				mean, most := difference(got.U8, want[4:])
				if limit := tolerance(name); mean > limit {
					t.Errorf("%s: mean difference from PIL %.3f, at most %d; want a mean of at most %v", by, mean, most, limit)
				}
			}
		})
	}
}

// TestDecodePhotos checks the size of each photo of the demo, and the mean of each channel in each quarter of it,
// against those of PIL.
func TestDecodePhotos(t *testing.T) {
	list, err := os.ReadFile("testdata/decode/photos.txt")
	if err != nil {
		t.Fatal(err)
	}
	decoder := newDecoder(t, &DecodeJPEG{MaxPixels: maxDecoded})
	for line := range strings.Lines(string(list)) {
		var path string
		var h, w int
		var want [4][3]float64
		args := []any{&path, &h, &w}
		for q := range want {
			args = append(args, &want[q][0], &want[q][1], &want[q][2])
		}
		if _, err := fmt.Sscan(line, args...); err != nil {
			t.Fatal(err)
		}
		img, err := decodeFile(t, decoder, "../examples/photos/photos/"+path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if img.Type != ImageType(h, w) {
			t.Errorf("%s: %v, want %d×%d", path, img.Type, h, w)
			continue
		}
		for q, b := range []box{{0, 0, h / 2, w / 2}, {0, w / 2, h / 2, w - w/2}, {h / 2, 0, h - h/2, w / 2}, {h / 2, w / 2, h - h/2, w - w/2}} {
			got := means(pixelsOf(img).crop(b))
			for c := range got {
				if math.Abs(got[c]-want[q][c]) > 1 {
					t.Errorf("%s: quarter %d has means %.2f, want %.2f", path, q, got, want[q])
					break
				}
			}
		}
	}
}

// means returns the mean of each channel.
func means(p pixels) (m [3]float64) {
	for y := range p.h {
		for i, v := range p.row(y) {
			m[i%3] += float64(v) / float64(p.h*p.w)
		}
	}
	return m
}

// broken are files that no decode stage may take, by what is wrong with them.
func broken(tb testing.TB) map[string][]byte {
	files := make(map[string][]byte)
	for _, name := range []string{"420.jpg", "progressive.jpg", "cmyk.jpg", "rgb.png", "palette.gif", "rgb.bmp", "lossy.webp", "lossless.webp", "lzw.tiff"} {
		data, err := os.ReadFile("testdata/decode/" + name)
		if err != nil {
			tb.Fatal(err)
		}
		files[name+" cut in half"] = data[:len(data)/2]
		files[name+" cut in its header"] = data[:14]
	}
	files["empty"] = nil
	files["text"] = []byte("hello, world: no picture at all")
	files["start of a JPEG file"] = []byte("\xff\xd8\xff")
	files["JPEG file without a picture"] = []byte("\xff\xd8\xff\xd9")
	return files
}

func TestDecodeBroken(t *testing.T) {
	for _, spec := range []StageSpec{&DecodeJPEG{MaxPixels: 1e6}, &DecodeImage{MaxPixels: 1e6}, &DecodeImage{MaxPixels: 1e6, ExifOrientation: true}} {
		s := newDecoder(t, spec)
		for name, data := range broken(t) {
			if err := s.Process(new(Call), &Element{U8: data}, new(Element)); err == nil {
				t.Errorf("%T decodes a file although it's broken: %s", spec, name)
			}
		}
		// The stage is of use after its failures.
		if _, err := decodeFile(t, s, "testdata/decode/420.jpg"); err != nil {
			t.Error(err)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, tt := range []struct{ spec, path, want string }{
		{"decode_jpeg", "rgb.png", "not a JPEG but a PNG file: use decode_image, which reads both"},
		{"decode_jpeg", "make.py", "not a JPEG file"},
		{"decode_image", "make.py", "not a JPEG, PNG, GIF, BMP, WebP or TIFF file"},
		{"decode_jpeg", "420.jpg", "the picture has 37×26 pixels, which is more than max_pixels = 961"},
		{"decode_image", "progressive.jpg", "the picture has 37×26 pixels, which is more than max_pixels = 961"},
		{"decode_image", "rgb.png", "the picture has 37×26 pixels, which is more than max_pixels = 961"},
	} {
		var spec StageSpec = &DecodeJPEG{MaxPixels: 961}
		if tt.spec == "decode_image" {
			spec = &DecodeImage{MaxPixels: 961}
		}
		if _, err := decodeFile(t, newDecoder(t, spec), "testdata/decode/"+tt.path); err == nil || err.Error() != tt.want {
			t.Errorf("%s of %s: error %v, want %s", tt.spec, tt.path, err, tt.want)
		}
	}
}

// What is no picture that can be decoded is told with what to do about it.
func TestDecodeForeign(t *testing.T) {
	const known = "not a JPEG, PNG, GIF, BMP, WebP or TIFF file"
	tiff := func(tag string) string {
		return "II*\x00\x08\x00\x00\x00\x01\x00" + tag + "\x03\x00\x01\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00"
	}
	s := newDecoder(t, &DecodeImage{MaxPixels: 1e6})
	for _, tt := range []struct{ data, want string }{
		{"\x00\x00\x00\x18ftypheic\x00\x00", known + " but a HEIC file: convert it"},
		{"\x00\x00\x00\x1cftypavif\x00\x00", known + " but an AVIF file: convert it"},
		{"<!DOCTYPE html><title>404</title>", known + " but a web page in its place: fetch it anew"},
		{"version https://git-lfs.github.com/spec/v1\n", known + " but a Git LFS pointer in its place: fetch it with git lfs pull"},
		{"version", known},
		{tiff("\x0a\x01"), "decoding TIFF: tiff: unsupported feature: FillOrder of 2: convert the file, such as to PNG"},
		{tiff("\x1c\x01"), "decoding TIFF: tiff: unsupported feature: PlanarConfiguration of 2: convert the file, such as to PNG"},
		{"RIFF\x1a\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x02\x00\x00\x00\x24\x00\x00\x19\x00\x00", "decoding WebP: the animation has no whole first frame"},
		{"RIFF\x1a\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x02\x00\x00\x00\xff\xff\xff\xff\xff\xff", "the picture has 16777216×16777216 pixels, which is more than max_pixels = 1000000"},
	} {
		if err := s.Process(new(Call), &Element{U8: []byte(tt.data)}, new(Element)); err == nil || err.Error() != tt.want {
			t.Errorf("%q: error %v, want %s", tt.data, err, tt.want)
		}
	}
}

func TestDecodedType(t *testing.T) {
	for _, tt := range []struct {
		in   Type
		want Type
		err  string
	}{
		{in: Type{Kind: Encoded}, want: ImageType(0, 0)},
		{in: Type{}, want: Type{}},
		{in: ImageType(2, 3), err: "It takes encoded bytes, and gets uint8 image 2×3×3. It's decoded already, so remove this stage."},
		{in: TensorType(3, 2, 2), err: "It takes encoded bytes, and gets float32 3×2×2. Put it right after the load block."},
		{in: Type{Opaque, Shape{9}}, err: `It takes encoded bytes, and gets opaque bytes [9]. These bytes are no file of a picture; load some (load "image_folder") or make some (load "synthetic" with encode = "jpeg").`},
	} {
		got, err := decodedType(tt.in)
		msg := ""
		if err != nil {
			msg = err.Error()
		}
		if got != tt.want || msg != tt.err {
			t.Errorf("%v: %v, %q; want %v, %q", tt.in, got, msg, tt.want, tt.err)
		}
	}
}

// addPictures gives a fuzz target all pictures in testdata/decode, small as they are.
func addPictures(f *testing.F) {
	files, err := filepath.Glob("testdata/decode/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, ".rgb") {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

// fuzzDecode checks that a stage makes of any bytes an error or an image as large as it says.
func fuzzDecode(f *testing.F, spec StageSpec) {
	addPictures(f)
	s, c := newDecoder(f, spec), new(Call)
	f.Fuzz(func(t *testing.T, data []byte) {
		var out Element
		if s.Process(c, &Element{U8: data}, &out) == nil && (len(out.U8) == 0 || len(out.U8) != out.Type.Size()) {
			t.Errorf("%v with %d bytes", out.Type, len(out.U8))
		}
	})
}

// benchmarkDecode decodes one file again and again.
func benchmarkDecode(b *testing.B, spec StageSpec, path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	s, c, in, out := newDecoder(b, spec), new(Call), Element{U8: data}, Element{}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Process(c, &in, &out); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzOrientation checks that any bytes have an orientation, whole or behind the start of a file of each format that has one.
func FuzzOrientation(f *testing.F) {
	addPictures(f)
	starts := []string{"", "\xff\xd8\xff\xe1\x00\x40Exif\x00\x00", "\x89PNG\r\n\x1a\n\x00\x00\x00\x20eXIf", "RIFF\x00\x00\x00\x00WEBPEXIF\x20\x00\x00\x00",
		"II*\x00\x08\x00\x00\x00", "MM\x00*\x00\x00\x00\x08"}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, start := range starts {
			if o := exifOrientation(append([]byte(start), data...)); o < 1 || o > 8 {
				t.Errorf("orientation %d after %q", o, start)
			}
		}
	})
}
