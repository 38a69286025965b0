package storage

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// local is a file of this machine.
type local struct {
	ctx     context.Context
	file    *os.File
	size    int64
	version string
}

func openLocal(ctx context.Context, path string) (*local, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	info, err := os.Stat(path) // first, as to open a pipe would wait for a writer
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &local{ctx, f, info.Size(), version(info)}, nil
}

// version returns the time of a file's last change, and what tells the file from another of the same time.
func version(info fs.FileInfo) string {
	return info.ModTime().UTC().Format(time.RFC3339Nano) + identity(info)
}

func (f *local) Size() int64     { return f.size }
func (f *local) Version() string { return f.version }
func (f *local) Close() error    { return f.file.Close() }

func (f *local) ReadAt(p []byte, off int64) (int, error) { return f.ReadAtContext(f.ctx, p, off) }

func (f *local) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	if err := cmp.Or(ctx.Err(), f.ctx.Err()); err != nil {
		return 0, err
	}
	return f.file.ReadAt(p, off)
}

// localStream reads from the start to the end. The operating system reads ahead.
type localStream struct{ *local }

func (s *localStream) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.file.Read(p)
}

// listLocal follows links to files, but none to folders below the first, so that it comes to an end.
func listLocal(ctx context.Context, folder string) ([]Entry, error) {
	info, err := os.Stat(folder)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "list", Path: folder, Err: errors.New("not a folder")}
	}
	var entries []Entry
	err = fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || d.IsDir() {
			return err
		}
		path := filepath.Join(folder, filepath.FromSlash(name))
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a link that leads nowhere, or a file that has gone
		}
		if err == nil && info.Mode().IsRegular() {
			entries = append(entries, Entry{path, info.Size(), version(info)})
		}
		return err
	})
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	return entries, err
}
