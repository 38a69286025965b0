package cache

import (
	"errors"
	"fmt"
	"io"
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
		damage := d.damage("it was written for something else")
		damage.Path = path
		return nil, errors.Join(damage, d.Close())
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
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	damaged := func(format string, args ...any) (*Disk, error) {
		return nil, &DamageError{Path: file.Name(), What: fmt.Sprintf(format, args...), file: info}
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
// was written. The element is in out's own memory.
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
		return 0, false, d.damage(fmt.Sprintf("the record of item %d, at byte %d: %v", i, e.offset, err))
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

// read reads a record into memory of its own, where nobody changes it any more once it was checked.
func (d *Disk) read(i int, e *entry, sealed bool, out *stages.Element) error {
	if !d.set.Compress {
		record := grow(out, e.typ, int(e.raw))
		return d.load(record, i, e, sealed)
	}
	b := d.scratch.Get().(*[]byte)
	defer d.scratch.Put(b)
	*b = resized(*b, int(e.stored))
	if err := d.load(*b, i, e, sealed); err != nil {
		return err
	}
	return d.decompress(*b, e, out)
}

// mappedBytes is up to how many bytes it is faster to copy a record out of a mapped file than to have it read by a call.
const mappedBytes = 1 << 20

// load copies a record as it is stored into b, and checks it.
func (d *Disk) load(b []byte, i int, e *entry, sealed bool) error {
	var err error
	if sealed && d.mapped != nil && len(b) <= mappedBytes {
		err = copyMapped(b, d.mapped[e.offset:])
	} else {
		_, err = d.file.ReadAt(b, int64(e.offset))
	}
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("the file ends within it")
	case err != nil:
		return err
	case sum(b, i) != e.checksum:
		return errors.New("it has another checksum than when it was written")
	}
	return nil
}

// copyMapped copies from a mapped file. What another program cut off, or the disk can't read, isn't memory: to touch it is an error here, and would
// end the process elsewhere.
func copyMapped(to, from []byte) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			err = errors.New("the file can't be read any more")
		}
	}()
	copy(to, from)
	return nil
}

// damage returns the error that says how the file isn't what was written.
func (d *Disk) damage(what string) *DamageError {
	info, _ := d.file.Stat() // which tells files apart, and fails where nothing can be done about the file
	return &DamageError{Path: d.Path(), What: what, file: info}
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
