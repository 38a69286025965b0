package sources

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"

	"github.com/pipectl/pipectl/stages/storage"
)

// parquetChunk is the part of a file that has a column's values of a row group.
type parquetChunk struct {
	file  storage.File
	group parquet.RowGroup
	meta  *format.ColumnMetaData
}

// chunkOf finds a column's part of a row group.
func chunkOf(f storage.File, file *parquet.File, group, column int) (parquetChunk, error) {
	c := parquetChunk{f, file.RowGroups()[group], &file.Metadata().RowGroups[group].Columns[column].MetaData}
	switch c.meta.Codec {
	case format.Lz4:
		return c, errors.New("it is compressed by Hadoop's LZ4, which isn't supported; write it with LZ4_RAW, snappy or zstd")
	case format.LZO:
		return c, errors.New("it is compressed by LZO, which isn't supported; write it with snappy or zstd")
	}
	if rows := c.group.NumRows(); rows < 0 || rows > c.meta.NumValues {
		return c, fmt.Errorf("row group %d has %d rows and %d values of a column: the file is damaged", group, rows, c.meta.NumValues)
	}
	start := c.start()
	if start < 0 || c.meta.TotalCompressedSize < 0 || c.meta.TotalCompressedSize > f.Size()-start {
		return c, fmt.Errorf("a column of row group %d has %d bytes from %d, and the file has %d: it is damaged", group, c.meta.TotalCompressedSize, start, f.Size())
	}
	return c, nil
}

// start returns where the pages begin.
func (c parquetChunk) start() int64 {
	return cmp.Or(c.meta.DictionaryPageOffset, c.meta.DataPageOffset)
}

// wholeChunk is the size in bytes up to which a chunk is read in one go.
const wholeChunk = 64 << 20

// open returns the file as far as the chunk goes, for reading within a context.
func (c parquetChunk) open(ctx context.Context) (io.ReaderAt, error) {
	if c.meta.TotalCompressedSize > wholeChunk {
		return fileWithin{ctx, c.file}, nil
	}
	data := make([]byte, c.meta.TotalCompressedSize)
	if err := readAt(ctx, c.file, data, c.start()); err != nil {
		return nil, err
	}
	return chunkData{data, c.start()}, nil
}

// fileWithin reads a file within a context.
type fileWithin struct {
	ctx  context.Context
	file storage.File
}

func (f fileWithin) ReadAt(p []byte, off int64) (int, error) {
	return f.file.ReadAtContext(f.ctx, p, off)
}

// chunkData is a part of a file in memory.
type chunkData struct {
	data  []byte
	start int64
}

