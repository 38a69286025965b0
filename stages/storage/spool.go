package storage

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
)

// spool is a file of a server that sends no parts: it is fetched to a temporary file from the start to the end, and what has come
// can be read.
type spool struct {
	*object
	file *os.File

	mu   sync.Mutex
	have int64         // bytes that have come
	err  error         // io.EOF when all have
	more chan struct{} // closed when have or err changes
	done chan struct{} // closed when nothing more comes
}

func newSpool(o *object, whole *sequential) (File, error) {
	file, err := os.CreateTemp("", "pipectl-*")
	if err != nil {
		return nil, errors.Join(err, whole.Close())
	}
	_ = os.Remove(file.Name()) // where a file that is open can't be removed, Close does it
	s := &spool{object: o, file: file, more: make(chan struct{}), done: make(chan struct{})}
	go s.fetch(whole)
	if o.size < 0 {
		<-s.done
		if s.err != io.EOF {
			return nil, errors.Join(s.err, s.Close())
		}
		o.size = s.have
	}
	return s, nil
}

func (s *spool) fetch(whole *sequential) {
	defer close(s.done)
	defer whole.body.Close()
	buf := make([]byte, 256<<10)
	for err := error(nil); err == nil; {
		var n int
		if n, err = whole.Read(buf); n > 0 {
			if _, e := s.file.WriteAt(buf[:n], s.have); e != nil {
				n, err = 0, failed("read", s.path, e)
			}
		}
		s.mu.Lock()
		s.have, s.err = s.have+int64(n), err
		close(s.more)
		s.more = make(chan struct{})
		s.mu.Unlock()
	}
}

func (s *spool) ReadAt(p []byte, off int64) (int, error) { return s.ReadAtContext(s.ctx, p, off) }

func (s *spool) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	for {
		s.mu.Lock()
		have, err, more := s.have, s.err, s.more
		s.mu.Unlock()
		switch {
		case ctx.Err() != nil || s.ctx.Err() != nil:
			return 0, failed("read", s.path, errors.Join(ctx.Err(), context.Cause(s.ctx)))
		case off+int64(len(p)) <= have || err == io.EOF:
			return s.file.ReadAt(p, off)
		case err != nil:
			return 0, err
		}
		select {
		case <-more:
		case <-ctx.Done():
		case <-s.ctx.Done():
		}
	}
}

func (s *spool) Close() error {
	err := s.object.Close()
	<-s.done
	err = errors.Join(err, s.file.Close())
	_ = os.Remove(s.file.Name())
	return err
}
