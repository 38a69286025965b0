//go:build unix

package cache

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// lock locks a file for as long as it is open, or the process lives. The error is ErrBusy where another has done so.
func lock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrBusy
		default:
			return err
		}
	}
}

// mapFile maps a file into memory, to be read. It returns nil where that can't be done.
func mapFile(f *os.File) []byte {
	info, err := f.Stat()
	if err != nil || info.Size() > math.MaxInt {
		return nil
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil
	}
	return b
}

func unmapFile(b []byte) error { return unix.Munmap(b) }

// syncFolder puts on the disk what a folder calls its files.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
