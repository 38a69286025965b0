package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	connections = 32               // to one host at a time
	connecting  = 10 * time.Second // at most
	stall       = 15 * time.Second // without a byte, after which a request is given up
)

// newTransport returns a transport of HTTP/1.1: over HTTP/2 all requests to a host would share one connection's throughput.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: connecting}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialling(dialer.DialContext),
		TLSHandshakeTimeout: connecting,
		DisableCompression:  true, // a range counts a file's own bytes
		MaxConnsPerHost:     connections,
		MaxIdleConnsPerHost: connections,
		IdleConnTimeout:     time.Minute,
		ReadBufferSize:      64 << 10,
	}
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// dialling bounds how long connecting may take at a first look.
func dialling(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if !isFirstLook(ctx) {
			return dial(ctx, network, address)
		}
		ctx, cancel := context.WithTimeout(ctx, firstConnect)
		defer cancel()
		return dial(ctx, network, address)
	}
}

// object is a file on a server that sends parts of files.
type object struct {
	path    string
	do      func(ctx context.Context, h http.Header) (*http.Response, error) // sends one request for the file
	ctx     context.Context
	cancel  context.CancelCauseFunc
	size    int64  // -1 until it is known
	version string // by which a change is noticed while the file is read
	strong  string // the same, where it tells any two contents apart
}

var errClosed = errors.New("the file is closed")

// locate makes the object of a path, before anything is known of it.
func (c *Client) locate(ctx context.Context, path string) (*object, error) {
	o := &object{path: path, size: -1}
	o.ctx, o.cancel = context.WithCancelCause(ctx)
	if strings.HasPrefix(path, "s3://") {
		s, err := c.s3()
		if err != nil {
			return nil, failed("open", path, err)
		}
		bucket, key := splitS3(path)
		if bucket == "" || key == "" {
			return nil, failed("open", path, errors.New("an object's URL is s3://bucket/key"))
		}
		o.do = func(ctx context.Context, h http.Header) (*http.Response, error) {
			return s.do(ctx, bucket, key, nil, h)
		}
		return o, nil
	}
	u, err := url.Parse(path)
	if err != nil || u.Host == "" {
		return nil, failed("open", path, errors.New("not a valid URL"))
	}
	o.do = func(ctx context.Context, h http.Header) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
		if err != nil {
			return nil, err
		}
		req.Header = h
		return c.http.Do(req)
	}
	return o, nil
}

