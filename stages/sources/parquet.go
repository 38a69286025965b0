package sources

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/parquet-go/parquet-go"

	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/storage"
)

// Parquet holds the attributes of `load "parquet"`.
type Parquet struct {
	Files       []stages.Path `hcl:"files" doc:"The Parquet files, or patterns (\x60\"train-*.parquet\"\x60; \x60{0..9}\x60 counts, on web servers too). Their rows count on from one to the next."`
	Column      string        `hcl:"column" doc:"The column that items are: bytes, text, numbers, lists of numbers, or images as Hugging Face stores them, whose \x60bytes\x60 are taken. A part of a column is written \x60\"column.part\"\x60."`
	LabelColumn string        `hcl:"label_column,optional" doc:"The column with the items' labels: whole numbers from 0, or names of classes, which are numbered 0, 1, … in the order of their names; \x60\"\"\x60 where they have none."`
	Sample
	Buffer  int  `hcl:"buffer,optional" min:"0" doc:"With \x60shuffle\x60: shuffle the row groups, and then so many rows at a time, as they come. 0 shuffles all rows."`
	Shuffle bool `hcl:"shuffle,optional" doc:"Give each epoch's items in a new order, drawn from the experiment's seed."`
}

func parquetOperator() stages.Operator {
	return stages.Operator{
		Block:   stages.Load,
		Type:    "parquet",
		Summary: "Reads the rows of a column of Parquet files.",
		Doc: `An item is what a column has in a row. Text is opaque bytes by default; float64 numbers become float32; an empty list is an item without values, and
a null is an error. The compressions snappy, gzip, zstd, brotli and LZ4_RAW are known, and all encodings of Parquet 2. Where Hugging Face's
metadata name the classes, there are as many.

A row group is unpacked when the first of its rows is needed, and the last few are kept in memory. The rows wait for it, so that files of many row groups, of
some 10 MB each, are read more evenly than files of few large ones, from a server most of all. With ` + "`shuffle = true`" + ` any row may come next, so that
each row group is unpacked once to a temporary file without a name, which goes with the process: it needs as much room in the temporary
folder (` + "`TMPDIR`" + `) as the column takes unpacked. With ` + "`buffer`" + ` the row groups come in a new order, and the rows of that stream are shuffled in windows of so
many: less evenly, but without such a file; memory holds the row groups of two windows. The labels are read when the files are opened.`,
		New: func() any { return &Parquet{Sample: Sample{Output: "auto"}} },
	}
}

// The sizes in bytes of reads of metadata and page headers.
const (
	localRead  = 64 << 10
	remoteRead = 1 << 20 // each takes a while
)

// keptBytes is how much of the last row groups is kept in memory.
const keptBytes = 256 << 20

// parquetFile is what is to be read of a file.
type parquetFile struct {
	*parquet.File
	column, label parquetColumn
	typ           stages.Type
}

// open reads a file's metadata and finds the columns.
func (s *Parquet) open(ctx context.Context, path string, f storage.File) (p parquetFile, err error) {
	buffer := localRead
	if storage.Remote(path) {
		buffer = remoteRead
	}
	if p.File, err = openParquet(ctx, f, buffer); err != nil {
		return p, err
	}
	if p.column, err = findColumn(p.File, "column", s.Column); err != nil {
		return p, err
	}
	sample := s.Sample
	if p.column.text && sample.Output == "auto" {
		sample.Output = "opaque"
	}
	for n := range p.RowGroups() {
		if _, err := chunkOf(f, p.File, n, p.column.index); err != nil {
			return p, err
		}
	}
	if p.typ, err = sample.typeOf(p.column.kind); err != nil || s.LabelColumn == "" {
		return p, err
	}
	if p.label, err = findColumn(p.File, "label_column", s.LabelColumn); err != nil {
		return p, err
	}
	if p.label.kind == floats || p.label.list {
		return p, &problemError{Attribute: "label_column", Summary: "No labels", Detail: fmt.Sprintf("The column %q has lists or floating-point numbers. Labels are whole numbers from 0, or names of classes.", s.LabelColumn)}
	}
	return p, nil
}

// Validate reports files that are missing or of another format, and columns that they don't have.
func (s *Parquet) Validate() []stages.Problem {
	_, problems := s.look(true)
	if s.Buffer > 0 && !s.Shuffle {
		problems = append(problems, stages.Problem{Attribute: "buffer", Summary: "Buffer without shuffling", Detail: "The buffer is what row groups are shuffled in: set shuffle = true, or leave buffer out."})
	}
	return problems
}

