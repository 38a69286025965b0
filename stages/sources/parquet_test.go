package sources

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/pipectl/pipectl/stages"
)

func newParquet(column string, files ...stages.Path) *Parquet {
	s := parquetOperator().New().(*Parquet)
	s.Files, s.Column = files, column
	return s
}

// parquetWant returns what row i of testdata/formats/make_parquet.mjs's files has in a column.
func parquetWant(column string, i int) item {
	switch column {
	case "image", "image.bytes":
		return item{Type: "encoded bytes", U8: fmt.Sprint("image ", i)}
	case "image.path":
		return item{Type: "opaque bytes [?]", U8: fmt.Sprint(i, ".jpg")}
	case "raw":
		return item{Type: "encoded bytes", U8: fmt.Sprint("raw ", i)}
	case "text":
		return item{Type: "opaque bytes [?]", U8: fmt.Sprint("né ", i)}
	case "score":
		return item{Type: "float32 1×1×1", F32: []float32{float32(i) / 2}}
	case "embedding", "embedding.list.element":
		return item{Type: "float32 3×1×1", F32: []float32{float32(i), .5, -1e30}}
	case "pair":
		return item{Type: "int32 tokens [2]", I32: []int32{int32(i), int32(i) + 1}}
	case "tokens":
		var tokens []int32
		for v := range i % 3 {
			tokens = append(tokens, int32(v))
		}
		if i%3 == 0 {
			return item{Type: "int32 tokens [?]"}
		}
		return item{Type: fmt.Sprintf("int32 tokens [%d]", i%3), I32: tokens}
	case "flag":
		return item{Type: "int32 tokens [1]", I32: []int32{int32(i % 2)}}
	}
	return item{}
}

func TestParquet(t *testing.T) {
	every := []string{"image", "image.bytes", "image.path", "raw", "text", "score", "embedding", "embedding.list.element", "pair", "tokens", "flag"}
	for _, tt := range []struct {
		file    string
		rows    int
		columns []string
		classes int
	}{
		{"duckdb_snappy", 10, every, 4}, // by Hugging Face's metadata
		{"duckdb_zstd", 10, every, 3},
		{"duckdb_gzip", 10, every, 3},
		{"duckdb_groups", 5000, []string{"image", "tokens"}, 3},
		{"arrow_pages", 10, []string{"image", "raw", "text", "score", "embedding", "pair", "tokens", "flag"}, 3},
		{"arrow_fallback", 10, []string{"image", "raw", "text", "score", "embedding", "pair", "tokens", "flag"}, 3}, // from a dictionary to plain pages
		{"arrow_plain", 10, []string{"image", "raw", "text", "score", "embedding", "pair", "tokens", "flag"}, 3},
		{"arrow_v2", 10, []string{"image", "raw", "text", "score", "embedding", "pair", "tokens", "flag"}, 3},
		{"arrow_lz4", 10, []string{"image", "raw", "text", "score", "embedding", "pair", "tokens", "flag"}, 3},
		{"arrow_lz4_v2", 10, []string{"image", "raw", "text", "score", "embedding", "pair", "tokens", "flag"}, 3},
		{"hyparquet", 10, []string{"raw", "text", "score", "flag"}, 3},
	} {
		path := formats(tt.file + ".parquet")
		for n, column := range tt.columns {
			t.Run(tt.file+" "+column, func(t *testing.T) {
				spec := newParquet(column, path)
				spec.LabelColumn, spec.Shuffle = "label", n%2 == 1
				if got := spec.Validate(); got != nil {
					t.Fatalf("Validate() = %v", got)
				}
				src := opened(t, spec)
				var want []item
				for i := range tt.rows {
					it := parquetWant(column, i)
					it.Name, it.Label = fmt.Sprintf("%s, row %d", path, i), int32(i%3)
					want = append(want, it)
				}
				if diff := gocmp.Diff(want, items(t, src)); diff != "" || src.Classes() != tt.classes {
					t.Errorf("%d classes, want %d: %s", src.Classes(), tt.classes, diff)
				}
			})
		}
	}
}

