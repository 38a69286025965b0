package cache

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
	"unsafe"

	"github.com/zeebo/xxh3"

	"github.com/pipectl/pipectl/stages"
)

// A cache file is a header, records, an index and a description in JSON. Numbers are little-endian.
//
//	header  104 bytes, described at header.encode; zeros up to the first record
//	record  an element's data, as it is in memory or as one zstd frame; begins at a multiple of 64 bytes
//	index   56 bytes for each item of the source, described at entry.encode; all 0 where the item isn't kept
//	about   a JSON object: About
//
// Each of them has a checksum, xxh3 of 64 bits: the header's own is at its end and those of index and about are in it, a record's
// is in the index, seeded with the item's number, so that a record at another's place is found out too.
const (
	magic         = "PIPECACH"
	formatVersion = 1

	headerSize = 104
	entrySize  = 56
	firstByte  = 128 // of the first record
	alignment  = 64  // of records: a CPU's cache line, and more than any element's values need

	// maxElement is how large an element may be to be kept, so that a faulty size asks for no more memory than that.
	maxElement = 1 << 30
	// maxRatio is how much zstd can compress: 128 KiB of the same byte take 4 bytes (RFC 8878, section 3.1.1.2).
	maxRatio = 128 << 10 / 4
)

// Key is the fingerprint of all that a cache's content follows from. What differs in any of it has another key.
type Key [32]byte

// ID names the key in commands and file names.
func (k Key) ID() string { return hex.EncodeToString(k[:8]) }

// About says what a cache is of, for people.
type About struct {
	Experiment string    `json:"experiment"`
	Checkpoint string    `json:"checkpoint"`
	After      string    `json:"after"`   // address of the stage whose output it keeps
	Created    time.Time `json:"created"` // when it was whole
}

// DamageError says that a cache file isn't what was written.
type DamageError struct {
	Path string
	What string
	file os.FileInfo // nil where it isn't known
}

func (e *DamageError) Error() string { return fmt.Sprintf("%s is damaged: %s", e.Path, e.What) }

