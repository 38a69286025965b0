package storage

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	tries      = 8                      // without getting further
	firstDelay = 100 * time.Millisecond // doubled from try to try: 13 s in all at most
	mostDelay  = time.Minute            // that a server may ask for
	further    = 64 << 10               // bytes that count as getting further, so that a trickle comes to an end

	firstTries   = 3               // of a server that can't be reached at all, at a first look: 0.3 s in all at most
	firstConnect = 2 * time.Second // that connecting may take then
)

type firstLook struct{}

// FirstLook returns a context in which a server that can't be reached is given up after a moment. Before anything runs a wrong address is likelier
// than a broken network, and nothing is lost yet.
func FirstLook(ctx context.Context) context.Context {
	return context.WithValue(ctx, firstLook{}, true)
}

func isFirstLook(ctx context.Context) bool { return ctx.Value(firstLook{}) != nil }

// unreachable reports whether no connection to a server, or to the proxy before it, came about.
func unreachable(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect")
}

// retry calls f until it succeeds or fails for good. f returns how many bytes it got. Where the context ends it, the error says what it
// tried again for.
func retry(ctx context.Context, f func() (int, error)) error {
	var last error
	ended := func() error {
		if last == nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%w: %w", context.Cause(ctx), last)
	}
	for failures := 0; ; {
		n, err := f()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ended()
		case !transient(err):
			return err
		case n >= further:
			failures = 0
		}
		failures++
		if isFirstLook(ctx) && unreachable(err) && (failures == firstTries || isTimeout(err)) {
			return fmt.Errorf("the server can't be reached: %w", err)
		}
		if failures == tries {
			return fmt.Errorf("%w, after %d tries", err, tries)
		}
		delay := firstDelay << (failures - 1)
		delay = delay/2 + time.Duration(rand.Int64N(int64(delay/2))) // so that many readers don't come back all at once
		if status := (*statusError)(nil); errors.As(err, &status) && status.after > 0 {
			if status.after > mostDelay {
				return fmt.Errorf("%w, and the server asks to wait for %s", err, status.after)
			}
			delay = max(delay, status.after)
		}
		last = err
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ended()
		}
	}
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}

// transient reports whether it may help to try again.
func transient(err error) bool {
	if status := (*statusError)(nil); errors.As(err, &status) {
		switch status.status {
		case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
			http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	if broken := (brokenError{}); errors.As(err, &broken) || errors.Is(err, errStalled) {
		return true
	}
	var (
		name        *net.DNSError
		certificate *tls.CertificateVerificationError
		network     net.Error
	)
	switch {
	case errors.As(err, &name):
		return !name.IsNotFound
	case errors.As(err, &certificate):
		return false
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network)
}

var (
	errStalled = errors.New("the server has sent nothing for " + stall.String())
	errChanged = errors.New("the file has changed while it was read")
)

// brokenError is what ends a reply before its end.
type brokenError struct{ error }

func (e brokenError) Unwrap() error { return e.error }

// statusError is a reply that says that there is no file to be had.
type statusError struct {
	status  int
	message string        // "" or what S3 says about it
	after   time.Duration // how long the server asks to wait
}

func newStatusError(resp *http.Response) *statusError {
	e := &statusError{status: resp.StatusCode}
	after := resp.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(after); err == nil {
		e.after = time.Duration(min(seconds, int(time.Hour/time.Second))) * time.Second
	} else if t, err := http.ParseTime(after); err == nil {
		e.after = time.Until(t)
	}
	return e
}

func (e *statusError) Error() string {
	text := strconv.Itoa(e.status)
	if t := http.StatusText(e.status); t != "" {
		text += " " + t
	}
	if e.message != "" {
		text += ": " + e.message
	}
	return text
}

func (e *statusError) Is(target error) bool {
	switch e.status {
	case http.StatusNotFound, http.StatusGone:
		return target == fs.ErrNotExist
	case http.StatusUnauthorized, http.StatusForbidden:
		return target == fs.ErrPermission
	}
	return false
}

// failed adds the path to an error, which may be nil.
func failed(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: Redacted(path), Err: err}
}
