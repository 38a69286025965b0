package cache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"

	"github.com/pipectl/pipectl/stages"
)

// Open opens a sealed cache. The error is fs.ErrNotExist where there is none, and a *DamageError where it isn't what was written.
func Open(folder string, s Settings) (*Disk, error) {
	path := filepath.Join(folder, s.Key.ID()+wholeSuffix)
	d, err := openFile(path)
	if err != nil {
		return nil, err
	}
	if d.set.Key != s.Key || d.set.Places != s.Places || d.set.Compress != s.Compress {
		return nil, errors.Join(&DamageError{path, "it was written for something else"}, d.Close())
	}
	if !s.Unmapped {
		d.mapped = mapFile(d.file)
	}
	// The time of change is that of the last use: the content doesn't change. Where it can't be set, the cache is as good.
	now := time.Now()
	_ = os.Chtimes(path, now, now)
	return d, nil
}

// openFile opens a sealed cache, and checks all of it but its records.
func openFile(path string) (*Disk, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	d, err := readIndex(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return d, nil
}

func readIndex(file *os.File) (*Disk, error) {
	damaged := func(format string, args ...any) (*Disk, error) {
		return nil, &DamageError{file.Name(), fmt.Sprintf(format, args...)}
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	b := make([]byte, min(headerSize, size))
	if _, err := file.ReadAt(b, 0); err != nil {
		return damaged("reading its header: %v", err)
	}
	h, err := decodeHeader(b, size)
	if err != nil {
		return damaged("%v", err)
	}
	tail := make([]byte, h.size-h.index)
	if _, err := file.ReadAt(tail, int64(h.index)); err != nil {
		return damaged("reading its index: %v", err)
	}
	index, text := tail[:h.places*entrySize], tail[h.places*entrySize:]
	if xxh3.Hash(index) != h.indexHash || xxh3.Hash(text) != h.aboutHash {
		return damaged("its index has another checksum than when it was written")
	}
	about, err := decodeAbout(text)
	if err != nil {
		return damaged("%v", err)
	}
	d, err := newDisk(filepath.Dir(file.Name()), Settings{Key: h.key, Places: int(h.places), Compress: h.compress, About: about})
	if err != nil {
		return nil, err
	}
	d.file, d.index, d.room.end = file, index, int64(h.index)
	for i := range d.set.Places {
		e := decodeEntry(index[i*entrySize:])
		if !e.kept() {
			continue
		}
		if !e.check(h) {
			return damaged("its index contradicts itself at item %d", i)
		}
		d.kept++
		d.bytes += int64(e.raw)
		d.room.used += aligned(int64(e.stored))
	}
	d.sealed.Store(true)
	return d, nil
}

// Get reads item i's element and label. It reports false where the item isn't kept, and a *DamageError where its record isn't what
// was written. The element may lie in the file itself: nobody may write to it, and out is for Get alone to write to.
func (d *Disk) Get(i int, out *stages.Element) (label int32, ok bool, err error) {
	sealed := d.sealed.Load()
	if !sealed {
		d.mu.Lock()
	}
	e := decodeEntry(d.index[i*entrySize:])
	if !sealed {
		d.mu.Unlock()
	}
	if !e.kept() {
		return 0, false, nil
	}
	timed := sealed && (e.stored >= timedBytes || i%timedEvery == 0)
	var start time.Time
	if timed {
		start = time.Now()
	}
	err = d.read(i, &e, sealed, out)
	if timed && time.Since(start) > d.patience(&e) {
		d.fetches.Store(fetchedAhead)
	}
	switch {
	case err == nil:
		return e.label, true, nil
	case sealed:
		return 0, false, &DamageError{d.Path(), fmt.Sprintf("the record of item %d: %v", i, err)}
	}
	return 0, false, nil // its room may have become another's meanwhile
}

const (
	timedBytes   = 16 << 10 // from which the time that reading a record takes matters more than looking at the clock
	timedEvery   = 16       // of smaller ones
	fetchedAhead = 256      // records
)

// patience returns how long reading a record takes at most where it lies in memory. Longer it takes from a disk.
func (d *Disk) patience(e *entry) time.Duration {
	ns := e.raw / 2
	if d.set.Compress {
		ns = e.raw * 2
	}
	return 20*time.Microsecond + time.Duration(ns)
}

// Fetch has item i's record brought into memory, for a Get to come, where others had to be waited for. It doesn't wait.
func (d *Disk) Fetch(i int) {
	if !d.sealed.Load() || d.fetches.Load() <= 0 {
		return
	}
	d.fetches.Add(-1)
	if e := decodeEntry(d.index[i*entrySize:]); e.kept() {
		prefetch(d.file, int64(e.offset), int64(e.stored))
	}
}

// read reads a record. Of a mapped file that was made shorter since, or that the disk can't read, the memory can't be read: that is
// an error here too.
func (d *Disk) read(i int, e *entry, sealed bool, out *stages.Element) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault, ok := recover().(interface{ Addr() uintptr }); ok {
			err = fmt.Errorf("the file can't be read any more (memory at %#x)", fault.Addr())
		}
	}()
	var record []byte
	switch {
	case sealed && d.mapped != nil:
		record = d.mapped[e.offset : e.offset+e.stored : e.offset+e.stored]
	case d.set.Compress:
		b := d.scratch.Get().(*[]byte)
		defer d.scratch.Put(b)
		*b = resized(*b, int(e.stored))
		record = *b
	default:
		record = grow(out, e.typ, int(e.raw))
	}
	if !sealed || d.mapped == nil {
		if _, err := d.file.ReadAt(record, int64(e.offset)); err != nil {
			return err
		}
	}
	if sum(record, i) != e.checksum {
		return errors.New("it has another checksum than when it was written")
	}
	switch {
	case d.set.Compress:
		return d.decompress(record, e, out)
	case sealed && d.mapped != nil:
		attach(out, e.typ, record)
	}
	return nil
}

// decompress leaves in out what a record holds. It takes no memory for one that says of itself that it holds something else.
func (d *Disk) decompress(record []byte, e *entry, out *stages.Element) error {
	var frame zstd.Header
	if err := frame.Decode(record); e.raw > 0 && (err != nil || !frame.HasFCS || frame.FrameContentSize != e.raw) {
		return fmt.Errorf("it doesn't hold the %d bytes that it should", e.raw)
	}
	to := grow(out, e.typ, int(e.raw))
	b, err := d.decoder.DecodeAll(record, to[:0:len(to)])
	if err != nil {
		return err
	}
	if len(b) != len(to) || len(b) > 0 && &b[0] != &to[0] {
		return fmt.Errorf("it holds %d bytes, and should hold %d", len(b), len(to))
	}
	return nil
}
