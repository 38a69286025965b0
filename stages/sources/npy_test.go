package sources

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/stages"
)

// npyFile returns a file of version 1 with a header that says descr, order and shape.
func npyFile(descr, order, shape, values string) string {
	return npyText(fmt.Sprintf("{'descr': %s, 'fortran_order': %s, 'shape': %s, }", descr, order, shape), values)
}

func npyText(header, values string) string {
	return npyMagic + "\x01\x00" + string(binary.LittleEndian.AppendUint16(nil, uint16(len(header)))) + header + values
}

func TestNPY(t *testing.T) {
	ints := []item{{Type: "int32 tokens [2]", I32: []int32{0, 1}}, {Type: "int32 tokens [2]", I32: []int32{2, 3}}, {Type: "int32 tokens [2]", I32: []int32{4, 5}}}
	for _, tt := range []struct {
		file string
		want []item
	}{
		{"vectors.npy", []item{
			{Type: "float32 4×1×1", F32: []float32{0, 1, 2, 3}},
			{Type: "float32 4×1×1", F32: []float32{4, 5, 6, 7}},
			{Type: "float32 4×1×1", F32: []float32{8, 9, 10, 11}},
		}},
		{"planes.npy", []item{
			{Type: "float32 1×2×3", F32: []float32{0, 1, 2, 3, 4, 5}},
			{Type: "float32 1×2×3", F32: []float32{6, 7, 8, 9, 10, 11}},
		}},
		{"tensors.npy", []item{
			{Type: "float32 3×2×2", F32: []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
			{Type: "float32 3×2×2", F32: []float32{12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}},
		}},
		{"images.npy", []item{
			{Type: "uint8 image 2×2×3", U8: "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b"},
			{Type: "uint8 image 2×2×3", U8: "\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17"},
		}},
		{"grey.npy", []item{
			{Type: "uint8 image 2×2×3", U8: "\x00\x00\x00\x01\x01\x01\x02\x02\x02\x03\x03\x03"},
			{Type: "uint8 image 2×2×3", U8: "\x04\x04\x04\x05\x05\x05\x06\x06\x06\x07\x07\x07"},
		}},
		{"int64.npy", ints},
		{"int32.npy", ints},
		{"uint16.npy", ints},
		{"archive.npz", []item{
			{Type: "float32 2×1×1", F32: []float32{0, 1}},
			{Type: "float32 2×1×1", F32: []float32{2, 3}},
		}},
		{"labels.npy", []item{{Type: "int32 tokens [1]", I32: []int32{0}}, {Type: "int32 tokens [1]", I32: []int32{1}}, {Type: "int32 tokens [1]", I32: []int32{2}}}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			path := formats(tt.file)
			spec := &NPY{Files: []stages.Path{path}}
			if got := spec.Validate(); got != nil {
				t.Errorf("Validate() = %v", got)
			}
			if got := spec.Output().String(); got != tt.want[0].Type {
				t.Errorf("Output() = %s, want %s", got, tt.want[0].Type)
			}
			for i := range tt.want {
				tt.want[i].Name = fmt.Sprintf("%s, row %d", path, i)
			}
			if diff := cmp.Diff(tt.want, items(t, opened(t, spec))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNPYNumbers reads numbers of every type and order of bytes, from archives that are packed and that aren't, as numpy's astype
// converts them.
func TestNPYNumbers(t *testing.T) {
	var want map[string][][]int64 // the bits of floats
	if err := json.Unmarshal([]byte(golden(t, "numbers.json")), &want); err != nil {
		t.Fatal(err)
	}
	for array, rows := range want {
		for _, file := range []string{"numbers.npz", "packed.npz"} {
			spec := &NPY{Files: []stages.Path{formats(file)}, Array: array}
			if len(rows) == 3 {
				spec.Labels, spec.LabelArray = []stages.Path{formats("packed.npz")}, "labels"
			}
			if got := spec.Validate(); got != nil {
				t.Fatalf("%s: Validate() = %v", array, got)
			}
			var got [][]int64
			for i, it := range items(t, opened(t, spec)) {
				var row []int64
				for _, v := range it.F32 {
					row = append(row, int64(math.Float32bits(v)))
				}
				for _, v := range it.I32 {
					row = append(row, int64(v))
				}
				got = append(got, row)
				if len(rows) == 3 && int(it.Label) != []int{2, 0, 1}[i] {
					t.Errorf("%s: row %d has the label %d", array, i, it.Label)
				}
			}
			if diff := cmp.Diff(rows, got); diff != "" {
				t.Errorf("%s, %s: %s", file, array, diff)
			}
		}
	}
	if len(want) != 21 {
		t.Errorf("%d arrays", len(want))
	}
}

func TestNPZProblems(t *testing.T) {
	packed := golden(t, "packed.npz")
	stored := golden(t, "archive.npz")
	body := strings.Index(packed, "little_f2.npy") + 60
	files := map[string]string{
		"cut":       packed[:len(packed)-30],
		"empty":     "PK\x05\x06" + strings.Repeat("\x00", 18),
		"body":      packed[:body] + "\xff\xff\xff\xff" + packed[body+4:],
		"checksum":  strings.Replace(packed, packed[14:18], "1234", 2), // the first member's
		"encrypted": strings.Replace(stored, "PK\x01\x02"+stored[strings.Index(stored, "PK\x01\x02")+4:][:4]+"\x00", "PK\x01\x02"+stored[strings.Index(stored, "PK\x01\x02")+4:][:4]+"\x01", 1),
	}
	dir := folder(t, files)
	for _, tt := range []struct {
		file, array string
		want        string
	}{
		{"numbers.npz", "big_f9", `There is no array "big_f9". Did you mean "big_f2"? There are: `},
		{"packed.npz", "", `There are the arrays little_f2, `},
		{"vectors.npy", "a", "Only the arrays of .npz archives have names, and there is a file that is none. Leave array out."},
		{"cut", "labels", "it is no whole .npz archive: zip: not a valid zip file"},
		{"empty", "", "it is a .npz archive without an array"},
		{"encrypted", "", "a.npy is encrypted; write it with numpy.savez"},
		{"body", "little_f2", "unpacking little_f2.npy: flate: corrupt input before offset "},
		{"checksum", "little_f2", "unpacking little_f2.npy: zip: checksum error"},
	} {
		path := formats(tt.file)
		if files[tt.file] != "" {
			path = in(dir, tt.file)[0]
		}
		spec := &NPY{Files: []stages.Path{path}, Array: tt.array}
		if got := spec.Validate(); len(got) != 1 || !strings.Contains(got[0].Detail, tt.want) {
			t.Errorf("%s: %v, want %s", tt.file, got, tt.want)
		}
		src, err := spec.Open(t.Context(), 1)
		if err == nil {
			src.Close()
		}
		if !strings.Contains(text(err), tt.want) {
			t.Errorf("%s: %v, want %s", tt.file, err, tt.want)
		}
	}
	spec := &NPY{Files: []stages.Path{formats("vectors.npy")}, LabelArray: "y"}
	want := []stages.Problem{{Attribute: "label_array", Summary: "Array of labels without files", Detail: "Say with labels which .npz archives have it, or leave label_array out."}}
	if diff := cmp.Diff(want, spec.Validate()); diff != "" {
		t.Error(diff)
	}
}

func TestNPYLabels(t *testing.T) {
	vectors := formats("vectors.npy")
	spec := &NPY{Files: []stages.Path{vectors, vectors}, Labels: []stages.Path{formats("labels.npy"), written(t, "more.npy", npyFile("'|u1'", "False", "(3,)", "\x07\x08\x09"))}}
	if got := spec.Validate(); got != nil {
		t.Errorf("Validate() = %v", got)
	}
	src := opened(t, spec)
	var got []int32
	for _, it := range items(t, src) {
		got = append(got, it.Label)
	}
	var files, versions []string
	for path := range src.(stages.FileLister).Files() {
		files = append(files, path)
	}
	for path := range src.(stages.Versioner).Versions() {
		versions = append(versions, path)
	}
	want := []string{string(vectors), string(vectors), string(spec.Labels[0]), string(spec.Labels[1])}
	if diff := cmp.Diff([][]string{want, want}, [][]string{files, versions}); diff != "" {
		t.Errorf("files and versions: %s", diff)
	}
	if diff := cmp.Diff([]int32{0, 1, 2, 7, 8, 9}, got); diff != "" || src.Classes() != 10 {
		t.Errorf("%d classes, labels %s", src.Classes(), diff)
	}
}

func TestNPYProblems(t *testing.T) {
	header := "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }"
	files := map[string]string{
		"empty":      "",
		"text":       "1,2,3,4,5,6,7,8",
		"version":    npyMagic + "\x04\x00\x10\x00\x00\x00" + header,
		"long":       npyMagic + "\x02\x00\xff\xff\xff\x7f" + header,
		"cut":        npyText(header, strings.Repeat("x", 15)),
		"more":       npyText(header, strings.Repeat("x", 17)),
		"header":     npyText(header, "")[:30],
		"scalar":     npyFile("'<f4'", "False", "()", "1234"),
		"none":       npyFile("'<f4'", "False", "(0, 4)", ""),
		"huge":       npyFile("'<f4'", "False", "(4294967296, 4294967296, 4294967296)", ""),
		"negative":   npyFile("'<f4'", "False", "(-1,)", ""),
		"no shape":   npyFile("'<f4'", "False", "None", ""),
		"no dict":    npyText("[1, 2]", ""),
		"tail":       npyText(header+" 1", ""),
		"no key":     npyText("{1: 2}", ""),
		"no comma":   npyText("{'descr': '<f4' 'shape': (1,)}", ""),
		"open text":  npyText("{'descr: 1}", ""),
		"deep":       npyText(strings.Repeat("[", 1000), ""),
		"channels":   npyFile("'|u1'", "False", "(1, 2, 2, 4)", strings.Repeat("x", 16)),
		"dimensions": npyFile("'<i4'", "False", "(1, 2, 1)", strings.Repeat("x", 8)),
		"five":       npyFile("'<f4'", "False", "(1, 1, 1, 1, 2)", strings.Repeat("x", 8)),
		"float":      npyFile("'<f4'", "False", "(2,)", "12345678"),
		"python2":    npyFile(`"<f4"`, "False", "(1L, 2L)", "12345678"),
	}
	dir := folder(t, files)
	for _, tt := range []struct{ file, want string }{
		{"empty", `it doesn't start as a .npy file does, with "\x93NUMPY" and a header`},
		{"text", `it doesn't start as a .npy file does, with "\x93NUMPY" and a header`},
		{"version", "its format has the version 4, where 1 to 3 are known"},
		{"long", "its header is of 2147483647 bytes, more than any array needs: the file is damaged"},
		{"cut", "its header says that 16 bytes of values follow, and there are 15: it is truncated, or holds more than one array"},
		{"more", "its header says that 16 bytes of values follow, and there are 17: it is truncated, or holds more than one array"},
		{"header", "the file ends at byte 30, within the 59 bytes from 10 that should be there: it is truncated"},
		{"scalar", "it is a single value, without rows"},
		{"none", "it is empty: one of its dimensions is 0"},
		{"huge", "its header says that it holds more than a PiB"},
		{"negative", "its header gives no shape"},
		{"no shape", "its header gives no shape"},
		{"no dict", "its header is malformed: it is no dictionary"},
		{"tail", "its header is malformed: something follows the dictionary"},
		{"no key", "its header is malformed: a dictionary has no key where one should be"},
		{"no comma", `its header is malformed: there is no "}" or comma before "'shape': (1,)}"`},
		{"open text", "its header is malformed: a string doesn't end"},
		{"deep", "its header is malformed: it is nested too deeply"},
		{"channels", "uint8 arrays are images of N×H×W×3 or N×H×W, and this one is of 1×2×2×4"},
		{"dimensions", `arrays of the type "<i4" have at most 2 dimensions, and this one is of 1×2×1; reshape it`},
		{"five", `arrays of the type "<f4" have at most 4 dimensions, and this one is of 1×1×1×1×2; reshape it`},
		{"python2", ""},
		{"complex.npy", `its values have the type "<c8"; convert them before they are saved: a.astype("<f4") for numbers, "|u1" for images, "<i4" for tokens`},
		{"fortran.npy", "it is in Fortran order, so that its rows aren't in one piece; save numpy.ascontiguousarray(a)"},
		{"object.npy", "it holds Python objects, which can't be read without running code; save an array of numbers, of rows of one shape"},
		{"record.npy", "it is a structured array; save each of its fields by itself: numpy.save(path, a[field])"},
	} {
		path := formats(tt.file)
		if files[tt.file] != "" || tt.file == "empty" {
			path = in(dir, tt.file)[0]
		}
		var want []stages.Problem
		if tt.want != "" {
			want = []stages.Problem{{Attribute: "files", Summary: "Unusable file", Detail: fmt.Sprintf("The file %q can't be used: %s.", path, tt.want)}}
		}
		spec := &NPY{Files: []stages.Path{path}}
		if diff := cmp.Diff(want, spec.Validate()); diff != "" {
			t.Errorf("%s: %s", tt.file, diff)
		}
		if known := spec.Output().Kind != stages.Unknown; known != (want == nil) {
			t.Errorf("%s: Output() = %v", tt.file, spec.Output())
		}
	}
	spec := &NPY{Files: []stages.Path{formats("vectors.npy")}, Labels: in(dir, "float")}
	want := []stages.Problem{{Attribute: "labels", Summary: "Unusable file", Detail: `The file "DIR/float" can't be used: labels are whole numbers of one dimension, and these are of the type "<f4" and 2.`}}
	if diff := cmp.Diff(want, problems(spec, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestNPYErrors(t *testing.T) {
	dir := folder(t, map[string]string{
		"wide":     npyFile("'<i8'", "False", "(2,)", "\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00"),
		"two":      npyFile("'<i4'", "False", "(2,)", "\x01\x00\x00\x00\xff\xff\xff\xff"),
		"negative": npyFile("'<i4'", "False", "(3,)", "\x01\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00"),
		"one":      npyFile("'|u1'", "False", "(1,)", "\x01"),
	})
	vectors := formats("vectors.npy")
	for _, tt := range []struct {
		spec NPY
		want string
	}{
		{NPY{Files: []stages.Path{vectors, formats("planes.npy")}}, `reading testdata/formats/planes.npy: its rows are float32 1×2×3 of the type "<f4", and those of the files before it are float32 4×1×1 of "<f4"`},
		{NPY{Files: []stages.Path{formats("int32.npy"), formats("int64.npy")}}, `reading testdata/formats/int64.npy: its rows are int32 tokens [2] of the type "<i8", and those of the files before it are int32 tokens [2] of "<i4"`},
		{NPY{Files: []stages.Path{vectors}, Labels: in(dir, "one")}, "there are 3 rows and 1 labels; give files that belong together"},
		{NPY{Files: []stages.Path{vectors}, Labels: in(dir, "negative")}, "reading DIR/negative: value 1 is -1, where labels count from 0"},
		{NPY{Files: []stages.Path{vectors}, Labels: in(dir, "wide")}, "reading DIR/wide: value 1 is 4294967296, which doesn't fit in an int32"},
		{NPY{Files: in(dir, "none")}, "open DIR/none: no such file or directory"},
	} {
		src, err := tt.spec.Open(t.Context(), 1)
		if err == nil {
			src.Close()
		}
		if got := strings.ReplaceAll(strings.Replace(text(err), "stat ", "open ", 1), dir, "DIR"); got != tt.want {
			t.Errorf("Open: %s\nwant  %s", got, tt.want)
		}
	}
	src := opened(t, &NPY{Files: in(dir, "wide")})
	if got, want := readError(t, src, 1), "value 0 is 4294967296, which doesn't fit in an int32"; got != want {
		t.Errorf("Read: %s, want %s", got, want)
	}
}

// TestNPYExtremes reads numbers of all kinds, bit by bit.
func TestNPYExtremes(t *testing.T) {
	bits := []uint32{0, 1 << 31, 0x7f800000, 0xff800000, 0x7fc00001, 1, 0x3f800000}
	var values []byte
	for _, b := range bits {
		values = binary.LittleEndian.AppendUint32(values, b)
	}
	src := opened(t, &NPY{Files: []stages.Path{written(t, "a.npy", npyFile("'<f4'", "False", "(1, 7)", string(values)))}})
	for i, v := range items(t, src)[0].F32 {
		if math.Float32bits(v) != bits[i] {
			t.Errorf("value %d is %#x, want %#x", i, math.Float32bits(v), bits[i])
		}
	}
}

func FuzzNPY(f *testing.F) {
	for _, name := range []string{"vectors.npy", "planes.npy", "images.npy", "grey.npy", "int64.npy", "fortran.npy", "record.npy", "archive.npz", "packed.npz"} {
		data, err := os.ReadFile(string(formats(name)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	path := filepath.Join(f.TempDir(), "a.npy")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		spec := &NPY{Files: []stages.Path{stages.Path(path)}}
		if strings.HasPrefix(string(data), "PK") {
			spec.Array = "big_f8"
		}
		src, err := spec.Open(t.Context(), 1)
		if problems := spec.Validate(); err == nil && problems != nil || err != nil && problems == nil && spec.Array == "" { // only Open unpacks all
			t.Fatalf("Open: %v, Validate: %v", err, problems)
		}
		if err != nil {
			return
		}
		defer src.Close()
		for i := range src.Len() {
			out := new(stages.Element)
			if _, err := src.Read(&stages.Call{Context: t.Context()}, i, out); err == nil && out.Type != spec.Output() {
				t.Errorf("%v, want %v", out.Type, spec.Output())
			}
		}
	})
}

func BenchmarkNPY(b *testing.B) {
	for _, tt := range []struct{ name, descr, shape string }{
		{"float32", "'<f4'", "(64, 3, 64, 64)"},
		{"int64", "'<i8'", "(64, 6144)"},
	} {
		b.Run(tt.name, func(b *testing.B) {
			benchmarkSource(b, &NPY{Files: []stages.Path{written(b, "a.npy", npyFile(tt.descr, "False", tt.shape, strings.Repeat("\x00", 64*49152)))}})
		})
	}
}