func (c chunkData) ReadAt(p []byte, off int64) (int, error) {
	if off -= c.start; off < 0 || off > int64(len(c.data)) {
		return 0, io.EOF
	}
	n := copy(p, c.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// anyPage is the size in bytes up to which pages are believed to be as large as they say.
const anyPage = 64 << 20

// check compares the pages' headers to what the file's end says. The library takes memory for what they say.
func (c parquetChunk) check(r io.ReaderAt) (err error) {
	defer recovered(&err)
	section := io.NewSectionReader(r, c.start(), c.meta.TotalCompressedSize)
	b := bufio.NewReaderSize(section, 4096)
	values := int64(0)
	for pos := int64(0); pos < c.meta.TotalCompressedSize && values < c.meta.NumValues; {
		var h format.PageHeader
		protocol := new(thrift.CompactProtocol)
		if err := thrift.NewDecoder(protocol.NewReader(b)).Decode(&h); err != nil {
			return fmt.Errorf("the header of the page at byte %d is damaged: %w", c.start()+pos, err)
		}
		at, err := section.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		body := at - int64(b.Buffered())
		end := body + int64(h.CompressedPageSize)
		n, most := int32(0), c.meta.NumValues
		switch {
		case h.DataPageHeader.Valid:
			n = h.DataPageHeader.V.NumValues
			values += int64(n)
		case h.DataPageHeaderV2.Valid:
			n = h.DataPageHeaderV2.V.NumValues
			values += int64(n)
		case h.DictionaryPageHeader.Valid: // which may have values that no row has
			n, most = h.DictionaryPageHeader.V.NumValues, int64(h.UncompressedPageSize)
		}
		if h.CompressedPageSize < 0 || end > c.meta.TotalCompressedSize || n < 0 || int64(n) > most ||
			h.UncompressedPageSize < 0 || int64(h.UncompressedPageSize) > max(c.meta.TotalUncompressedSize, anyPage) {
			return fmt.Errorf("the header of the page at byte %d says what can't be: it is damaged", c.start()+pos)
		}
		if c.meta.Codec == format.Lz4Raw {
			if err := checkLZ4(io.NewSectionReader(section, body, int64(h.CompressedPageSize)), &h); err != nil {
				return fmt.Errorf("the page at byte %d is damaged: %w", c.start()+pos, err)
			}
		}
		if _, err := section.Seek(end, io.SeekStart); err != nil {
			return err
		}
		b.Reset(section)
		pos = end
	}
	if values != c.meta.NumValues {
		return fmt.Errorf("the pages have %d values, where the file's end says %d: it is damaged", values, c.meta.NumValues)
	}
	return nil
}

// checkLZ4 unpacks a page that LZ4 has packed. Of one that can't be unpacked, the library would believe that it needs more memory than
// there is.
func checkLZ4(body *io.SectionReader, h *format.PageHeader) error {
	size := int64(h.UncompressedPageSize)
	if v2 := h.DataPageHeaderV2; v2.Valid {
		levels := int64(v2.V.RepetitionLevelsByteLength) + int64(v2.V.DefinitionLevelsByteLength) // which aren't packed
		if v2.V.IsCompressed.Valid && !v2.V.IsCompressed.V {
			return nil
		}
		if levels < 0 || levels > min(body.Size(), size) {
			return fmt.Errorf("%d bytes of levels are more than it has", levels)
		}
		body, size = io.NewSectionReader(body, levels, body.Size()-levels), size-levels
	}
	packed := make([]byte, body.Size())
	if _, err := io.ReadFull(body, packed); err != nil {
		return err
	}
	// A byte more than is needed: nothing can be unpacked into no memory, and what is larger than it says is noticed.
	n, err := lz4.UncompressBlock(packed, make([]byte, size+1))
	if err == nil && (int64(n) != size || len(packed) == 0) {
		err = fmt.Errorf("it has %d bytes, where its header says %d", n, size)
	}
	return err
}

// decode appends the values of the rows to out. What was read before an error stays there.
func (c parquetChunk) decode(ctx context.Context, column parquetColumn, out *packedRows) (err error) {
	defer func() {
		if err != nil && column.list {
			out.cut() // it may go on
		}
	}()
	defer recovered(&err)
	r, err := c.open(ctx)
	if err != nil {
		return err
	}
	if err := c.check(r); err != nil {
		return err
	}
	pages := c.group.ColumnChunks()[column.index].(*parquet.FileColumnChunk).PagesFrom(r)
	defer pages.Close()
	if out.spool == nil && column.kind == byteStrings {
		const likely = 16 // times as large as compressed
		out.data = make([]byte, 0, max(0, min(c.meta.TotalUncompressedSize, likely*c.meta.TotalCompressedSize)))
	}
	buffer := make([]parquet.Value, 256)
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return withoutPath(err)
		}
		if err := column.decodePage(page, buffer, out); err != nil {
			return err
		}
		parquet.Release(page)
	}
	if n := int64(len(out.starts)); n != c.group.NumRows() {
		return fmt.Errorf("there are %d rows, where the file's end says %d: it is damaged", n, c.group.NumRows())
	}
	return nil
}
