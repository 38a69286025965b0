package sources

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/pipectl/pipectl/stages/storage"
)

// A TFRecord file is a row of records: the data's length in 8 bytes, that length's checksum in 4, the data, and the data's
// checksum in 4, all little-endian (https://www.tensorflow.org/tutorials/load_data/tfrecord).
const (
	recordHeader = 12
	recordFooter = 4
)

// recordIndex says where a file's records are.
type recordIndex struct {
	starts []int64 // of each record, and where the next would start
	broken error   // why nothing can be read from there on, nil at the file's end
}

// items returns the number of records. What can't be read counts as one, so that it is either an error or skipped and counted.
func (x *recordIndex) items() int {
	if x.broken != nil {
		return len(x.starts)
	}
	return len(x.starts) - 1
}

// checksum returns the masked CRC-32C of data.
func checksum(table *crc32.Table, data []byte) uint32 {
	crc := crc32.Checksum(data, table)
	return (crc>>15 | crc<<17) + 0xa282ead8
}

// recordLength returns how many bytes of data follow a header.
func recordLength(table *crc32.Table, header []byte) (uint64, error) {
	if got, want := checksum(table, header[:8]), binary.LittleEndian.Uint32(header[8:]); got != want {
		return 0, fmt.Errorf("the checksum of its length is %08x, where %08x is stored: the file is damaged there", got, want)
	}
	return binary.LittleEndian.Uint64(header), nil
}

// noRecords says what is wrong with a file whose first header isn't one.
func noRecords(header []byte, err error) error {
	if bad := plainText(header); bad != nil {
		return bad
	}
	return fmt.Errorf("it is no TFRecord file: %w", err)
}

// indexRecords finds a file's records, or the first of them, most at the most. header fills p with what stands at a place of the file,
// each behind the last.
func indexRecords(size int64, most int, header func(p []byte, off int64) error) (recordIndex, error) {
	table := crc32.MakeTable(crc32.Castagnoli)
	var p [recordHeader]byte
	x := recordIndex{starts: []int64{0}}
	for off := int64(0); off < size && len(x.starts) <= most; {
		if size-off < recordHeader {
			x.broken = fmt.Errorf("the file ends within a record's header, of which there are %d of %d bytes: it is truncated", size-off, recordHeader)
			return x, nil
		}
		if err := header(p[:], off); err != nil {
			return x, err
		}
		length, err := recordLength(table, p[:])
		if err != nil {
			if off == 0 {
				return x, noRecords(p[:], err)
			}
			x.broken = fmt.Errorf("%w, and the %d bytes from it on can't be read", err, size-off)
			return x, nil
		}
		if there := size - off - recordHeader - recordFooter; there < 0 || length > uint64(there) {
			x.broken = fmt.Errorf("the file ends %d bytes after the record's start, which is of %d: it is truncated", size-off, min(length, math.MaxInt64)+recordHeader+recordFooter)
			return x, nil
		}
		off += recordHeader + int64(length) + recordFooter
		x.starts = append(x.starts, off)
	}
	return x, nil
}

// fileHeaders reads headers from a file of this machine. Most of a file of small records is read, and little of one of large ones.
func fileHeaders(ctx context.Context, f storage.File) func(p []byte, off int64) error {
	var window [4096]byte
	var have []byte
	start := int64(0)
	return func(p []byte, off int64) error {
		if off+int64(len(p)) > start+int64(len(have)) {
			have, start = window[:min(int64(len(window)), f.Size()-off)], off
			if err := readAt(ctx, f, have, off); err != nil {
				return err
			}
		}
		copy(p, have[off-start:])
		return nil
	}
}

// streamHeaders reads headers from a file that can only be read in one go.
func streamHeaders(r io.Reader) func(p []byte, off int64) error {
	b, pos := bufio.NewReaderSize(r, 1<<20), int64(0)
	return func(p []byte, off int64) error {
		n, err := io.CopyN(io.Discard, b, off-pos)
		if pos += n; err == nil {
			n, err := io.ReadFull(b, p)
			pos += int64(n)
			return err
		}
		return err
	}
}

// readRecord reads the data of a record that lies between two places of a file into a buffer of the size of both.
func readRecord(ctx context.Context, table *crc32.Table, f storage.File, start int64, buffer []byte) (example, error) {
	if err := readAt(ctx, f, buffer, start); err != nil {
		return nil, err
	}
	if _, err := recordLength(table, buffer[:recordHeader]); err != nil {
		return nil, err
	}
	data, footer := buffer[recordHeader:len(buffer)-recordFooter], buffer[len(buffer)-recordFooter:]
	if got, want := checksum(table, data), binary.LittleEndian.Uint32(footer); got != want {
		return nil, fmt.Errorf("the checksum of its %d bytes of data is %08x, where %08x is stored: the record is damaged", len(data), got, want)
	}
	return data, nil
}
