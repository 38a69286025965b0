package sources

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"

	"github.com/pipectl/pipectl/stages/storage"
)

// A packing is how TensorFlow's TFRecordOptions compress a file as a whole.
type packing struct {
	name   string
	reader func(io.Reader) (io.ReadCloser, error)
}

// packingOf returns how a file is compressed, or nil if it begins with a record.
func packingOf(ctx context.Context, table *crc32.Table, f storage.File) (*packing, error) {
	var start [recordHeader]byte
	if f.Size() < int64(len(start)) {
		return nil, nil
	}
	if err := readAt(ctx, f, start[:], 0); err != nil {
		return nil, err
	}
	_, err := recordLength(table, start[:])
	switch {
	case err == nil: // even where the length looks like the start of a compressed file
		return nil, nil
	case start[0] == 0x1f && start[1] == 0x8b:
		return &packing{"gzip", func(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }}, nil
	case start[0] == 0x78 && (int(start[0])<<8|int(start[1]))%31 == 0: // RFC 1950, section 2.2
		return &packing{"zlib", zlib.NewReader}, nil
	}
	return nil, nil
}

// unpack calls read with what a compressed file holds.
func (p *packing) unpack(packed io.Reader, read func(io.Reader) error) error {
	r, err := p.reader(bufio.NewReaderSize(packed, 1<<20))
	if err == nil {
		defer r.Close()
		err = read(r)
	}
	if err != nil {
		return fmt.Errorf("it is compressed by %s, and can't be unpacked: %w", p.name, withoutPath(err))
	}
	return nil
}

// startOf returns the first bytes, as many as most, that a compressed file holds, as a file.
func (p *packing) startOf(ctx context.Context, f storage.File, most int64) (storage.File, error) {
	var start []byte
	err := p.unpack(io.NewSectionReader(fileWithin{ctx, f}, 0, f.Size()), func(r io.Reader) (err error) {
		start, err = io.ReadAll(io.LimitReader(r, most))
		return err
	})
	return unpackedMember{f, bytes.NewReader(start), int64(len(start))}, err
}

// spool unpacks the file at a path to a temporary one.
func (p *packing) spool(ctx context.Context, client *storage.Client, path string) (*spoolFile, error) {
	packed, err := client.Stream(ctx, path)
	if err != nil {
		return nil, err
	}
	defer packed.Close()
	spool, err := newSpoolFile()
	if err != nil {
		return nil, err
	}
	if err := p.unpack(packed, spool.fill); err != nil {
		_ = spool.Close()
		return nil, err
	}
	return spool, nil
}