// Remove removes the damaged file, unless that has been done, or another has its place already.
func (e *DamageError) Remove() error {
	there, err := os.Stat(e.Path)
	if err == nil && os.SameFile(e.file, there) {
		err = os.Remove(e.Path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// header is the beginning of a cache file, which is written last.
type header struct {
	compress             bool
	key                  Key
	places               uint64 // items in the source
	index                uint64 // where the index begins; the description follows it
	about                uint64 // the description's length
	size                 uint64 // of the file
	indexHash, aboutHash uint64
}

// encode lays the header out: magic, version, compression (0 or 1), key, places, where the index begins, the description's length, the file's size, the
// checksums of index and description, and that of all before.
func (h *header) encode() []byte {
	b := make([]byte, 0, headerSize)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, formatVersion)
	compress := uint32(0)
	if h.compress {
		compress = 1
	}
	b = binary.LittleEndian.AppendUint32(b, compress)
	b = append(b, h.key[:]...)
	for _, v := range []uint64{h.places, h.index, h.about, h.size, h.indexHash, h.aboutHash} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return binary.LittleEndian.AppendUint64(b, xxh3.Hash(b))
}

// decodeHeader reads the header of a file of a size. Where it can't be right, the error says why.
func decodeHeader(b []byte, size int64) (*header, error) {
	switch {
	case len(b) < headerSize || string(b[:8]) != magic:
		return nil, errors.New("it doesn't begin as a cache does")
	case binary.LittleEndian.Uint32(b[8:]) != formatVersion:
		return nil, fmt.Errorf("its format is version %d, and this pipectl reads version %d", binary.LittleEndian.Uint32(b[8:]), formatVersion)
	case binary.LittleEndian.Uint64(b[headerSize-8:]) != xxh3.Hash(b[:headerSize-8]):
		return nil, errors.New("its header has another checksum than when it was written")
	}
	compress := binary.LittleEndian.Uint32(b[12:])
	h := &header{compress: compress == 1, key: Key(b[16:48])}
	for i, field := range []*uint64{&h.places, &h.index, &h.about, &h.size, &h.indexHash, &h.aboutHash} {
		*field = binary.LittleEndian.Uint64(b[48+8*i:])
	}
	// No sum overflows: each part is checked against the file before it is added.
	whole := uint64(size)
	switch {
	case compress > 1:
		return nil, errors.New("its header names a compression that there isn't")
	case h.size != whole:
		return nil, fmt.Errorf("it has %d bytes, and was written with %d", size, h.size)
	case h.index < firstByte || h.index > whole || h.about > whole-h.index || h.places != (whole-h.index-h.about)/entrySize ||
		(whole-h.index-h.about)%entrySize != 0:
		return nil, errors.New("its header contradicts itself")
	}
	return h, nil
}

// entry says where an item's record is and what it holds.
type entry struct {
	offset   uint64 // in the file; 0: the item isn't kept
	stored   uint64 // bytes in the file
	raw      uint64 // bytes of the element
	label    int32
	typ      stages.Type
	checksum uint64
}

// encode lays the entry out in b: offset, stored, raw (8 bytes each), label, kind (4 bytes each), the three dimensions (4 bytes each), 4 bytes 0, and
// the record's checksum.
func (e *entry) encode(b []byte) {
	binary.LittleEndian.PutUint64(b, e.offset)
	binary.LittleEndian.PutUint64(b[8:], e.stored)
	binary.LittleEndian.PutUint64(b[16:], e.raw)
	binary.LittleEndian.PutUint32(b[24:], uint32(e.label))
	binary.LittleEndian.PutUint32(b[28:], uint32(e.typ.Kind))
	for i, n := range e.typ.Shape {
		binary.LittleEndian.PutUint32(b[32+4*i:], uint32(n))
	}
	binary.LittleEndian.PutUint32(b[44:], 0)
	binary.LittleEndian.PutUint64(b[48:], e.checksum)
}

func decodeEntry(b []byte) entry {
	e := entry{
		offset:   binary.LittleEndian.Uint64(b),
		stored:   binary.LittleEndian.Uint64(b[8:]),
		raw:      binary.LittleEndian.Uint64(b[16:]),
		label:    int32(binary.LittleEndian.Uint32(b[24:])),
		checksum: binary.LittleEndian.Uint64(b[48:]),
	}
	e.typ.Kind = stages.Kind(min(binary.LittleEndian.Uint32(b[28:]), 255))
	for i := range e.typ.Shape {
		e.typ.Shape[i] = int(int32(binary.LittleEndian.Uint32(b[32+4*i:])))
	}
	return e
}

// kept reports whether there is a record.
func (e *entry) kept() bool { return e.offset > 0 }

// check reports whether the entry can be that of a record in front of the index.
func (e *entry) check(h *header) bool {
	switch {
	case e.offset < firstByte || e.offset%alignment != 0 || e.offset > h.index || e.stored > h.index-e.offset:
		return false
	case e.raw > maxElement || !h.compress && e.raw != e.stored || e.raw > e.stored*maxRatio:
		return false
	case e.typ.Kind == stages.Unknown || e.typ.Kind > stages.Object:
		return false
	case (e.typ.Kind == stages.Tensor || e.typ.Kind == stages.Tokens) && e.raw%4 != 0:
		return false
	}
	values := uint64(1) // of a type of a fixed size, whose data has that size
	for i, n := range e.typ.Shape {
		if n < 0 || n > maxElement {
			return false
		}
		if i == 0 || e.typ.Kind == stages.Image || e.typ.Kind == stages.Tensor {
			if values *= uint64(n); values > maxElement {
				return false
			}
		}
	}
	return values == 0 || uint64(e.typ.Size()) == e.raw
}

// sum returns the checksum of the record of item i.
func sum(record []byte, i int) uint64 { return xxh3.HashSeed(record, uint64(i)) }

// encodeAbout returns a description as it stands in a file.
func encodeAbout(a About) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.Encode(a) // strings and a time can always be written, and into memory
	return b.Bytes()
}

func decodeAbout(b []byte) (a About, err error) {
	if err := json.Unmarshal(b, &a); err != nil {
		return a, fmt.Errorf("reading its description: %w", err)
	}
	return a, nil
}

// view returns the memory of an element's data.
func view(el *stages.Element) []byte {
	switch el.Type.Kind {
	case stages.Tensor:
		return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(el.F32))), 4*len(el.F32))
	case stages.Tokens:
		return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(el.I32))), 4*len(el.I32))
	}
	return el.U8
}

// attach makes el an element whose data is b, without a copy. b begins at a multiple of 4 bytes.
func attach(el *stages.Element, t stages.Type, b []byte) {
	el.Type = t
	switch t.Kind {
	case stages.Tensor:
		el.F32 = unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
	case stages.Tokens:
		el.I32 = unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
	default:
		el.U8 = b
	}
}

// grow makes el an element of type t in its own memory, and returns its n bytes to be filled.
func grow(el *stages.Element, t stages.Type, n int) []byte {
	el.Type = t
	switch t.Kind {
	case stages.Tensor:
		el.F32 = resized(el.F32, n/4)
	case stages.Tokens:
		el.I32 = resized(el.I32, n/4)
	default:
		el.U8 = resized(el.U8, n)
	}
	return view(el)
}

func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
