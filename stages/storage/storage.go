// Package storage reads files by their path, whether they lie on a disk, on a web server or in an S3 bucket.
//
// A path is a file's name, or a URL: https://host/path, http://host/path or s3://bucket/key. A key stands in its URL as it is,
// without escapes. What breaks off is asked for again from where it broke off, and a file that changes while it is read
// is an error: a mixture of two versions would be worse.
package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
)

// File is an open file of a known size, which may be read from several goroutines at a time.
type File interface {
	io.ReaderAt // within the context that the file was opened in
	io.Closer
	// ReadAtContext is ReadAt within a context of its own as well.
	ReadAtContext(ctx context.Context, p []byte, off int64) (int, error)
	// Size returns the file's size in bytes when it was opened.
	Size() int64
	// Version returns what tells the file's content from any other that is or was there under its path, such as the server's tag;
	// "" where nothing does for certain.
	Version() string
}

// Entry is a file that List found.
type Entry struct {
	Path    string // as Open takes it
	Size    int64  // in bytes
	Version string // as a File's
}

// Remote reports whether a path is a URL, and no name of a file of this machine.
func Remote(path string) bool {
	switch scheme, _, _ := strings.Cut(path, "://"); scheme {
	case "https", "http", "s3":
		return len(scheme) < len(path)
	}
	return false
}

// Client opens files. It keeps its connections to servers for the next file, so whoever reads many files should do it
// through one Client.
type Client struct {
	http *http.Client
	s3   func() (*s3, error)
}

// New returns a Client that reads the settings of S3 from the environment when it first needs them.
func New() *Client {
	c := &Client{http: &http.Client{Transport: newTransport()}}
	c.s3 = sync.OnceValues(func() (*s3, error) { return newS3(c.http) })
	return c
}

// Close closes the connections that no open file is using.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Open opens a file to be read at any place. The context ends whatever is done with it. Errors name the path, without what is
// secret in it; they wrap fs.ErrNotExist and fs.ErrPermission where that is what they are.
//
// From a server that can't send parts of a file the whole file is fetched, to a temporary one: what has come can be read.
func (c *Client) Open(ctx context.Context, path string) (File, error) {
	if !Remote(path) {
		f, err := openLocal(ctx, path)
		if err != nil {
			return nil, err
		}
		return f, nil
	}
	o, whole, err := c.object(ctx, path)
	switch {
	case err != nil:
		return nil, err
	case whole != nil:
		return newSpool(o, whole)
	}
	return o, nil
}

// Stream opens a file to be read from its start to its end, and reads ahead of the reader.
func (c *Client) Stream(ctx context.Context, path string) (io.ReadCloser, error) {
	if !Remote(path) {
		f, err := openLocal(ctx, path)
		if err != nil {
			return nil, err
		}
		return &localStream{f}, nil
	}
	o, whole, err := c.object(ctx, path)
	switch {
	case err != nil:
		return nil, err
	case whole != nil:
		return whole, nil
	}
	return &readAhead{object: o, chunk: firstChunk}, nil
}

// ReadFile reads a whole file into the memory that alloc gives for its size in bytes. It asks the server once, where Open and a
// read ask twice.
func (c *Client) ReadFile(ctx context.Context, path string, alloc func(size int64) ([]byte, error)) error {
	if Remote(path) {
		return c.readObject(ctx, path, alloc)
	}
	f, err := openLocal(ctx, path)
	if err != nil {
		return err
	}
	defer f.Close()
	p, err := alloc(f.size)
	if err != nil {
		return err
	}
	if n, err := f.ReadAt(p, 0); n < len(p) {
		return fmt.Errorf("%s has shrunk from %d bytes to %d while it was read: %w", path, len(p), n, err)
	}
	return nil
}

// List lists all files in a folder and the folders below it, sorted by their paths. A web server has no list: that is
// errors.ErrUnsupported.
func (c *Client) List(ctx context.Context, folder string) ([]Entry, error) {
	switch {
	case !Remote(folder):
		return listLocal(ctx, folder)
	case strings.HasPrefix(folder, "s3://"):
		return c.listS3(ctx, folder, true)
	}
	return nil, failed("list", folder, errUnlisted)
}

// CheckFolder returns the error that List would fail with at its start, without listing all of a large folder on a server.
func (c *Client) CheckFolder(ctx context.Context, folder string) error {
	if strings.HasPrefix(folder, "s3://") {
		_, err := c.listS3(ctx, folder, false)
		return err
	}
	_, err := c.List(ctx, folder)
	return err
}

var errUnlisted = unsupported("a web server doesn't list its files; name them one by one")

// unsupported is an error that is errors.ErrUnsupported.
type unsupported string

func (e unsupported) Error() string        { return string(e) }
func (e unsupported) Is(target error) bool { return target == errors.ErrUnsupported }

// Open is Client.Open with a client of the file's own.
func Open(ctx context.Context, path string) (File, error) {
	c := New()
	f, err := c.Open(ctx, path)
	if err != nil {
		c.Close()
		return nil, err
	}
	return ownedFile{f, c}, nil
}

// Stream is Client.Stream with a client of the stream's own.
func Stream(ctx context.Context, path string) (io.ReadCloser, error) {
	c := New()
	s, err := c.Stream(ctx, path)
	if err != nil {
		c.Close()
		return nil, err
	}
	return ownedStream{s, c}, nil
}

// List is Client.List with a client of its own.
func List(ctx context.Context, folder string) ([]Entry, error) {
	c := New()
	defer c.Close()
	return c.List(ctx, folder)
}

// Stat returns the size and the version of a file without reading it.
func Stat(ctx context.Context, path string) (Entry, error) {
	if !Remote(path) {
		info, err := os.Stat(path)
		if err != nil {
			return Entry{}, err
		}
		return Entry{path, info.Size(), version(info)}, ctx.Err()
	}
	c := New()
	defer c.Close()
	return c.stat(ctx, path)
}

func (c *Client) stat(ctx context.Context, path string) (Entry, error) {
	o, whole, err := c.object(ctx, path)
	if err != nil {
		return Entry{}, err
	}
	defer o.Close()
	if whole != nil {
		defer whole.Close()
	}
	return Entry{path, o.size, o.strong}, nil
}

type ownedFile struct {
	File
	client *Client
}

func (f ownedFile) Close() error {
	defer f.client.Close()
	return f.File.Close()
}

type ownedStream struct {
	io.ReadCloser
	client *Client
}

func (s ownedStream) Close() error {
	defer s.client.Close()
	return s.ReadCloser.Close()
}
