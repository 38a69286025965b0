package storage

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// pipes is a listener whose connections are pipes in memory, so that a server and its clients run in virtual time.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
	dialled  atomic.Int64
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	p.dialled.Add(1)
	client, server := net.Pipe()
	select {
	case p.accepted <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// serve runs a server until the test ends, and returns a client all of whose connections lead to it.
func serve(t *testing.T, h http.HandlerFunc) *Client {
	c, _ := servePipes(t, h)
	return c
}

func servePipes(t *testing.T, h http.HandlerFunc) (*Client, *pipes) {
	p := &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: h}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(p)
	}()
	c := New()
	c.http.Transport.(*http.Transport).DialContext = p.dial
	t.Cleanup(func() {
		c.Close()
		server.Close()
		<-ended
	})
	return c, p
}

// fault is what a server does instead of sending a file.
type fault struct {
	status     int    // sent alone
	retryAfter string // with it
	cut        int    // bytes after which the reply breaks off
	stall      bool   // it doesn't break off, but nothing more comes
}

// site serves one file, with a fault in each of the first requests.
type site struct {
	mu       sync.Mutex
	data     []byte
	tag      string
	noRanges bool
	noSize   bool
	faults   []fault
	requests []string // their ranges
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Header.Get("Range"))
	var f fault
	if len(s.faults) > 0 {
		f, s.faults = s.faults[0], s.faults[1:]
	}
	data, tag := s.data, s.tag
	s.mu.Unlock()
	if f.status != 0 {
		if f.retryAfter != "" {
			w.Header().Set("Retry-After", f.retryAfter)
		}
		w.WriteHeader(f.status)
		return
	}
	if f.cut > 0 || f.stall {
		w = &breaking{w, r.Context(), f}
	}
	if tag != "" {
		w.Header().Set("ETag", tag)
	}
	switch {
	case s.noSize:
		w.(http.Flusher).Flush()
		_, _ = w.Write(data)
	case s.noRanges:
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = w.Write(data)
	default:
		http.ServeContent(w, r, "file.bin", time.Time{}, bytes.NewReader(data))
	}
}

// breaking is a reply that breaks off or stalls after some bytes.
type breaking struct {
	http.ResponseWriter
	ctx   context.Context
	fault fault
}

func (b *breaking) Flush() { b.ResponseWriter.(http.Flusher).Flush() }

func (b *breaking) Write(p []byte) (int, error) {
	if len(p) < b.fault.cut {
		b.fault.cut -= len(p)
		return b.ResponseWriter.Write(p)
	}
	_, _ = b.ResponseWriter.Write(p[:b.fault.cut])
	b.Flush()
	if b.fault.stall {
		<-b.ctx.Done()
	}
	panic(http.ErrAbortHandler)
}