// TestParquetNames numbers classes by their names over several files.
func TestParquetNames(t *testing.T) {
	spec := newParquet("embedding", formats("duckdb_zstd.parquet"), formats("arrow_pages.parquet"))
	spec.LabelColumn, spec.Shape = "name", []int{1, 3}
	if got := spec.Output(); got != stages.TensorType(1, 1, 3) {
		t.Errorf("Output() = %v", got)
	}
	src := opened(t, spec)
	var got []int32
	for _, it := range items(t, src) {
		got = append(got, it.Label)
		if it.Type != "float32 1×1×3" {
			t.Errorf("%s is %s", it.Name, it.Type)
		}
	}
	want := []int32{2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2} // dog, ant, cat, …
	if diff := gocmp.Diff(want, got); diff != "" || src.Classes() != 3 {
		t.Errorf("%d classes: %s", src.Classes(), diff)
	}
}

func TestParquetProblems(t *testing.T) {
	path := formats("duckdb_zstd.parquet")
	names := "There are: image, image.bytes, image.path, raw, text, label, name, score, embedding, pair, tokens, flag, wide, gap, holes, names, point, point.x, point.y, time, …."
	unusable := func(what string) stages.Problem {
		return stages.Problem{Attribute: "files", Summary: "Unusable file", Detail: fmt.Sprintf("The file %q can't be used: %s.", "DIR/file", what)}
	}
	const notParquet = "it doesn't end as a Parquet file does, with PAR1: it is truncated, or of another format"
	data, err := os.ReadFile(string(path))
	if err != nil {
		t.Fatal(err)
	}
	file := func(content string) stages.Path { return written(t, "file", content) }
	for _, tt := range []struct {
		name string
		spec *Parquet
		set  func(*Parquet)
		want stages.Problem
	}{
		{"column", newParquet("imgae", path, path), nil, stages.Problem{Attribute: "column", Summary: "No such column", Detail: `There is no column "imgae". Did you mean "image"? ` + names}},
		{"part", newParquet("image.byte", path), nil, stages.Problem{Attribute: "column", Summary: "No such column", Detail: `There is no column "image.byte". Did you mean "image.bytes"? ` + names}},
		{"label column", newParquet("image", path), func(s *Parquet) { s.LabelColumn = "lable" }, stages.Problem{Attribute: "label_column", Summary: "No such column", Detail: `There is no column "lable". Did you mean "label"? ` + names}},
		{"labels", newParquet("image", path), func(s *Parquet) { s.LabelColumn = "score" }, stages.Problem{Attribute: "label_column", Summary: "No labels", Detail: `The column "score" has lists or floating-point numbers. Labels are whole numbers from 0, or names of classes.`}},
		{"lists of text", newParquet("names", path), nil, stages.Problem{Attribute: "column", Summary: "Column of lists", Detail: `The column "names" has lists of byte strings or text, where an item is one.`}},
		{"parts", newParquet("point", path), nil, stages.Problem{Attribute: "column", Summary: "Column has parts", Detail: `The column "point" has the parts x, y. Name one of them: column = "point.x".`}},
		{"decimals", newParquet("price", path), nil, stages.Problem{Attribute: "column", Summary: "Unknown type of column", Detail: `The column "price" has values of the type DECIMAL(20,2). Convert them to floating-point or whole numbers, text or bytes when the file is written.`}},
		{"output", newParquet("text", path), func(s *Parquet) { s.Sample.Output = "tokens" }, stages.Problem{Attribute: "output", Summary: "Output doesn't fit", Detail: "The values are bytes, which can't be tokens."}},
		{"empty", newParquet("image", file("")), nil, unusable(notParquet)},
		{"Hadoop's LZ4", newParquet("u32", formats("arrow_hadoop.parquet")), nil, stages.Problem{Attribute: "files", Summary: "Unusable file", Detail: `The file "DIR/arrow_hadoop.parquet" can't be used: it is compressed by Hadoop's LZ4, which isn't supported; write it with LZ4_RAW, snappy or zstd.`}},
		{"map", newParquet("pairs", formats("duckdb_types.parquet")), nil, stages.Problem{Attribute: "column", Summary: "Column has parts", Detail: `The column "pairs" has the parts key, value. Name one of them: column = "pairs.key_value.key".`}},
		{"dots", newParquet("with.dots", formats("duckdb_types.parquet")), nil, stages.Problem{Attribute: "column", Summary: "Column has parts", Detail: `The column "with.dots" has the parts x, y. Name one of them: column = "with.dots.of.x".`}},
		{"another file", newParquet("image", file(strings.Repeat("hello", 10))), nil, unusable(notParquet)},
		{"truncated", newParquet("image", file(string(data[:len(data)-100]))), nil, unusable(notParquet)},
		{"huge metadata", newParquet("image", file(string(data[:len(data)-5])+"\x7fPAR1")), nil, unusable(fmt.Sprintf("its metadata have %d bytes, and the file has %d: it is damaged", 0x7f000000+int(binary.LittleEndian.Uint32(data[len(data)-8:])), len(data)))},
		{"damaged metadata", newParquet("image", file("PAR1"+strings.Repeat("\x00", 20)+"\x14\x00\x00\x00PAR1")), nil, unusable("its metadata can't be read: reading parquet file metadata: missing required field: 1:FIELD<I32>")},
		{"encrypted", newParquet("image", file(strings.Repeat("x", 20)+"PARE")), nil, unusable("it is encrypted, which isn't supported")},
		{"no file", newParquet("image", formats("none")), nil, stages.Problem{Attribute: "files", Summary: "File not found", Detail: `There is no file "testdata/formats/none".`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.set != nil {
				tt.set(tt.spec)
			}
			got := problems(tt.spec, filepath.Dir(string(tt.spec.Files[0])))
			if tt.want.Summary == "File not found" {
				tt.want.Detail = strings.ReplaceAll(tt.want.Detail, "testdata/formats", "DIR")
			}
			if diff := gocmp.Diff([]stages.Problem{tt.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParquetErrors(t *testing.T) {
	path := formats("duckdb_zstd.parquet")
	for _, tt := range []struct{ column, label, want string }{
		{"image", "gap", `reading testdata/formats/duckdb_zstd.parquet: column "gap", row group 0: row 3: there is no value: it is null`},
		{"image", "wide", `reading testdata/formats/duckdb_zstd.parquet: column "wide", row group 0: row 0 has the label 1099511627776, where labels count from 0; where items have none, set label_column = ""`},
	} {
		spec := newParquet(tt.column, path)
		spec.LabelColumn = tt.label
		if _, err := spec.Open(t.Context(), 1); text(err) != tt.want {
			t.Errorf("Open: %v\nwant  %s", err, tt.want)
		}
	}
	gap := opened(t, newParquet("gap", path))
	if got, want := readError(t, gap, 3), "row group 0, from row 0: there is no value: it is null"; got != want {
		t.Errorf("a null: %q, want %q", got, want)
	}
	if got := readError(t, gap, 4); got != "" {
		t.Errorf("the row behind a null: %s", got)
	}
	for _, path := range []stages.Path{path, formats("arrow_pages.parquet")} {
		holes := opened(t, newParquet("holes", path))
		for i, want := range []string{"", "a value of the list is null", "there is no value: it is null", ""} {
			if got := strings.TrimPrefix(readError(t, holes, i), "row group 0, from row 0: "); got != want {
				t.Errorf("%s, row %d of lists: %q, want %q", path, i, got, want)
			}
		}
	}
	if got, want := readError(t, opened(t, newParquet("wide", path)), 0), "value 0 is 1099511627776, which doesn't fit in an int32"; got != want {
		t.Errorf("a large number: %q, want %q", got, want)
	}
	for column, want := range map[string]string{
		"u32":                   "value 0 is 3000000000, which doesn't fit in an int32",
		"u64":                   "row group 0, from row 0: a value is 2⁶³ or more",
		"pairs.key_value.value": "",
		"with.dots.of.x":        "",
	} {
		if got := readError(t, opened(t, newParquet(column, formats("duckdb_types.parquet"))), 0); got != want {
			t.Errorf("column %s: %q, want %q", column, got, want)
		}
	}
	short := newParquet("embedding", path)
	short.Shape = []int{4}
	if got, want := readError(t, opened(t, short), 0), "it has 3 values, where an item of the type float32 4×1×1 has 4; mend the shape, or leave it out"; got != want {
		t.Errorf("another shape: %q, want %q", got, want)
	}
}

// TestParquetDamage damages a column's bytes in turn: the rows of the row groups that they aren't in are right, and what is noticed
// is an error.
func TestParquetDamage(t *testing.T) {
	for _, name := range []string{"arrow_pages", "arrow_lz4", "arrow_lz4_v2"} {
		t.Run(name, func(t *testing.T) { damageParquet(t, formats(name+".parquet")) })
	}
}

func damageParquet(t *testing.T, file stages.Path) {
	data, err := os.ReadFile(string(file))
	if err != nil {
		t.Fatal(err)
	}
	whole := opened(t, newParquet("raw", file)).(*parquetSource)
	path := filepath.Join(t.TempDir(), "damaged.parquet")
	faults := 0
	for n, group := range whole.groups[0].chunk.group.(*parquet.FileRowGroup).File().Metadata().RowGroups {
		chunk := group.Columns[whole.groups[n].column.index].MetaData
		for at := int64(0); at < chunk.TotalCompressedSize; at += 5 {
			damaged := bytes.Clone(data)
			damaged[cmp.Or(chunk.DictionaryPageOffset, chunk.DataPageOffset)+at] ^= 0x55
			if err := os.WriteFile(path, damaged, 0o644); err != nil {
				t.Fatal(err)
			}
			spec := newParquet("raw", stages.Path(path))
			spec.Shuffle = at%2 == 1
			src, err := spec.Open(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			for i := range src.Len() {
				out := new(stages.Element)
				_, err := src.Read(&stages.Call{Context: t.Context()}, i, out)
				if err != nil {
					faults++
				}
				outside := i < whole.groups[n].first || i >= whole.groups[n].first+int(whole.groups[n].chunk.group.NumRows())
				if outside && (err != nil || string(out.U8) != fmt.Sprint("raw ", i)) {
					t.Errorf("damage to byte %d of row group %d: row %d is %q, error %v", at, n, i, out.U8, err)
				}
			}
			if err := src.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if faults == 0 {
		t.Error("no damage was found")
	}
}

// TestParquetWorkers reads rows in an order that jumps between row groups, by several workers.
func TestParquetWorkers(t *testing.T) {
	for _, shuffle := range []bool{false, true} {
		spec := newParquet("text", formats("duckdb_groups.parquet"), formats("arrow_pages.parquet"))
		spec.Shuffle = shuffle
		src := opened(t, spec)
		var workers sync.WaitGroup
		for w := range 4 {
			workers.Go(func() {
				out := new(stages.Element)
				for n := range 2000 {
					i := (n*1733 + w*977) % src.Len()
					if _, err := src.Read(&stages.Call{Context: t.Context()}, i, out); err != nil {
						t.Error(err)
						return
					}
					if want := fmt.Sprint("né ", i%5000); string(out.U8) != want {
						t.Errorf("row %d is %q, want %q", i, out.U8, want)
						return
					}
				}
			})
		}
		workers.Wait()
	}
}

// TestParquetBuffer reads rows in an order of row groups and windows, in which each row group is unpacked once.
func TestParquetBuffer(t *testing.T) {
	path := formats("duckdb_groups.parquet")
	spec := newParquet("text", path, path, path, path)
	spec.Buffer = 3000
	want := []stages.Problem{{Attribute: "buffer", Summary: "Buffer without shuffling", Detail: "The buffer is what row groups are shuffled in: set shuffle = true, or leave buffer out."}}
	if diff := gocmp.Diff(want, spec.Validate()); diff != "" {
		t.Error(diff)
	}
	spec.Shuffle = true
	if got := spec.Validate(); got != nil {
		t.Errorf("Validate() = %v", got)
	}
	src := opened(t, spec).(*bufferedRows)
	src.rows.keep = 0
	order := make([]int32, src.Len())
	src.Order(rand.New(rand.NewPCG(1, 2)), order)
	sorted := slices.Sorted(slices.Values(order))
	for i, v := range sorted {
		if int(v) != i {
			t.Fatalf("row %d is missing or comes twice", i)
		}
	}
	if slices.Equal(order, sorted) {
		t.Error("the order is that of the files")
	}
	unpacked := make(map[int]int)
	out := new(stages.Element)
	for _, i := range order {
		n := sort.Search(len(src.groups), func(n int) bool { return src.groups[n].first > int(i) }) - 1
		if g := src.rows.groups[n]; g == nil {
			unpacked[n]++
		}
		if _, err := src.Read(&stages.Call{Context: t.Context()}, int(i), out); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprint("né ", i%5000); string(out.U8) != want {
			t.Fatalf("row %d is %q", i, out.U8)
		}
	}
	if len(unpacked) != 12 || len(src.rows.groups) == 12 {
		t.Errorf("%d of 12 row groups were read, and %d are still in memory", len(unpacked), len(src.rows.groups))
	}
	for n, times := range unpacked {
		if times != 1 {
			t.Errorf("row group %d was unpacked %d times", n, times)
		}
	}
}

// TestRowGroups unpacks more than is kept in memory.
func TestRowGroups(t *testing.T) {
	for _, spooled := range []bool{false, true} {
		r := rowGroups{keep: 8 << 20, least: 2, groups: make(map[int]*rowGroup)}
		if spooled {
			var err error
			if r.spool, err = newSpoolFile(); err != nil {
				t.Fatal(err)
			}
			defer r.spool.Close()
		}
		unpacked := make(map[int]int)
		get := func(n int) {
			t.Helper()
			rows, err := r.get(t.Context(), n, func(p *packedRows) error {
				unpacked[n]++
				for i := range 3 {
					if err := p.begin(); err != nil {
						return err
					}
					if err := p.add([]byte(strings.Repeat(string(rune('a'+n+i)), 1<<20))); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			b := make([]byte, 2)
			for i := range 3 {
				if err := rows.read(i, b); err != nil || string(b) != strings.Repeat(string(rune('a'+n+i)), 2) {
					t.Errorf("group %d, row %d is %q, error %v", n, i, b, err)
				}
			}
		}
		for _, n := range []int{0, 1, 0, 2, 3, 2, 0} {
			get(n)
		}
		want := map[int]int{0: 2, 1: 1, 2: 1, 3: 1} // group 0 was dropped when 3 came
		if spooled {
			want[0] = 1
		}
		if diff := gocmp.Diff(want, unpacked); diff != "" {
			t.Errorf("spooled %v: %s", spooled, diff)
		}
		if !spooled && r.bytes > 9<<20 {
			t.Errorf("%d bytes are kept", r.bytes)
		}
	}
}

func FuzzParquet(f *testing.F) {
	for _, name := range []string{"duckdb_snappy", "duckdb_zstd", "arrow_pages", "arrow_v2", "arrow_lz4_v2", "hyparquet"} {
		data, err := os.ReadFile(string(formats(name + ".parquet")))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	path := filepath.Join(f.TempDir(), "file.parquet")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, column := range []string{"raw", "embedding", "score"} {
			spec := newParquet(column, stages.Path(path))
			src, err := spec.Open(t.Context(), 1)
			if err != nil {
				continue
			}
			if got := spec.Validate(); got != nil {
				t.Errorf("Validate() = %v of a file that can be opened", got)
			}
			for i := range min(src.Len(), 100) {
				src.Read(&stages.Call{Context: t.Context()}, i, new(stages.Element))
			}
			src.Close()
		}
	})
}

func BenchmarkParquet(b *testing.B) {
	for _, tt := range []struct {
		column  string
		shuffle bool
	}{{"text", false}, {"text", true}, {"embedding", false}} {
		b.Run(fmt.Sprintf("%s, shuffle=%v", tt.column, tt.shuffle), func(b *testing.B) {
			spec := newParquet(tt.column, formats("duckdb_groups.parquet"))
			spec.Shuffle = tt.shuffle
			benchmarkSource(b, spec)
		})
	}
	b.Run("unpack", func(b *testing.B) {
		src := opened(b, newParquet("raw", formats("duckdb_groups.parquet"))).(*parquetSource)
		g := src.groups[0]
		for b.Loop() {
			var rows packedRows
			if err := g.chunk.decode(b.Context(), g.column, &rows); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(g.chunk.group.NumRows())*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
}