// object finds a file on a server. If the server doesn't send parts of it, it gives the whole as well.
func (c *Client) object(ctx context.Context, path string) (*object, *sequential, error) {
	o, err := c.locate(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	var whole *sequential
	err = retry(ctx, func() (int, error) {
		r, err := o.get(ctx, 0, 1)
		if err != nil {
			return 0, err
		}
		o.size, o.version, o.strong = r.size, r.version, r.strong
		if !r.part {
			whole = &sequential{object: o, body: r.body}
			return 0, nil
		}
		defer r.body.Close()
		if r.size < 0 {
			whole = &sequential{object: o}
			return 0, nil
		}
		_, err = io.CopyN(io.Discard, r.body, min(1, r.size)) // to the end, so that the connection serves again
		return 0, broken(err)
	})
	if err != nil {
		o.cancel(errClosed)
		return nil, nil, failed("open", path, notPattern(path, err))
	}
	return o, whole, nil
}

// notPattern explains why there is no file, where a path on a web server is meant as a pattern.
func notPattern(path string, err error) error {
	name, _, _ := strings.Cut(path, "?")
	if errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(path, "http") && strings.ContainsAny(name, "*[") {
		return unsupported(fmt.Sprintf("%v, and a web server doesn't list its files, so that * and [ match none there; count them out, such as data-{000..127}.tar", err))
	}
	return err
}

func (o *object) Size() int64     { return o.size }
func (o *object) Version() string { return o.strong }

func (o *object) Close() error {
	o.cancel(errClosed)
	return nil
}

func (o *object) ReadAt(p []byte, off int64) (int, error) { return o.ReadAtContext(o.ctx, p, off) }

func (o *object) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, failed("read", o.path, errors.New("negative offset"))
	}
	if off >= o.size && len(p) > 0 {
		return 0, io.EOF
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(o.ctx, func() { cancel(context.Cause(o.ctx)) })()
	n, end := 0, int(min(int64(len(p)), o.size-off))
	err := retry(ctx, func() (int, error) {
		got, err := o.readPart(ctx, p[n:end], off+int64(n))
		n += got
		return got, err
	})
	if err != nil {
		return n, failed("read", o.path, err)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// readPart fills p from off with what one request brings.
func (o *object) readPart(ctx context.Context, p []byte, off int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	r, err := o.get(ctx, off, int64(len(p)))
	if err != nil {
		return 0, err
	}
	defer r.body.Close()
	if _, err := io.CopyN(io.Discard, r.body, off-r.off); err != nil {
		return 0, broken(err)
	}
	n, err := io.ReadFull(r.body, p)
	return n, broken(err)
}

// broken returns the error of reading a reply whose end came too early.
func broken(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return brokenError{errors.New("the server's reply broke off")}
	}
	return err
}

// readObject reads a whole file with one request, and asks for the rest where that breaks off.
func (c *Client) readObject(ctx context.Context, path string, alloc func(size int64) ([]byte, error)) error {
	o, err := c.locate(ctx, path)
	if err != nil {
		return err
	}
	defer o.Close()
	var r *reply
	err = retry(ctx, func() (int, error) {
		r, err = o.get(ctx, 0, -1)
		return 0, err
	})
	if err != nil {
		return failed("open", path, notPattern(path, err))
	}
	o.size, o.version, o.strong = r.size, r.version, r.strong
	s := &sequential{object: o, body: r.body}
	defer s.Close()
	if o.size < 0 {
		all, err := io.ReadAll(s)
		if err != nil {
			return err
		}
		p, err := alloc(int64(len(all)))
		copy(p, all)
		return err
	}
	p, err := alloc(o.size)
	if err != nil {
		return err
	}
	_, err = io.ReadFull(s, p)
	return err
}

// reply is what a server sends of a file.
type reply struct {
	body    io.ReadCloser
	off     int64 // where in the file body starts
	size    int64 // of the whole file; -1 if the server doesn't say
	version string
	strong  string // "" where the server's word leaves open whether other content has the same
	part    bool   // the server sends parts
}

// get asks once for n bytes from off, or for all from there where n is negative. What comes may start before off. A file that is not
// the one that was asked for before is errChanged.
func (o *object) get(ctx context.Context, off, n int64) (*reply, error) {
	h := http.Header{"Accept-Encoding": {"identity"}, "User-Agent": {"pipectl"}}
	switch {
	case n >= 0:
		h.Set("Range", fmt.Sprintf("bytes=%d-%d", off, off+n-1))
	case off > 0:
		h.Set("Range", fmt.Sprintf("bytes=%d-", off))
	}
	if o.strong != "" && h.Get("Range") != "" {
		h.Set("If-Range", o.strong)
	}
	a := newAttempt(ctx)
	resp, err := o.do(a.ctx, h)
	if err != nil {
		err = a.cause(err)
		a.end()
		return nil, err
	}
	r, err := parseReply(resp, off)
	if err == nil && (o.version != "" && r.version != "" && r.version != o.version || o.size >= 0 && r.size >= 0 && r.size != o.size) {
		err = errChanged
	}
	if err != nil {
		a.end()
		resp.Body.Close()
		return nil, err
	}
	a.pause()
	r.body = &body{resp.Body, a}
	return r, nil
}

// parseReply reads the head of the reply to a request for what is at off.
func parseReply(resp *http.Response, off int64) (*reply, error) {
	switch encoding := resp.Header.Get("Content-Encoding"); {
	case resp.StatusCode >= 300:
	case encoding != "" && encoding != "identity" && encoding != "aws-chunked": // which S3 stores though it has undone it
		return nil, fmt.Errorf("the server sends the file compressed (Content-Encoding: %s), though it was asked not to, so that no place in it can be found: have it sent or stored as it is", encoding)
	}
	r := &reply{size: resp.ContentLength}
	r.version, r.strong = validators(resp.Header)
	unit, rest, _ := strings.Cut(resp.Header.Get("Content-Range"), " ")
	span, total, ok := strings.Cut(rest, "/")
	ok = ok && unit == "bytes"
	switch resp.StatusCode {
	case http.StatusOK:
		return r, nil
	case http.StatusPartialContent:
		first, _, _ := strings.Cut(span, "-")
		start, err := strconv.ParseInt(first, 10, 64)
		if !ok || err != nil || start != off {
			return nil, fmt.Errorf("the server was asked for what is at byte %d and sent %q", off, resp.Header.Get("Content-Range"))
		}
		r.off, r.part = off, true
		if r.size, err = strconv.ParseInt(total, 10, 64); err != nil || r.size <= off {
			r.size = -1
		}
		return r, nil
	case http.StatusRequestedRangeNotSatisfiable:
		if off > 0 {
			return nil, errChanged // to fewer bytes
		}
		r.size, r.part = 0, true // as no byte of an empty file can be had
		return r, nil
	}
	return nil, newStatusError(resp)
}

// settled is how much older than the reply the time of a file's last change has to be, so that a change after it has another time.
const settled = time.Minute

// validators returns by what a file's content is told from another, the entity tag or else the time of the last change, and the same where
// it is strong: a tag may say of itself that it is weak, and a time, which counts whole seconds, is strong only where it lies well before the
// reply's. The source is RFC 9110, sections 8.8.1 and 8.8.2.2; how long before is RFC 7232's.
func validators(h http.Header) (version, strong string) {
	tag, modified := h.Get("ETag"), h.Get("Last-Modified")
	at, err := http.ParseTime(modified)
	date, undated := http.ParseTime(h.Get("Date"))
	switch {
	case tag != "" && !strings.HasPrefix(tag, "W/"):
		strong = tag
	case err == nil && undated == nil && date.Sub(at) >= settled:
		strong = modified
	}
	return cmp.Or(tag, modified), strong
}

// sequential reads a file from its start to its end. It asks again where that breaks off.
type sequential struct {
	*object
	body io.ReadCloser // nil where it has broken off
	pos  int64
}

func (s *sequential) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	end := false
	err = retry(s.ctx, func() (int, error) {
		if err := s.reopen(); err != nil {
			return 0, err
		}
		n, err = s.body.Read(p)
		s.pos += int64(n)
		switch {
		case n > 0:
			return n, nil
		case err == nil:
			return 0, brokenError{io.ErrNoProgress}
		case err == io.EOF && (s.size < 0 || s.pos >= s.size):
			end = true
			return 0, nil
		}
		s.body.Close()
		s.body = nil
		return 0, broken(err)
	})
	if err != nil {
		return 0, failed("read", s.path, err)
	}
	if end {
		return 0, io.EOF
	}
	return n, nil
}