// look reads the metadata of the files, or of as many as it takes to know the type of an item.
func (s *Parquet) look(all bool) (t stages.Type, problems []stages.Problem) {
	problems = checkFiles("files", s.Files, func(ctx context.Context, path string, f storage.File) error {
		if !all && t.Kind != stages.Unknown {
			return nil
		}
		p, err := s.open(ctx, path, f)
		if t.Kind == stages.Unknown {
			t = p.typ
		}
		return err
	})
	return t, slices.Compact(problems) // most of them are every file's
}

// Output returns the type of an item, or an unknown one while the files can't be read.
func (s *Parquet) Output() stages.Type {
	t, _ := s.look(false)
	return t
}

// Shuffled reports whether each epoch's items come in a new order.
func (s *Parquet) Shuffled() bool { return s.Shuffle }

// Open reads the files' metadata, and the labels.
func (s *Parquet) Open(ctx context.Context, _ uint64) (stages.Source, error) {
	src := &parquetSource{rows: rowGroups{keep: keptBytes, least: 2, groups: make(map[int]*rowGroup)}}
	labels := labelReader{numbers: make(map[string]int32)}
	var err error
	src.fileSet, err = openFiles(ctx, s.Files, func(set *fileSet, path string, f storage.File) (int, error) {
		p, err := s.open(ctx, path, f)
		if err != nil {
			return 0, err
		}
		if n := len(set.firsts); n == 0 {
			src.typ, src.kind = p.typ, p.column.kind
		} else if p.typ != src.typ || p.column.kind != src.kind {
			return 0, fmt.Errorf("the column %q has %s, and in the files before it %s", s.Column, p.column.kind, src.kind)
		}
		rows := 0
		for n, group := range p.RowGroups() {
			chunk, err := chunkOf(f, p.File, n, p.column.index)
			if err != nil {
				return 0, err
			}
			src.groups = append(src.groups, parquetGroup{file: len(set.firsts), number: n, first: set.count + rows, chunk: chunk, column: p.column})
			if s.LabelColumn != "" {
				chunk, err := chunkOf(f, p.File, n, p.label.index)
				if err == nil {
					err = labels.add(ctx, chunk, p.label)
				}
				if err != nil {
					return 0, fmt.Errorf("column %q, row group %d: %w", s.LabelColumn, n, err)
				}
			}
			rows += int(group.NumRows())
		}
		if s.LabelColumn != "" {
			labels.classes = max(labels.classes, classesOf(p.File, s.LabelColumn))
		}
		return rows, nil
	})
	if err != nil {
		return nil, err
	}
	src.labels, src.classes, err = labels.finish()
	if err == nil && s.Shuffle && s.Buffer == 0 {
		src.rows.spool, err = newSpoolFile()
	}
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	if s.Buffer == 0 {
		return src, nil
	}
	src.rows.least = 2 * (s.Buffer*len(src.groups)/src.count + 2)
	return &bufferedRows{src, s.Buffer}, nil
}

// bufferedRows is shuffled by row groups and windows of rows.
type bufferedRows struct {
	*parquetSource
	window int
}

// Order gives the row groups in an order drawn from r, and their rows in windows each of which is in an order of its own.
func (s *bufferedRows) Order(r *rand.Rand, order []int32) {
	firsts := make([]int, len(s.groups))
	for n, g := range s.groups {
		firsts[n] = g.first
	}
	shuffleBlocks(r, order, firsts, s.window)
}

// classesOf returns how many names of classes Hugging Face's metadata have for a column, or 0.
func classesOf(file *parquet.File, column string) int {
	text, _ := file.Lookup("huggingface")
	var metadata struct {
		Info struct {
			Features map[string]struct{ Names []string }
		}
	}
	if json.Unmarshal([]byte(text), &metadata) != nil {
		return 0 // these are another program's notes, which may be anything
	}
	return len(metadata.Info.Features[column].Names)
}

// labelReader collects the labels of all rows.
type labelReader struct {
	labels  []int32
	classes int
	numbers map[string]int32 // by the classes' names, in the order in which they come
}

