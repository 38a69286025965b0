package results

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A run that goes on holds a lock on a file of its own, in a folder beside the database. The kernel drops the lock when
// the process ends, however it ends, so that a run whose lock is free is known to be over: unlike a stored process id,
// a lock is never taken over by another process, and it holds across containers that share the folder. Where a file
// system can't lock, SQLite can't work either.

// lockPath returns the path of a run's file, or that of the folder where id is "". Who makes the folder has made the database.
func (s *Store) lockPath(id string) string { return filepath.Join(s.file+"-running", id) }

// lock takes the lock of a run that is about to be stored.
func (s *Store) lock(id string) (*os.File, error) {
	path := s.lockPath(id)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return f, nil
}

// alive reports whether a run that is stored as running goes on, or can't be known not to.
func (s *Store) alive(id string) bool {
	f, err := os.Open(s.lockPath(id))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil
}

// sweep removes the lock files of runs that are over. It is called within a transaction that writes: then no other
// process is between making its file and locking it.
func (s *Store) sweep() {
	files, _ := os.ReadDir(s.lockPath(""))
	for _, f := range files {
		if !s.alive(f.Name()) {
			os.Remove(s.lockPath(f.Name()))
		}
	}
}
