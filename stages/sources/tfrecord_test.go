package sources

import (
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/storage"
)

// framed returns a record.
func framed(data string) string {
	table := crc32.MakeTable(crc32.Castagnoli)
	length := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	header := binary.LittleEndian.AppendUint32(length, checksum(table, length))
	return string(binary.LittleEndian.AppendUint32(append(header, data...), checksum(table, []byte(data))))
}

// message returns a field that holds bytes.
func message(number byte, data string) string {
	return string(binary.AppendUvarint([]byte{number<<3 | wireBytes}, uint64(len(data)))) + data
}

// oneFeature returns an Example with one feature, of the serialised message given.
func oneFeature(name, value string) string {
	return message(1, message(1, message(1, name)+message(2, value)))
}

// golden reads a file of testdata/formats.
func golden(tb testing.TB, name string) string {
	tb.Helper()
	data, err := os.ReadFile(string(formats(name)))
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

func newTFRecord(feature string, files ...stages.Path) *TFRecord {
	s := tfRecordOperator().New().(*TFRecord)
	s.Files, s.Feature = files, feature
	return s
}

func TestTFRecord(t *testing.T) {
	for _, tt := range []struct {
		feature string
		set     func(*TFRecord)
		output  string
		want    []item
	}{
		{"image/encoded", func(s *TFRecord) { s.Label, s.Classes = "image/class/label", 601 }, "encoded bytes", []item{
			{Label: 0, Type: "encoded bytes", U8: "image 0"},
			{Label: 300, Type: "encoded bytes", U8: "image 1"},
			{Label: 600, Type: "encoded bytes", U8: "image 2"},
		}},
		{"image/class/text", func(s *TFRecord) { s.Sample.Output, s.Shape = "opaque", []int{3} }, "opaque bytes [3]", []item{
			{Type: "opaque bytes [3]", U8: "né"}, {Type: "opaque bytes [3]", U8: "né"}, {Type: "opaque bytes [3]", U8: "né"},
		}},
		{"embedding", func(s *TFRecord) {}, "float32 ?×1×1", []item{
			{Type: "float32 3×1×1", F32: []float32{0, .5, -1e30}}, {Type: "float32 3×1×1", F32: []float32{1, .5, -1e30}}, {Type: "float32 3×1×1", F32: []float32{2, .5, -1e30}},
		}},
		{"embedding", func(s *TFRecord) { s.Shape = []int{1, 3} }, "float32 1×1×3", []item{
			{Type: "float32 1×1×3", F32: []float32{0, .5, -1e30}}, {Type: "float32 1×1×3", F32: []float32{1, .5, -1e30}}, {Type: "float32 1×1×3", F32: []float32{2, .5, -1e30}},
		}},
		{"tokens", func(s *TFRecord) {}, "int32 tokens [?]", []item{
			{Type: "int32 tokens [1]", I32: []int32{-1}}, {Type: "int32 tokens [2]", I32: []int32{-1, 1}}, {Type: "int32 tokens [3]", I32: []int32{-1, 2, 1<<31 - 1}},
		}},
		{"wide", func(s *TFRecord) { s.Sample.Output = "tensor" }, "float32 ?×1×1", []item{
			{Type: "float32 1×1×1", F32: []float32{1 << 40}}, {Type: "float32 1×1×1", F32: []float32{1 << 40}}, {Type: "float32 1×1×1", F32: []float32{1 << 40}},
		}},
	} {
		for file, second := range map[string]int{"packed.tfrecord": 215, "unpacked.tfrecord": 213, "gzip.tfrecord": 215, "zlib.tfrecord": 215} {
			t.Run(tt.feature+" "+file, func(t *testing.T) {
				path := formats(file)
				spec := newTFRecord(tt.feature, path, written(t, "empty", ""))
				tt.set(spec)
				if got := spec.Validate(); got != nil {
					t.Errorf("Validate() = %v", got)
				}
				if got := spec.Output().String(); got != tt.output {
					t.Errorf("Output() = %s, want %s", got, tt.output)
				}
				src := opened(t, spec)
				got := items(t, src)
				if want := fmt.Sprintf("%s, record 1 at byte %d", path, second); got[1].Name != want {
					t.Errorf("Name(1) = %q, want %q", got[1].Name, want)
				}
				for i := range got {
					got[i].Name = ""
				}
				if diff := cmp.Diff(tt.want, got); diff != "" || src.Classes() != spec.Classes {
					t.Errorf("%d classes: %s", src.Classes(), diff)
				}
			})
		}
	}
}

// TestTFRecordDamage reads files of three records that are damaged somewhere.
func TestTFRecordDamage(t *testing.T) {
	whole := golden(t, "packed.tfrecord")
	second := int(binary.LittleEndian.Uint64([]byte(whole))) + 16
	third := second + int(binary.LittleEndian.Uint64([]byte(whole[second:]))) + 16
	largest := strings.Repeat("\xff", 8)
	flip := func(at int) string {
		b := []byte(whole)
		b[at] ^= 4
		return string(b)
	}
	for _, tt := range []struct {
		name, file string
		want       []string // of each item
	}{
		{"whole", whole, []string{"", "", ""}},
		{"data", flip(second + 40), []string{"", "the checksum of its 201 bytes of data is XXXXXXXX, where XXXXXXXX is stored: the record is damaged", ""}},
		{"first data", flip(40), []string{"the checksum of its 199 bytes of data is XXXXXXXX, where XXXXXXXX is stored: the record is damaged", "", ""}},
		{"data's checksum", flip(len(whole) - 1), []string{"", "", "the checksum of its 206 bytes of data is XXXXXXXX, where XXXXXXXX is stored: the record is damaged"}},
		{"length", flip(second), []string{"", fmt.Sprintf("the checksum of its length is XXXXXXXX, where XXXXXXXX is stored: the file is damaged there, and the %d bytes from it on can't be read", len(whole)-second)}},
		{"length's checksum", flip(third + 9), []string{"", "", fmt.Sprintf("the checksum of its length is XXXXXXXX, where XXXXXXXX is stored: the file is damaged there, and the %d bytes from it on can't be read", len(whole)-third)}},
		{"largest length", whole[:third] + string(binary.LittleEndian.AppendUint32([]byte(largest), checksum(crc32.MakeTable(crc32.Castagnoli), []byte(largest)))), []string{"", "", "the file ends 12 bytes after the record's start, which is of 9223372036854775823: it is truncated"}},
		{"truncated header", whole[:third+3], []string{"", "", "the file ends within a record's header, of which there are 3 of 12 bytes: it is truncated"}},
		{"truncated data", whole[:third+30], []string{"", "", "the file ends 30 bytes after the record's start, which is of 222: it is truncated"}},
		{"truncated checksum", whole[:len(whole)-1], []string{"", "", "the file ends 221 bytes after the record's start, which is of 222: it is truncated"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := newTFRecord("image/encoded", written(t, "damaged", tt.file))
			if got := spec.Validate(); got != nil {
				t.Errorf("Validate() = %v", got)
			}
			src := opened(t, spec)
			var got []string
			for i := range src.Len() {
				message := readError(t, src, i)
				for _, word := range strings.FieldsFunc(message, func(r rune) bool { return r == ' ' || r == ',' || r == ':' }) {
					if len(word) == 8 && strings.Trim(word, "0123456789abcdef") == "" {
						message = strings.Replace(message, word, "XXXXXXXX", 1)
					}
				}
				got = append(got, message)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	all := written(t, "all", flip(40)[:second])
	if _, err := newTFRecord("image/encoded", all).Open(t.Context(), 1); text(err) != "no record can be read: all that were tried are damaged" {
		t.Errorf("Open: %v", err)
	}
}

// TestTFRecordPacked reads compressed files that are damaged, and others that only begin as such do.
func TestTFRecordPacked(t *testing.T) {
	gz, zlib := golden(t, "gzip.tfrecord"), golden(t, "zlib.tfrecord")
	for _, tt := range []struct{ name, file, want string }{
		{"two parts", gz + gz, ""},
		{"cut", gz[:len(gz)-20], "it is compressed by gzip, and can't be unpacked: unexpected EOF"},
		{"checksum", gz[:len(gz)-8] + "1234" + gz[len(gz)-4:], "it is compressed by gzip, and can't be unpacked: gzip: invalid checksum"},
		{"body", gz[:100] + "\xff\xff\xff\xff" + gz[104:], "it is compressed by gzip, and can't be unpacked: flate: corrupt input before offset 105"},
		{"header", gz[:2] + "\x09" + gz[3:], "it is compressed by gzip, and can't be unpacked: gzip: invalid header"},
		{"zlib's checksum", zlib[:len(zlib)-1] + "x", "it is compressed by zlib, and can't be unpacked: zlib: invalid checksum"},
		{"zlib, cut", zlib[:len(zlib)-20], "it is compressed by zlib, and can't be unpacked: unexpected EOF"},
		{"a length like gzip's magic", framed(oneFeature("tokens", message(3, message(1, strings.Repeat("\x01", 0x8b1f-28))))), ""},
	} {
		spec := newTFRecord("tokens", written(t, "records", tt.file))
		var got string
		if problems := spec.Validate(); problems != nil {
			got = problems[0].Detail
		}
		if _, want, _ := strings.Cut(got, "can't be used: "); want != tt.want && want != tt.want+"." {
			t.Errorf("%s: Validate() = %s, want %s", tt.name, got, tt.want)
		}
		src, err := spec.Open(t.Context(), 1)
		if err == nil {
			_, err = src.Read(&stages.Call{Context: t.Context()}, src.Len()-1, new(stages.Element))
			if e := src.Close(); e != nil {
				t.Error(e)
			}
		}
		if !strings.HasSuffix(text(err), tt.want) || err != nil && tt.want == "" {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
	if first := framed(oneFeature("tokens", message(3, message(1, strings.Repeat("\x01", 0x8b1f-28)))))[:2]; first != "\x1f\x8b" {
		t.Errorf("the length is %x", first)
	}
}

func TestTFRecordProblems(t *testing.T) {
	packed := formats("packed.tfrecord")
	names := "There are: embedding, image/class/label, image/class/text, image/encoded, names, nothing, tokens, wide."
	for _, tt := range []struct {
		name    string
		spec    *TFRecord
		set     func(*TFRecord)
		problem stages.Problem
	}{
		{"feature", newTFRecord("image/encode", packed), nil, stages.Problem{Attribute: "feature", Summary: "No such feature", Detail: `There is no feature "image/encode". Did you mean "image/encoded"? ` + names}},
		{"label", newTFRecord("tokens", packed), func(s *TFRecord) { s.Label, s.Classes = "class", 2 }, stages.Problem{Attribute: "label", Summary: "No such feature", Detail: `There is no feature "class". ` + names}},
		{"label of bytes", newTFRecord("tokens", packed), func(s *TFRecord) { s.Label, s.Classes = "image/class/text", 2 }, stages.Problem{Attribute: "label", Summary: "No label", Detail: `The feature "image/class/text" has bytes, where labels are whole numbers. Number the classes when the files are written.`}},
		{"no classes", newTFRecord("tokens", packed), func(s *TFRecord) { s.Label = "tokens" }, stages.Problem{Attribute: "label", Summary: "Number of classes missing", Detail: "Say with classes how many there are: to find out, every record would have to be read."}},
		{"no label", newTFRecord("tokens", packed), func(s *TFRecord) { s.Classes = 2 }, stages.Problem{Attribute: "classes", Summary: "Classes without labels", Detail: "Say with label which feature has the items' labels, or leave classes out."}},
		{"no values", newTFRecord("nothing", packed), nil, stages.Problem{Attribute: "files", Summary: "Unusable file", Detail: `The file "testdata/formats/packed.tfrecord" can't be used: the record is no tf.train.Example: feature "nothing": it has no values.`}},
		{"output", newTFRecord("tokens", packed), func(s *TFRecord) { s.Sample.Output = "encoded" }, stages.Problem{Attribute: "output", Summary: "Output doesn't fit", Detail: "The values are whole numbers, which can't be encoded bytes."}},
		{"shape", newTFRecord("tokens", packed), func(s *TFRecord) { s.Shape = []int{2, 2} }, stages.Problem{Attribute: "shape", Summary: "Shape doesn't fit", Detail: `The shape for output = "tokens" is one number, of tokens.`}},
		{"image's shape", newTFRecord("image/encoded", packed), func(s *TFRecord) { s.Shape = []int{2, 2} }, stages.Problem{Attribute: "shape", Summary: "Shape doesn't fit", Detail: `The shape for output = "image" is [height, width, 3].`}},
		{"huge", newTFRecord("embedding", packed), func(s *TFRecord) { s.Shape = []int{1 << 31, 1 << 31, 1 << 31} }, stages.Problem{Attribute: "shape", Summary: "Shape too large", Detail: "An item has at most 536870912 values."}},
		{"zstd", newTFRecord("tokens", written(t, "x.zst", "\x28\xb5\x2f\xfd"+strings.Repeat("\x00", 20))), nil, stages.Problem{Attribute: "files", Summary: "Unusable file", Detail: `can't be used: it is compressed by zstd; unpack it: zstd --decompress.`}},
		{"other", newTFRecord("tokens", formats("vectors.npy")), nil, stages.Problem{Attribute: "files", Summary: "Unusable file", Detail: `The file "testdata/formats/vectors.npy" can't be used: it is no TFRecord file: the checksum of its length is 7b8fb3d6, where 277b0076 is stored: the file is damaged there.`}},
		{"no file", newTFRecord("tokens", formats("none")), nil, stages.Problem{Attribute: "files", Summary: "File not found", Detail: `There is no file "testdata/formats/none".`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.set != nil {
				tt.set(tt.spec)
			}
			got := tt.spec.Validate()
			if len(got) == 1 {
				if i := strings.Index(got[0].Detail, "can't be used: it is compressed"); i >= 0 {
					got[0].Detail = got[0].Detail[i:]
				}
			}
			if diff := cmp.Diff([]stages.Problem{tt.problem}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestExample reads features that are put together by hand.
func TestExample(t *testing.T) {
	const group, varint = "\x0b", "\x08"
	ints := func(packed string) string { return message(3, message(1, packed)) }
	for _, tt := range []struct {
		name, record string
		want         string
	}{
		{"bytes", oneFeature("f", message(1, message(1, "a"))), "bytes [97]"},
		{"an empty value", oneFeature("f", message(1, message(1, ""))), "bytes []"},
		{"two values", oneFeature("f", message(1, message(1, "a")+message(1, "b"))), "it has 2 values, where an item is one"},
		{"floats", oneFeature("f", message(2, message(1, "\x00\x00\x80\x3f"))), "floating-point numbers [1]"},
		{"half a float", oneFeature("f", message(2, message(1, "\x00\x00\x80"))), "3 bytes are no whole number of floats"},
		{"integers in two ways", oneFeature("f", message(3, message(1, "\x05\x06")+varint+"\x07")), "whole numbers [5 6 7]"},
		{"an integer cut off", oneFeature("f", ints("\x80")), "a number doesn't end where it should"},
		{"an integer too long", oneFeature("f", ints(strings.Repeat("\xff", 10)+"\x01")), "a number doesn't end where it should"},
		{"an integer too large", oneFeature("f", ints("\x80\x80\x80\x80\x10")), "value 0 is 4294967296, which doesn't fit in an int32"},
		{"an integer as a float", oneFeature("f", message(3, "\x0d1234")), "a value has the wire type 5, which whole numbers don't have"},
		{"no list", oneFeature("f", ""), `the record is no tf.train.Example: feature "f": it has no values`},
		{"an empty list", oneFeature("f", message(3, "")), "whole numbers []"},
		{"two lists", oneFeature("f", ints("\x05")+ints("\x06")), `the record is no tf.train.Example: feature "f": it has more than one list of values`},
		{"the last of two", oneFeature("f", ints("\x05")) + oneFeature("f", ints("\x06")), "whole numbers [6]"},
		{"fields unknown", "\x10\x05\x1d1234\x2112345678" + message(4, "x") + oneFeature("f", ints("\x05")), "whole numbers [5]"},
		{"key behind value", message(1, message(1, message(2, ints("\x05"))+"")) + message(1, message(1, message(2, ints("\x06"))+message(1, "f"))), "whole numbers [6]"},
		{"a group", oneFeature("f", ints("\x05")) + group, "the record is no tf.train.Example: a field has the wire type 3, which no Example has"},
		{"number 0", "\x02\x00", "the record is no tf.train.Example: a field has the number 0"},
		{"cut off", oneFeature("f", ints("\x05"))[:5], "the record is no tf.train.Example: a field of 12 bytes has 3"},
		{"text", "hello", "the record is no tf.train.Example: a field has the wire type 4, which no Example has"},
		{"empty", "", "no feature"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, err := example(tt.record).find("f", "")
			got := text(err)
			if err == nil && !found[0].there {
				got = "no feature"
			} else if err == nil {
				out := new(stages.Element)
				typ, err := (&Sample{Output: "auto"}).typeOf(found[0].kind)
				if err == nil {
					err = found[0].read(typ, out)
				}
				values := map[valueKind]any{byteStrings: out.U8, floats: out.F32, integers: out.I32}
				if got = fmt.Sprint(found[0].kind, " ", values[found[0].kind]); err != nil {
					got = err.Error()
				}
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestTFRecordErrors(t *testing.T) {
	number := func(v byte) string { return oneFeature("l", message(3, message(1, string(v)))) }
	bytes := oneFeature("f", message(1, message(1, "x")))
	file := framed(bytes + number(1))
	for _, record := range []string{bytes, number(1), bytes + number(2), bytes + oneFeature("l", message(3, "")), bytes + oneFeature("l", message(1, "")), oneFeature("f", message(3, message(1, "\x01"))) + number(1)} {
		file += framed(record)
	}
	spec := newTFRecord("f", written(t, "records", file))
	spec.Label, spec.Classes = "l", 2
	src := opened(t, spec)
	want := []string{
		"",
		`There is no feature "l". There are: f.`,
		`There is no feature "f". There are: l.`,
		`feature "l": the label is 2, where classes = 2 means 0 to 1`,
		`feature "l": it has 0 values, where a label is one`,
		`feature "l": it has bytes, where labels are whole numbers; number the classes when the files are written`,
		`feature "f" has whole numbers, where another record has bytes`,
	}
	for i, w := range want {
		if got := readError(t, src, i); got != w {
			t.Errorf("record %d: %s\nwant      %s", i, got, w)
		}
	}
	spec = newTFRecord("embedding", formats("packed.tfrecord"))
	spec.Shape = []int{4}
	if got, want := readError(t, opened(t, spec), 0), `feature "embedding": it has 3 values, where an item of the type float32 4×1×1 has 4; mend the shape, or leave it out`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestStreamHeaders finds the same records in a file that is read in one go.
func TestStreamHeaders(t *testing.T) {
	file := golden(t, "packed.tfrecord")
	for _, n := range []int{len(file), len(file) - 1, 300, 5, 0} {
		path := written(t, "records", file[:n])
		f, err := storage.Open(t.Context(), string(path))
		if err != nil {
			t.Fatal(err)
		}
		want, err1 := indexRecords(int64(n), 1000, fileHeaders(t.Context(), f))
		got, err2 := indexRecords(int64(n), 1000, streamHeaders(strings.NewReader(file[:n])))
		if diff := cmp.Diff(want.starts, got.starts); diff != "" || text(want.broken) != text(got.broken) || err1 != nil || err2 != nil {
			t.Errorf("%d bytes: %v, %v; %v, %v; %s", n, err1, err2, want.broken, got.broken, diff)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func FuzzTFRecord(f *testing.F) {
	whole := golden(f, "packed.tfrecord")
	f.Add([]byte(whole))
	f.Add([]byte(whole[:300]))
	f.Add([]byte(golden(f, "gzip.tfrecord")))
	f.Add([]byte(golden(f, "zlib.tfrecord")))
	f.Add([]byte(framed(oneFeature("embedding", message(2, message(1, "1234"))))))
	path := filepath.Join(f.TempDir(), "records")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, feature := range []string{"image/encoded", "embedding", "tokens"} {
			spec := newTFRecord(feature, stages.Path(path))
			spec.Validate()
			src, err := spec.Open(t.Context(), 1)
			if err != nil {
				continue
			}
			for i := range src.Len() {
				src.Read(&stages.Call{Context: t.Context()}, i, new(stages.Element))
			}
			src.Close()
		}
	})
}

func FuzzExample(f *testing.F) {
	f.Add([]byte(oneFeature("f", message(1, message(1, "a")))))
	f.Add([]byte(oneFeature("f", message(2, message(1, "1234")))))
	f.Add([]byte(oneFeature("f", message(3, message(1, "\x01\x80\x01")))))
	f.Fuzz(func(t *testing.T, data []byte) {
		e := example(data)
		e.names()
		found, err := e.find("f", "l")
		if err != nil || !found[0].there {
			return
		}
		typ, err := (&Sample{Output: "auto"}).typeOf(found[0].kind)
		if err != nil {
			t.Fatal(err)
		}
		out := new(stages.Element)
		if err := found[0].read(typ, out); err == nil && out.Size() > len(data)*4 {
			t.Errorf("%d bytes of %d", out.Size(), len(data))
		}
		found[0].label(2)
	})
}

func BenchmarkTFRecord(b *testing.B) {
	record := framed(oneFeature("f", message(1, message(1, strings.Repeat("x", 100<<10)))) + oneFeature("l", message(3, message(1, "\x01"))))
	path := written(b, "records", strings.Repeat(record, 64))
	spec := newTFRecord("f", path)
	spec.Label, spec.Classes = "l", 2
	b.Run("read", func(b *testing.B) { benchmarkSource(b, spec) })
	var packed strings.Builder
	w := gzip.NewWriter(&packed)
	if _, err := io.WriteString(w, strings.Repeat(record, 64)); err != nil {
		b.Fatal(err)
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	zipped := newTFRecord("f", written(b, "records", packed.String()))
	b.Run("read of gzip", func(b *testing.B) { benchmarkSource(b, zipped) })
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			src, err := spec.Open(b.Context(), 1)
			if err != nil {
				b.Fatal(err)
			}
			src.Close()
		}
	})
}