// add reads the labels of a row group.
func (l *labelReader) add(ctx context.Context, chunk parquetChunk, column parquetColumn) error {
	var rows packedRows
	if err := chunk.decode(ctx, column, &rows); err != nil {
		return err
	}
	for i := range rows.starts {
		size, err := rows.size(i)
		if err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
		value := rows.data[rows.starts[i]:][:size]
		if column.kind == byteStrings {
			n, ok := l.numbers[string(value)]
			if !ok {
				n = int32(len(l.numbers))
				l.numbers[string(value)] = n
			}
			l.labels = append(l.labels, n)
			continue
		}
		v := int64(binary.LittleEndian.Uint64(value))
		if v < 0 || v >= math.MaxInt32 {
			return fmt.Errorf(`row %d has the label %d, where labels count from 0; where items have none, set label_column = ""`, i, v)
		}
		l.labels, l.classes = append(l.labels, int32(v)), max(l.classes, int(v)+1)
	}
	return nil
}

// finish numbers classes in the order of their names.
func (l *labelReader) finish() ([]int32, int, error) {
	if len(l.numbers) == 0 {
		return l.labels, l.classes, nil
	}
	if l.classes > 0 {
		return nil, 0, errors.New("labels are names in some files and numbers in others, or in their metadata")
	}
	names := make([]string, 0, len(l.numbers))
	for name := range l.numbers {
		names = append(names, name)
	}
	slices.Sort(names)
	places := make([]int32, len(names))
	for i, name := range names {
		places[l.numbers[name]] = int32(i)
	}
	for i, n := range l.labels {
		l.labels[i] = places[n]
	}
	return l.labels, len(names), nil
}

// parquetGroup is a row group.
type parquetGroup struct {
	file   int
	number int // in its file
	first  int // the item that its first row is
	chunk  parquetChunk
	column parquetColumn
}

// parquetSource reads rows.
type parquetSource struct {
	*fileSet
	kind    valueKind
	typ     stages.Type
	groups  []parquetGroup
	rows    rowGroups
	labels  []int32 // nil without labels
	classes int
	buffers scratch
}

func (s *parquetSource) Classes() int { return s.classes }

// Name returns the file and the row.
func (s *parquetSource) Name(i int) string {
	file, row := s.locate(i)
	return fmt.Sprintf("%s, row %d", s.names[file], row)
}

// Close closes the files, and gives up what was unpacked.
func (s *parquetSource) Close() error {
	err := s.fileSet.Close()
	if s.rows.spool != nil {
		err = errors.Join(err, s.rows.spool.Close())
	}
	return err
}

// Read gives row i.
func (s *parquetSource) Read(c *stages.Call, i int, out *stages.Element) (label int32, err error) {
	n := sort.Search(len(s.groups), func(n int) bool { return s.groups[n].first > i }) - 1
	g := &s.groups[n]
	fail := func(err error) (int32, error) {
		return 0, fmt.Errorf("row group %d, from row %d: %w", g.number, g.first-s.firsts[g.file], err)
	}
	rows, err := s.rows.get(c.Context, n, func(rows *packedRows) error {
		return g.chunk.decode(c.Context, g.column, rows)
	})
	if err != nil {
		return fail(err)
	}
	row := i - g.first
	size, err := rows.size(row)
	if err != nil {
		return fail(err)
	}
	if s.labels != nil {
		label = s.labels[i]
	}
	if s.kind == byteStrings {
		if err := fits(s.typ, size, "bytes"); err != nil {
			return 0, err
		}
		return label, rows.read(row, out.Bytes(s.typ, size))
	}
	buffer := s.buffers.get(size)
	defer s.buffers.put(buffer)
	if err := rows.read(row, *buffer); err != nil {
		return fail(err)
	}
	return label, setNumbers(s.kind, s.typ, out, *buffer)
}

// setNumbers makes out an item of type t of the numbers that parquetColumn.add stores.
func setNumbers(kind valueKind, t stages.Type, out *stages.Element, data []byte) error {
	out.F32, out.I32 = out.F32[:0], out.I32[:0]
	if kind == floats {
		for ; len(data) > 0; data = data[4:] {
			out.F32 = append(out.F32, math.Float32frombits(binary.LittleEndian.Uint32(data)))
		}
	}
	for ; len(data) > 0; data = data[8:] {
		if err := addInt(t, out, int64(binary.LittleEndian.Uint64(data))); err != nil {
			return err
		}
	}
	return finish(t, out)
}