// reopen asks for the rest of the file where it has broken off.
func (s *sequential) reopen() error {
	if s.body != nil {
		return nil
	}
	r, err := s.get(s.ctx, s.pos, -1)
	if err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, r.body, s.pos-r.off); err != nil {
		r.body.Close()
		return broken(err)
	}
	s.body = r.body
	return nil
}

func (s *sequential) Close() error {
	if s.body != nil {
		s.body.Close()
		s.body = nil
	}
	return s.object.Close()
}

// attempt is one request, which is given up where nothing comes for a while.
type attempt struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func newAttempt(ctx context.Context) *attempt {
	a := new(attempt)
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	a.timer = time.AfterFunc(stall, func() { a.cancel(errStalled) })
	return a
}

func (a *attempt) resume() { a.timer.Reset(stall) }
func (a *attempt) pause()  { a.timer.Stop() }

func (a *attempt) end() {
	a.timer.Stop()
	a.cancel(errClosed)
}

// cause returns why the attempt failed with err, without the URL, which may hold secrets.
func (a *attempt) cause(err error) error {
	if a.ctx.Err() != nil {
		return context.Cause(a.ctx)
	}
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return u.Err
	}
	return err
}

// body is a reply's body, read within its attempt.
type body struct {
	io.ReadCloser
	attempt *attempt
}

func (b *body) Read(p []byte) (int, error) {
	b.attempt.resume()
	n, err := b.ReadCloser.Read(p)
	b.attempt.pause()
	if err != nil && err != io.EOF {
		if err = b.attempt.cause(err); b.attempt.ctx.Err() == nil {
			err = brokenError{err}
		}
	}
	return n, err
}

func (b *body) Close() error {
	b.attempt.end()
	return b.ReadCloser.Close()
}
