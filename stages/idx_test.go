package stages

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// idxFile returns an idx file of unsigned bytes.
func idxFile(values string, dims ...uint32) []byte {
	b := []byte{0, 0, 8, byte(len(dims))}
	for _, d := range dims {
		b = binary.BigEndian.AppendUint32(b, d)
	}
	return append(b, values...)
}

// zipped compresses data.
func zipped(tb testing.TB, data []byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		tb.Fatal(err)
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// idxSpec writes two files and returns the spec to load them.
func idxSpec(tb testing.TB, images, labels []byte) *IDX {
	tb.Helper()
	dir := tb.TempDir()
	s := &IDX{Images: Path(filepath.Join(dir, "images")), Labels: Path(filepath.Join(dir, "labels"))}
	for path, data := range map[Path][]byte{s.Images: images, s.Labels: labels} {
		if err := os.WriteFile(string(path), data, 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

func TestIDX(t *testing.T) {
	grey := idxFile("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c", 2, 2, 3)
	colour := idxFile("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c", 2, 1, 2, 3)
	labels := idxFile("\x07\x01", 2)
	greyWant := [][]byte{
		{1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6},
		{7, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10, 10, 11, 11, 11, 12, 12, 12},
	}
	for _, tt := range []struct {
		name           string
		images, labels []byte
		typ            Type
		want           [][]byte
	}{
		{"grey", grey, labels, ImageType(2, 3), greyWant},
		{"grey, compressed", zipped(t, grey), zipped(t, labels), ImageType(2, 3), greyWant},
		{"colour", colour, zipped(t, labels), ImageType(1, 2), [][]byte{{1, 2, 3, 4, 5, 6}, {7, 8, 9, 10, 11, 12}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := idxSpec(t, tt.images, tt.labels)
			if got := spec.Validate(); got != nil {
				t.Errorf("Validate() = %v, want nothing", got)
			}
			if got := spec.Output(); got != tt.typ {
				t.Errorf("Output() = %v, want %v", got, tt.typ)
			}
			src := openSource(t, spec, 1)
			if src.Len() != 2 || src.Classes() != 8 {
				t.Errorf("%d items in %d classes, want 2 in 8", src.Len(), src.Classes())
			}
			out := new(Element)
			for i, want := range tt.want {
				label, err := src.Read(new(Call), i, out)
				if err != nil {
					t.Fatal(err)
				}
				if label != []int32{7, 1}[i] || out.Type != tt.typ || !bytes.Equal(out.U8, want) {
					t.Errorf("item %d: label %d, %v, %v; want %v", i, label, out.Type, out.U8, want)
				}
			}
			if got, want := src.Name(1), string(spec.Images)+", image 1"; got != want {
				t.Errorf("Name(1) = %q, want %q", got, want)
			}
		})
	}
}

func TestIDXErrors(t *testing.T) {
	images, labels := idxFile("\x01\x02\x03\x04", 2, 1, 2), idxFile("\x07\x01", 2)
	packed := zipped(t, images)
	damaged := bytes.Clone(packed)
	damaged[len(damaged)-5] ^= 1 // in gzip's checksum
	for _, tt := range []struct {
		name           string
		images, labels []byte
		want           string // DIR stands for the folder
		valid          bool   // by the headers alone
	}{
		{"empty file", nil, labels, "reading images DIR/images: it is truncated", false},
		{"no idx", []byte("\x89PNG\r\n\x1a\n"), labels, "reading images DIR/images: it starts with 89 50 4e 47, which is not how an idx file starts", false},
		{"floats", []byte("\x00\x00\x0d\x01\x00\x00\x00\x01"), labels, "reading images DIR/images: its values have the type 0x0d instead of 0x08, unsigned bytes", false},
		{"truncated header", images[:9], labels, "reading images DIR/images: it is truncated", false},
		{"truncated", images[:len(images)-1], labels, "reading images DIR/images: it is truncated", true},
		{"truncated, compressed", packed[:len(packed)-12], labels, "reading images DIR/images: it is truncated", true},
		{"truncated gzip header", packed[:5], labels, "reading images DIR/images: it is truncated", false},
		{"damaged", damaged, labels, "reading images DIR/images: gzip: invalid checksum", true},
		{"too long", append(bytes.Clone(images), 0), labels, "reading images DIR/images: more data than the 4 bytes that its header says", true},
		{"swapped", labels, images, "reading images DIR/images: it has 1 dimensions, where images have 3 (N×H×W) or 4 (N×H×W×3)", false},
		{"images twice", images, images, "reading labels DIR/labels: it has 3 dimensions, where labels have 1", false},
		{"4 channels", idxFile("1234", 1, 1, 1, 4), idxFile("1", 1), "reading images DIR/images: its images have 4 channels instead of 3", false},
		{"no items", idxFile("", 0, 1, 2), labels, "reading images DIR/images: it is empty: one of its dimensions is 0", false},
		{"huge", idxFile("", 1<<31, 1<<31, 1<<31), labels, "reading images DIR/images: its header says that it holds more than a TiB", false},
		{"large and not there", idxFile("12", 1<<20, 1<<10, 1<<10), labels, "reading images DIR/images: it is truncated", false},
		{"other number", images, idxFile("\x07\x01\x02", 3), "2 images in DIR/images, but 3 labels in DIR/labels", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := idxSpec(t, tt.images, tt.labels)
			want := strings.ReplaceAll(tt.want, "DIR", filepath.Dir(string(spec.Images)))
			if _, err := spec.Open(t.Context(), 1); err == nil || err.Error() != want {
				t.Errorf("Open: error %v\nwant %s", err, want)
			}
			if got := spec.Validate(); (len(got) == 0) != tt.valid {
				t.Errorf("Validate() = %v", got)
			}
			spec.Output()
		})
	}
}

func TestIDXProblems(t *testing.T) {
	spec := idxSpec(t, idxFile("\x01\x02", 2, 1, 1), idxFile("\x07\x01\x02", 3))
	want := []Problem{{Attribute: "labels", Summary: "Images and labels don't match", Detail: "There are 2 images, but 3 labels. Give the two files that belong together."}}
	if diff := cmp.Diff(want, spec.Validate()); diff != "" {
		t.Error(diff)
	}
	dir := t.TempDir()
	spec = &IDX{Images: Path(filepath.Join(dir, "none")), Labels: Path(dir)}
	want = []Problem{
		{Attribute: "images", Summary: "Not a readable idx file", Detail: `The file "` + dir + `/none" can't be used: no such file or directory.`},
		{Attribute: "labels", Summary: "Not a readable idx file", Detail: `The file "` + dir + `" can't be used: it is no regular file.`},
	}
	if diff := cmp.Diff(want, spec.Validate()); diff != "" {
		t.Error(diff)
	}
	if got := spec.Output(); got != (Type{}) {
		t.Errorf("Output() = %v, want an unknown type", got)
	}
}

func FuzzIDX(f *testing.F) {
	images, labels := idxFile("\x01\x02\x03\x04", 2, 1, 2), idxFile("\x07\x01", 2)
	for _, seed := range [][]byte{images, labels, zipped(f, images), idxFile("123", 1, 1, 1, 3), idxFile("", 1<<30, 1<<5, 1)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, check := range []func(idxHeader) error{idxHeader.images, idxHeader.labels} {
			r, err := plain(bytes.NewReader(data))
			if err != nil {
				continue
			}
			h, values, err := parseIDX(r, check)
			if err != nil {
				continue
			}
			size := 1
			for _, n := range h.dims {
				size *= n
			}
			if size != len(values) || size == 0 {
				t.Errorf("%d bytes for %v", len(values), h.dims)
			}
		}
	})
}

func BenchmarkIDX(b *testing.B) {
	const n = 1000
	src := openSource(b, idxSpec(b, idxFile(strings.Repeat("x", n*28*28), n, 28, 28), idxFile(strings.Repeat("\x01", n), n)), 1)
	c, out := new(Call), new(Element)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := src.Read(c, i%n, out); err != nil {
			b.Fatal(err)
		}
	}
}
