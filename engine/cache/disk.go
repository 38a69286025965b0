package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"

	"github.com/pipectl/pipectl/stages"
)

// ErrBusy says that another process fills the same cache at this moment.
var ErrBusy = errors.New("another process is filling the same cache")

// Ending names of files in a cache's folder.
const (
	wholeSuffix   = ".cache"
	partialSuffix = ".partial" // of one that is being filled
)

// Settings say what a cache on disk is of and what it may keep.
type Settings struct {
	Key      Key
	Places   int   // items in the source
	Limit    int64 // bytes that its records may take; 0: any number
	Compress bool  // with zstd
	Unmapped bool  // it is read by calls, so that its pages can be dropped from memory
	About    About
}

// Disk keeps elements of a boundary in a file of its own, by their item's number in the source: all items, or as many of the first as
// fit within the limit. While it is being filled it lies under a temporary name and is locked; sealed, it has its own and never
// changes again. Get and Put may be called from several goroutines.
type Disk struct {
	folder string
	set    Settings
	file   *os.File

	// writing is held by those who write records, and by one alone who makes room by taking others'.
	writing sync.RWMutex
	mu      sync.Mutex // of what follows, while the cache is being filled
	index   []byte
	room    room
	cut     int // the first item that doesn't fit
	kept    int
	bytes   int64 // of the elements kept

	sealed    atomic.Bool // nothing above changes any more
	discarded bool
	mapped    []byte       // the file, once it is sealed, for copyMapped alone; nil where it is read by calls
	fetches   atomic.Int32 // how many more records are fetched ahead, since one had to be waited for

	encoder *zstd.Encoder
	decoder *zstd.Decoder
	scratch sync.Pool // *[]byte: compressed records
}

// newDisk returns a cache without a file.
func newDisk(folder string, s Settings) (*Disk, error) {
	d := &Disk{folder: folder, set: s, cut: s.Places, room: room{limit: s.Limit, end: firstByte}}
	d.scratch.New = func() any { return new([]byte) }
	if !s.Compress {
		return d, nil
	}
	var err error
	// The fastest level, since what a cache saves is time; frames that say how much they hold. Both work in the goroutine that calls them.
	d.encoder, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
	if err != nil {
		return nil, err
	}
	d.decoder, err = zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxElement), zstd.WithDecoderConcurrency(0))
	return d, err
}

// Create begins a cache in a folder, which is made where it is missing. Where another process is filling the same one, the error is ErrBusy.
func Create(folder string, s Settings) (*Disk, error) {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, err
	}
	d, err := newDisk(folder, s)
	if err != nil {
		return nil, err
	}
	for try := 0; try == 0 || errors.Is(err, ErrBusy) && try < lockTries; try++ {
		if try > 0 {
			time.Sleep(lockPause)
		}
		d.file, err = lockPartial(d.partial(), os.O_CREATE)
	}
	if err != nil {
		return nil, err
	}
	if err := d.file.Truncate(0); err != nil { // what a process left that was ended
		return nil, errors.Join(err, d.Close())
	}
	d.index = make([]byte, s.Places*entrySize)
	return d, nil
}

// Whoever only looks whether a cache is being filled locks it for a moment, which Create waits out.
const (
	lockTries = 5
	lockPause = 10 * time.Millisecond
)

// lockPartial opens a cache that is being filled, and locks it for as long as the file is open. The error is ErrBusy where another
// process has done so.
func lockPartial(path string, flags int) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|flags, 0o666)
		if err != nil {
			return nil, err
		}
		if err := lock(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		// Between the opening and the lock, its process may have sealed or removed it.
		here, err := at(path, f)
		if here {
			return f, nil
		}
		f.Close()
		if err != nil && !(errors.Is(err, fs.ErrNotExist) && flags&os.O_CREATE != 0) {
			return nil, err
		}
	}
}

// at reports whether an open file is the one at a path.
func at(path string, f *os.File) (bool, error) {
	here, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(here, there), err
}

func (d *Disk) partial() string { return filepath.Join(d.folder, d.set.Key.ID()+partialSuffix) }

// Path returns the name of the file once it is sealed.
func (d *Disk) Path() string { return filepath.Join(d.folder, d.set.Key.ID()+wholeSuffix) }

// Sealed reports whether the cache is whole: nothing more is kept.
func (d *Disk) Sealed() bool { return d.sealed.Load() }

// Full reports whether all items are kept that fit, so that the cache can be sealed.
func (d *Disk) Full() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.kept == d.cut
}

// Size returns how many items are kept, how many bytes their elements have, and how many they take in the file.
func (d *Disk) Size() (items int, bytes, stored int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.kept, d.bytes, d.room.used
}

