package python

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// grace is how long a cancelled call is given to end by itself, as the work of a stage in Go would.
	grace = 200 * time.Millisecond
	// exitTime is how long a process whose connection is closed takes at most until it has ended.
	exitTime = 500 * time.Millisecond
	// maxFrame is the most bytes of a control message: they hold no data.
	maxFrame = 64 << 20
	// socketRoom is how many bytes a socket takes at least.
	socketRoom = 32 << 10
)

var (
	errGone = errors.New("the process is gone")
	errLate = errors.New("the call took too long")
	// errClosed is errGone of a process that is still there.
	errClosed = errors.New("the process closed its connection")
)

// channel is the control connection to a process: requests and replies in turn, each a frame of a length (uint32, little endian) and
// so many bytes.
type channel struct {
	conn  *net.UnixConn
	buf   []byte // what was read: buf[start:end]
	start int
	end   int
	owed  int // replies to calls that were cancelled, which are dropped when they come
}

// frame begins a frame in buf, which is reused.
func frame(buf []byte) []byte { return append(buf[:0], 0, 0, 0, 0) }

// call sends a frame that frame began, and files with it, and returns the reply, which holds until the next call. timeout 0 is none.
// Where ctx ends first the call's reply is dropped when it comes, before that of the next call.
func (c *channel) call(ctx context.Context, timeout time.Duration, f []byte, files ...*os.File) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for ; c.owed > 0; c.owed-- {
		if _, err := c.reply(ctx, timeout); err != nil {
			return nil, err
		}
	}
	binary.LittleEndian.PutUint32(f, uint32(len(f)-4))
	if err := c.send(timeout, f, files); err != nil {
		return nil, err
	}
	body, err := c.reply(ctx, timeout)
	if err != nil && ctx.Err() != nil {
		c.owed++
	}
	return body, err
}

func (c *channel) send(timeout time.Duration, f []byte, files []*os.File) error {
	var err error
	if len(f) > socketRoom { // what is shorter finds room, since the process has taken all that came before
		err = c.conn.SetWriteDeadline(deadline(timeout))
		defer c.conn.SetWriteDeadline(time.Time{}) // it fails only where the connection is closed
	}
	if err == nil && len(files) > 0 {
		err = sendFiles(c.conn, f, files)
	} else if err == nil {
		_, err = c.conn.Write(f)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errLate
	case err != nil:
		return errGone
	}
	return nil
}

func deadline(timeout time.Duration) time.Time {
	if timeout == 0 {
		return time.Time{}
	}
	return time.Now().Add(timeout)
}

// reply waits for the next frame.
func (c *channel) reply(ctx context.Context, timeout time.Duration) ([]byte, error) {
	if err := c.conn.SetReadDeadline(deadline(timeout)); err != nil {
		return nil, errGone
	}
	if ctx.Done() != nil {
		var cancelled sync.WaitGroup
		cancelled.Add(1)
		stop := context.AfterFunc(ctx, func() {
			defer cancelled.Done()
			c.conn.SetReadDeadline(time.Now().Add(grace)) // it fails only where reading does
		})
		defer func() {
			if !stop() {
				cancelled.Wait()
			}
		}()
	}
	body, err := c.read()
	switch {
	case err == nil:
		return body, nil
	case errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errLate
	case errors.Is(err, errFrame):
		return nil, err
	}
	return nil, errGone
}

// read reads a frame. What it has read of one when a deadline passes it keeps for the next call.
func (c *channel) read() ([]byte, error) {
	need := 4
	for {
		if c.end-c.start >= 4 {
			n := binary.LittleEndian.Uint32(c.buf[c.start:])
			if n > maxFrame {
				return nil, errFrame
			}
			need = 4 + int(n)
		}
		if c.end-c.start >= need {
			break
		}
		copy(c.buf, c.buf[c.start:c.end])
		c.start, c.end = 0, c.end-c.start
		if len(c.buf) < need {
			c.buf = append(c.buf, make([]byte, max(need, 4096)-len(c.buf))...)
		}
		n, err := c.conn.Read(c.buf[c.end:])
		c.end += n
		if n == 0 {
			if err == nil {
				err = io.ErrNoProgress
			}
			return nil, fmt.Errorf("reading a reply: %w", err)
		}
	}
	body := c.buf[c.start+4 : c.start+need]
	c.start += need
	return body, nil
}

func (c *channel) close() { c.conn.Close() } // of a socket, nothing to flush
