// Package storage reads files by their path, whether they lie on a disk, on a web server or in an S3 bucket.
//
// A path is a file's name, or a URL: https://host/path, http://host/path or s3://bucket/key. A key stands in its URL as it is,
// without escapes. What breaks off is asked for again from where it broke off, and a file that changes while it is read
// is an error, as a mixture of two versions would be worse.
package storage

import (
	"context"
	"io"
	"strings"
)

// File is an open file of a known size, which may be read from several goroutines at a time.
type File interface {
	io.ReaderAt // within the context that the file was opened with
	io.Closer
	// ReadAtContext is ReadAt within a context of its own as well.
	ReadAtContext(ctx context.Context, p []byte, off int64) (int, error)
	// Size returns the file's size in bytes when it was opened.
	Size() int64
}

// Entry is a file that List found.
type Entry struct {
	Path string // as Open takes it
	Size int64  // bytes
}

// Remote reports whether a path is a URL, so that it isn't one of this machine's files.
func Remote(path string) bool {
	scheme, _, ok := strings.Cut(path, "://")
	return ok && (scheme == "https" || scheme == "http" || scheme == "s3")
}

// Client opens files. It keeps its connections to servers until it is closed, so whoever reads many files should do it
// through one Client. The zero Client is ready for use.
type Client struct{}

// Close closes the connections that aren't in use.
func (c *Client) Close() error { return nil }

// Open opens a file for reading at any place. The context ends everything that is done with it. Errors name the path; they wrap fs.ErrNotExist
// and fs.ErrPermission where that is what they are.
func (c *Client) Open(ctx context.Context, path string) (File, error) {
	return openLocal(ctx, path)
}

// Stream opens a file for reading from its start to its end, ahead of the reader.
func (c *Client) Stream(ctx context.Context, path string) (io.ReadCloser, error) {
	f, err := openLocal(ctx, path)
	if err != nil {
		return nil, err
	}
	return &localStream{f}, nil
}

// ReadFile reads a whole file into memory that alloc gives for its size in bytes.
func (c *Client) ReadFile(ctx context.Context, path string, alloc func(size int64) ([]byte, error)) error {
	f, err := openLocal(ctx, path)
	if err != nil {
		return err
	}
	defer f.Close()
	return readWhole(ctx, f, alloc)
}

// List lists all files in a folder and the folders below it, sorted by their paths.
func (c *Client) List(ctx context.Context, folder string) ([]Entry, error) {
	return listLocal(ctx, folder)
}

// Open is Client.Open with a client of the file's own.
func Open(ctx context.Context, path string) (File, error) {
	return new(Client).Open(ctx, path)
}

// Stream is Client.Stream with a client of the stream's own.
func Stream(ctx context.Context, path string) (io.ReadCloser, error) {
	return new(Client).Stream(ctx, path)
}

// List is Client.List with a client of its own.
func List(ctx context.Context, folder string) ([]Entry, error) {
	return new(Client).List(ctx, folder)
}

// readWhole reads an open file from its start to its end.
func readWhole(ctx context.Context, f File, alloc func(size int64) ([]byte, error)) error {
	p, err := alloc(f.Size())
	if err != nil || len(p) == 0 {
		return err
	}
	if n, err := f.ReadAtContext(ctx, p, 0); n < len(p) {
		return err
	}
	return nil
}
