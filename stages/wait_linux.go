package stages

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// exactTimer waits on a timer of the kernel's, through a file that Go's poller watches, so that a waiting goroutine
// holds no thread. It wakes up within about a tenth of a millisecond.
type exactTimer struct {
	file *os.File
	stop func() bool // ends the watch on the last context
}

// newExactTimer returns nil where the kernel has none to give.
func newExactTimer() *exactTimer {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil
	}
	return &exactTimer{file: os.NewFile(uintptr(fd), "timerfd")}
}

// watch has the waits that follow end when ctx does.
func (t *exactTimer) watch(ctx context.Context) {
	if t.stop != nil {
		t.stop()
	}
	t.file.SetReadDeadline(time.Time{})
	t.stop = context.AfterFunc(ctx, func() { t.file.SetReadDeadline(time.Unix(1, 0)) })
}

// wait returns after d, or with ctx's error before; ctx is the one that is watched.
func (t *exactTimer) wait(ctx context.Context, d time.Duration) error {
	var fd error
	conn, err := t.file.SyscallConn()
	if err == nil {
		err = conn.Control(func(n uintptr) {
			fd = unix.TimerfdSettime(int(n), 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil)
		})
	}
	if err != nil || fd != nil {
		return firstError(err, fd)
	}
	for {
		var expired [8]byte
		_, err := t.file.Read(expired[:])
		if err == nil {
			return nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return firstError(ctx.Err(), err)
		}
		// The deadline may be the late word of a context before. If it is this one's, its error was set first.
		t.file.SetReadDeadline(time.Time{})
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *exactTimer) close() error {
	if t.stop != nil {
		t.stop()
	}
	return t.file.Close()
}
