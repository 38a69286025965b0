package sources

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/pipectl/pipectl/stages/storage"
)

// parquetColumn is a column whose rows are items or labels.
type parquetColumn struct {
	index    int
	kind     valueKind
	text     bool // bytes are text
	stored   parquet.Kind
	unsigned bool
	list     bool
	// Definition levels: a null where it is below emptyList has no list; from fullList on, it is one of a list's values.
	emptyList, fullList int
}

// openParquet reads a file's metadata.
func openParquet(ctx context.Context, f storage.File, buffer int) (file *parquet.File, err error) {
	defer recovered(&err)
	// The library takes as much memory as the file's end says that the metadata need.
	const tail = 8
	var end [tail]byte
	if f.Size() >= 2*tail {
		err = readAt(ctx, f, end[:], f.Size()-tail)
	}
	switch size := int64(binary.LittleEndian.Uint32(end[:])); {
	case err != nil:
		return nil, err
	case string(end[4:]) == "PARE":
		return nil, errors.New("it is encrypted, which isn't supported")
	case string(end[4:]) != "PAR1":
		return nil, errors.New("it doesn't end as a Parquet file does, with PAR1: it is truncated, or of another format")
	case size > f.Size()-tail:
		return nil, fmt.Errorf("its metadata have %d bytes, and the file has %d: it is damaged", size, f.Size())
	}
	file, err = parquet.OpenFile(f, f.Size(), &parquet.FileConfig{SkipPageIndex: true, SkipBloomFilters: true, OptimisticRead: true, ReadBufferSize: buffer})
	if err != nil {
		return nil, fmt.Errorf("its metadata can't be read: %w", withoutPath(err))
	}
	return file, nil
}

// recovered makes an error of a panic: the library has some where files are damaged.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the file is damaged: %v", p)
	}
}

// findColumn finds a column by its name, or by the names on the way to it with dots between them.
func findColumn(file *parquet.File, attribute, name string) (c parquetColumn, err error) {
	defer recovered(&err)
	fail := func(summary, detail string) (parquetColumn, error) {
		return c, &problemError{Attribute: attribute, Summary: summary, Detail: detail}
	}
	levels := 0
	enter := func(node *parquet.Column) {
		if node.Repeated() {
			if !c.list {
				c.emptyList = levels
			}
			c.list, c.fullList = true, levels+1
		}
		if node.Repeated() || node.Optional() {
			levels++
		}
	}
	path := columnPath(file.Root(), name)
	if path == nil {
		return fail("No such column", noSuch("column", name, columnNames(file.Root())))
	}
	for _, node := range path {
		enter(node)
	}
	node := path[len(path)-1]
	for !node.Leaf() {
		parts := node.Columns()
		switch bytes := node.Column("bytes"); {
		case bytes != nil: // as Hugging Face stores images and sound, beside their path
			node = bytes
		case len(parts) == 1:
			node = parts[0]
		default:
			var names []string
			for _, p := range parts {
				names = append(names, p.Name())
			}
			return fail("Column has parts", fmt.Sprintf("The column %q has the parts %s. Name one of them: %s = %q.", name, strings.Join(names, ", "), attribute, strings.Join(parts[0].Path(), ".")))
		}
		enter(node)
	}
	c.index, c.stored = node.Index(), node.Type().Kind()
	unknown := func(what string) (parquetColumn, error) {
		return fail("Unknown type of column", fmt.Sprintf("The column %q has values of the type %s. Convert them to floating-point or whole numbers, text or bytes when the file is written.", name, what))
	}
	if logical := node.Type().LogicalType(); logical != nil {
		switch t := logical.Value.(type) {
		case *format.IntType:
			c.unsigned = !t.IsSigned
		case *format.StringType, *format.JsonType, *format.EnumType:
			c.text = true
		case *format.DecimalType, *format.Float16Type:
			return unknown(logical.String())
		}
	}
	switch c.stored {
	case parquet.ByteArray, parquet.FixedLenByteArray:
		c.kind = byteStrings
	case parquet.Float, parquet.Double:
		c.kind = floats
	case parquet.Int32, parquet.Int64, parquet.Boolean:
		c.kind = integers
	default:
		return unknown(c.stored.String())
	}
	if c.kind == byteStrings && c.list {
		return fail("Column of lists", fmt.Sprintf("The column %q has lists of byte strings or text, where an item is one.", name))
	}
	return c, nil
}

// columnPath returns the way from a node to a column below it. A name may have dots itself.
func columnPath(node *parquet.Column, name string) []*parquet.Column {
	if child := node.Column(name); child != nil {
		return []*parquet.Column{child}
	}
	for i := range len(name) {
		if name[i] != '.' {
			continue
		}
		if child := node.Column(name[:i]); child != nil && !child.Leaf() {
			if rest := columnPath(child, name[i+1:]); rest != nil {
				return append([]*parquet.Column{child}, rest...)
			}
		}
	}
	return nil
}

// columnNames returns the names of columns, and of the parts of those that have several.
func columnNames(root *parquet.Column) []string {
	var names []string
	for _, c := range root.Columns() {
		names = append(names, c.Name())
		if !c.Leaf() && len(c.Columns()) > 1 {
			for _, part := range c.Columns() {
				names = append(names, c.Name()+"."+part.Name())
			}
		}
	}
	return names
}

func (c parquetColumn) decodePage(page parquet.Page, buffer []parquet.Value, out *packedRows) error {
	values := page.Values()
	for {
		n, err := values.ReadValues(buffer)
		for _, v := range buffer[:n] {
			if err := c.add(v, out); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// add appends a value to the last row, or to a new one. Floating-point numbers become 4 bytes, whole numbers 8, in little-endian order.
func (c parquetColumn) add(v parquet.Value, out *packedRows) error {
	if v.RepetitionLevel() == 0 {
		if err := out.begin(); err != nil {
			return err
		}
	}
	if v.IsNull() {
		switch level := v.DefinitionLevel(); {
		case !c.list || level < c.emptyList:
			out.spoil(nullRow)
		case level >= c.fullList:
			out.spoil(nullValue)
		}
		return nil
	}
	switch c.stored {
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return out.add(v.ByteArray())
	case parquet.Float:
		return out.add(binary.LittleEndian.AppendUint32(out.value[:0], math.Float32bits(v.Float())))
	case parquet.Double:
		return out.add(binary.LittleEndian.AppendUint32(out.value[:0], math.Float32bits(float32(v.Double()))))
	case parquet.Int32:
		n := uint64(v.Int32())
		if c.unsigned {
			n = uint64(v.Uint32())
		}
		return out.add(binary.LittleEndian.AppendUint64(out.value[:0], n))
	case parquet.Int64:
		if c.unsigned && v.Int64() < 0 {
			out.spoil(hugeValue)
			return nil
		}
		return out.add(binary.LittleEndian.AppendUint64(out.value[:0], uint64(v.Int64())))
	}
	bit := uint64(0)
	if v.Boolean() {
		bit = 1
	}
	return out.add(binary.LittleEndian.AppendUint64(out.value[:0], bit))
}
