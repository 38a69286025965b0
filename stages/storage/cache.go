package storage

import (
	"container/list"
	"context"
	"io"
	"sync"
)

// Cache reads files in chunks, ahead of their readers, and keeps the chunks that were read last. It serves readers of small pieces that lie
// close to each other, though in any order: many of them take one request.
type Cache struct {
	most int // chunks that are kept

	mu      sync.Mutex
	chunks  map[place]*list.Element // of *kept
	recent  list.List               // the last used first
	loading sync.WaitGroup
}

// place is where a chunk is.
type place struct {
	file  *cachedFile
	index int64
}

// kept is a chunk. Its data is there when done is closed.
type kept struct {
	part
	place place
}

const (
	cacheChunk = 4 << 20 // bytes
	cacheAhead = 3       // chunks
)

// NewCache returns a Cache that keeps about so many bytes, and at least what it reads ahead.
func NewCache(size int64) *Cache {
	return &Cache{most: int(max(size/cacheChunk, 2+2*cacheAhead)), chunks: make(map[place]*list.Element)}
}

// File returns a file that reads another one through the cache.
func (c *Cache) File(f File) File { return &cachedFile{f, c} }

// Wait waits until nothing is being read any more. The files must have been closed before.
func (c *Cache) Wait() { c.loading.Wait() }

type cachedFile struct {
	File
	cache *Cache
}

func (f *cachedFile) ReadAt(p []byte, off int64) (int, error) {
	return f.ReadAtContext(context.Background(), p, off)
}

func (f *cachedFile) ReadAtContext(ctx context.Context, p []byte, off int64) (n int, err error) {
	for n < len(p) {
		if off < 0 || off >= f.Size() {
			return n, io.EOF
		}
		at := place{f, off / cacheChunk}
		chunk := f.cache.get(at)
		select {
		case <-chunk.done:
		case <-ctx.Done():
			return n, context.Cause(ctx)
		}
		if chunk.err != nil {
			f.cache.drop(at) // so that the next reader tries again
			return n, chunk.err
		}
		got := copy(p[n:], chunk.data[off-at.index*cacheChunk:])
		n, off = n+got, off+int64(got)
	}
	return n, nil
}

// get returns a chunk, which it and those after it start to be read if they aren't there.
func (c *Cache) get(at place) *kept {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := int64(cacheAhead); i > 0; i-- {
		if next := (place{at.file, at.index + i}); next.index*cacheChunk < at.file.Size() {
			c.touch(next)
		}
	}
	chunk := c.touch(at)
	for c.recent.Len() > c.most {
		oldest := c.recent.Back()
		delete(c.chunks, oldest.Value.(*kept).place)
		c.recent.Remove(oldest)
	}
	return chunk
}

// touch makes a chunk the one that was used last.
func (c *Cache) touch(at place) *kept {
	if e, ok := c.chunks[at]; ok {
		c.recent.MoveToFront(e)
		return e.Value.(*kept)
	}
	start := at.index * cacheChunk
	chunk := &kept{part{done: make(chan struct{})}, at}
	c.chunks[at] = c.recent.PushFront(chunk)
	c.loading.Go(func() {
		defer close(chunk.done)
		chunk.data = make([]byte, min(cacheChunk, at.file.Size()-start))
		if n, err := at.file.File.ReadAt(chunk.data, start); n < len(chunk.data) {
			chunk.err = err
		}
	})
	return chunk
}

// drop forgets a chunk.
func (c *Cache) drop(at place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.chunks[at]; ok {
		delete(c.chunks, at)
		c.recent.Remove(e)
	}
}
