package storage

import (
	"context"
	"io"
)

const (
	firstChunk = 256 << 10 // bytes that a stream asks for first
	mostChunk  = 4 << 20   // and later
	chunks     = 4         // under way
)

// readAhead reads an object from its start to its end, in chunks that it asks for ahead of its reader: several at a time, as one
// connection seldom brings what a server can give, and none that a slow reader keeps from others.
type readAhead struct {
	*object
	chunk  int     // the size of the next chunk
	next   int64   // where it starts
	queue  []*part // asked for
	first  *part   // being read
	unread []byte  // of first
}

// part is a chunk of a file. Its data is there when done is closed.
type part struct {
	data []byte
	err  error
	done chan struct{}
}

func (r *readAhead) Read(p []byte) (int, error) {
	for len(r.unread) == 0 && len(p) > 0 {
		r.ask()
		if len(r.queue) == 0 {
			return 0, io.EOF
		}
		first := r.queue[0]
		select {
		case <-first.done:
		case <-r.ctx.Done():
			return 0, failed("read", r.path, context.Cause(r.ctx))
		}
		if first.err != nil {
			return 0, first.err
		}
		r.queue = r.queue[1:]
		r.first, r.unread = first, first.data
	}
	n := copy(p, r.unread)
	r.unread = r.unread[n:]
	return n, nil
}

// ask asks for the next chunks. The first reuses the memory of the one that has been read.
func (r *readAhead) ask() {
	for len(r.queue) < chunks && r.next < r.size {
		n := int(min(int64(r.chunk), r.size-r.next))
		p := &part{done: make(chan struct{})}
		if r.first != nil && cap(r.first.data) >= n {
			p.data = r.first.data[:n]
		} else {
			p.data = make([]byte, n)
		}
		r.first = nil
		go func(off int64) {
			defer close(p.done)
			_, p.err = r.ReadAt(p.data, off)
		}(r.next)
		r.queue = append(r.queue, p)
		r.next += int64(n)
		r.chunk = min(2*r.chunk, mostChunk)
	}
}

func (r *readAhead) Close() error {
	err := r.object.Close()
	for _, p := range r.queue {
		<-p.done
	}
	return err
}