// Put keeps a copy of item i's element, unless it doesn't fit within the limit. Room is for the first items in the source's order: it is taken from
// those behind. The error is that of writing the file: then nothing is lost but this item.
func (d *Disk) Put(i int, label int32, el *stages.Element) error {
	data := view(el)
	if len(data) > maxElement {
		d.leaveOut(i)
		return nil
	}
	e := entry{label: label, typ: el.Type, raw: uint64(len(data))}
	if d.encoder != nil {
		b := d.scratch.Get().(*[]byte)
		defer d.scratch.Put(b)
		*b = d.encoder.EncodeAll(data, (*b)[:0])
		data = *b
	}
	e.stored, e.checksum = uint64(len(data)), sum(data, i)

	d.writing.RLock()
	d.mu.Lock()
	if !d.wants(i) {
		d.mu.Unlock()
		d.writing.RUnlock()
		return nil
	}
	if d.room.fits(int64(len(data))) {
		defer d.writing.RUnlock()
		e.offset = uint64(d.room.take(int64(len(data))))
		d.mu.Unlock()
		return d.write(i, e, data)
	}
	d.mu.Unlock()
	d.writing.RUnlock()

	d.writing.Lock() // so that nobody writes where room is made
	defer d.writing.Unlock()
	d.mu.Lock()
	if !d.wants(i) || !d.makeRoom(i, int64(len(data))) {
		d.mu.Unlock()
		return nil
	}
	e.offset = uint64(d.room.take(int64(len(data))))
	d.mu.Unlock()
	return d.write(i, e, data)
}

// leaveOut leaves out item i and all behind it.
func (d *Disk) leaveOut(i int) {
	d.writing.Lock()
	defer d.writing.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.sealed.Load() {
		d.drop(i)
	}
}

// wants reports whether item i is to be kept and isn't yet.
func (d *Disk) wants(i int) bool {
	if d.sealed.Load() || i >= d.cut {
		return false
	}
	e := decodeEntry(d.index[i*entrySize:])
	return !e.kept()
}

// makeRoom drops items behind i, the last first, until n bytes fit. Where they don't without all of those, i itself is left out.
func (d *Disk) makeRoom(i int, n int64) bool {
	for j := d.cut - 1; j > i && !d.room.fits(n); j-- {
		d.drop(j)
	}
	if !d.room.fits(n) {
		d.drop(i)
		return false
	}
	return true
}

// drop leaves out item i and all behind it, none of which is kept but i itself.
func (d *Disk) drop(i int) {
	for j := d.cut - 1; j >= i; j-- {
		b := d.index[j*entrySize : (j+1)*entrySize]
		if e := decodeEntry(b); e.kept() {
			d.room.give(int64(e.offset), int64(e.stored))
			d.kept--
			d.bytes -= int64(e.raw)
			clear(b)
		}
	}
	d.cut = min(d.cut, i)
}

// write writes a record, and enters it into the index.
func (d *Disk) write(i int, e entry, data []byte) error {
	_, err := d.file.WriteAt(data, int64(e.offset))
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil || !d.wants(i) {
		d.room.give(int64(e.offset), int64(e.stored))
		return err
	}
	e.encode(d.index[i*entrySize:])
	d.kept++
	d.bytes += int64(e.raw)
	return nil
}

// Seal completes the file and gives it its name, once all of it is on the disk. The cache can be read before, meanwhile and after.
func (d *Disk) Seal() error {
	d.writing.Lock()
	defer d.writing.Unlock()
	if d.sealed.Load() || d.discarded {
		return nil
	}
	d.set.About.Created = time.Now().UTC().Truncate(time.Second)
	about := encodeAbout(d.set.About)
	d.mu.Lock()
	h := header{compress: d.set.Compress, key: d.set.Key, places: uint64(d.set.Places), index: uint64(d.room.end), about: uint64(len(about)),
		indexHash: xxh3.Hash(d.index), aboutHash: xxh3.Hash(about)}
	d.mu.Unlock()
	h.size = h.index + uint64(len(d.index)+len(about))
	_, err := d.file.WriteAt(d.index, int64(h.index))
	if err == nil {
		_, err = d.file.WriteAt(about, int64(h.index)+int64(len(d.index)))
	}
	if err == nil {
		err = d.file.Truncate(int64(h.size))
	}
	if err == nil {
		_, err = d.file.WriteAt(h.encode(), 0)
	}
	if err == nil {
		err = d.file.Sync()
	}
	if err == nil {
		var here bool
		if here, err = at(d.partial(), d.file); here {
			err = os.Rename(d.partial(), d.Path())
		} else if err == nil || errors.Is(err, fs.ErrNotExist) { // and another process may have begun anew
			err = fmt.Errorf("%s was removed by another program", d.partial())
		}
	}
	if err != nil {
		return err
	}
	unsynced := syncFolder(d.folder)
	if !d.set.Unmapped {
		d.mapped = mapFile(d.file)
	}
	d.mu.Lock()
	d.sealed.Store(true)
	d.mu.Unlock()
	return unsynced
}

// Discard removes the file of a cache that isn't sealed, with what it takes on the disk. Whoever reads it at this moment finds nothing.
func (d *Disk) Discard() error {
	d.writing.Lock()
	defer d.writing.Unlock()
	d.discarded = true
	return errors.Join(d.removePartial(), d.file.Truncate(0))
}

// removePartial removes the file while it is locked, so that it is ours, unless others have.
func (d *Disk) removePartial() error {
	if here, err := at(d.partial(), d.file); !here {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return os.Remove(d.partial())
}

// Close closes the file, and removes it where it isn't sealed. What Get gave may not be used any more.
func (d *Disk) Close() error {
	var errs []error
	if d.mapped != nil {
		errs = append(errs, unmapFile(d.mapped))
	}
	if !d.sealed.Load() && !d.discarded {
		errs = append(errs, d.removePartial())
	}
	if d.decoder != nil {
		d.decoder.Close()
	}
	return errors.Join(append(errs, d.file.Close())...)
}
