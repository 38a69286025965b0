package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pipectl/pipectl/stages"
)

// State says what a file in a cache's folder is.
type State string

// The states of a cache.
const (
	Whole   State = "whole"
	Damaged State = "damaged"
	Filling State = "filling"   // by a process that is at it
	Partial State = "left over" // of a process that was ended
)

// File is a cache as it lies on the disk.
type File struct {
	Path   string
	ID     string // of its key
	State  State
	About  About // empty unless it is whole
	Items  int   // kept
	Places int   // items in the source
	Bytes  int64 // of the elements kept
	Size   int64 // of the file
	Used   time.Time
	Reason string // why it is damaged
}

// List lists the caches in a folder by their names, without a look at their records. A folder that isn't there has none.
func List(folder string) ([]File, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var files []File
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), wholeSuffix) && !strings.HasSuffix(e.Name(), partialSuffix) {
			continue // another's file
		}
		f, err := look(filepath.Join(folder, e.Name()), (*Disk).named)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoFile): // it was renamed or removed just now, or is a folder
		case err != nil:
			return nil, err
		default:
			files = append(files, f)
		}
	}
	return files, nil
}

// Verify reads a whole cache, whatever its name is, and reports what is damaged.
func Verify(ctx context.Context, path string) (File, error) {
	return look(path, func(d *Disk) error { return d.verify(ctx) })
}

// named finds a cache damaged that isn't named by its key, as nobody opens it.
func (d *Disk) named() error {
	if filepath.Base(d.file.Name()) != filepath.Base(d.Path()) {
		return d.damage("its name isn't that of its key")
	}
	return nil
}

// mostReasons is how many damaged records a report names.
const mostReasons = 3

// verify reads all records.
func (d *Disk) verify(ctx context.Context) error {
	var damaged []string
	more := 0
	var el stages.Element
	for i := range d.set.Places {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		_, _, err := d.Get(i, &el)
		damage := (*DamageError)(nil)
		switch {
		case !errors.As(err, &damage):
		case len(damaged) == mostReasons:
			more++
		default:
			damaged = append(damaged, damage.What)
		}
	}
	if len(damaged) == 0 {
		return nil
	}
	what := strings.Join(damaged, "; ")
	if more > 0 {
		what += fmt.Sprintf("; and %d more", more)
	}
	return d.damage(what)
}

var errNoFile = errors.New("not a regular file")

// look describes a file. Of one that isn't being filled or left over, what check finds counts as damage as well. The error is one of the machine.
func look(path string, check func(*Disk) error) (File, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errNoFile}
	}
	if err != nil {
		return File{}, err
	}
	id, partial := strings.CutSuffix(filepath.Base(path), partialSuffix)
	f := File{Path: path, ID: strings.TrimSuffix(id, wholeSuffix), Size: info.Size(), Used: info.ModTime()}
	if partial {
		f.State = Partial
		locked, err := lockPartial(path, 0)
		if errors.Is(err, ErrBusy) {
			f.State = Filling
		} else if err == nil {
			locked.Close()
		}
		return f, nil
	}
	d, err := openFile(path) // not mapped, as each record is read once
	if err == nil {
		f.About, f.Items, f.Places, f.Bytes = d.set.About, d.kept, d.set.Places, d.bytes
		err = errors.Join(check(d), d.Close())
	}
	f.State = Whole
	if damage := (*DamageError)(nil); errors.As(err, &damage) {
		f.State, f.Reason = Damaged, damage.What
		return f, nil
	}
	return f, err
}

// Remove removes a cache. Whoever reads it at this moment goes on. The error is ErrBusy where one is being filled.
func Remove(path string) error {
	if !strings.HasSuffix(path, partialSuffix) {
		return os.Remove(path)
	}
	f, err := lockPartial(path, 0)
	if err != nil {
		return err
	}
	return errors.Join(os.Remove(path), f.Close())
}

// Sweep removes what processes left in a folder that were ended while they filled caches.
func Sweep(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), partialSuffix) {
			continue
		}
		if err := Remove(filepath.Join(folder, e.Name())); err != nil && !errors.Is(err, ErrBusy) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
