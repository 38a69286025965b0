package stages

import (
	"context"
	"time"
)

// exactKey marks a context whose waits are to be exact.
type exactKey struct{}

// WithExactWaits returns a context with which a Waiter uses the kernel's timers rather than Go's. Go's wake up to a
// millisecond late while a program is otherwise idle, and by how much depends on the time asked for: waits of 2.2 ms and
// of 2.9 ms both come to 3 ms. It is for programs that run in real time: package testing/synctest knows only Go's timers.
func WithExactWaits(ctx context.Context) context.Context {
	return context.WithValue(ctx, exactKey{}, true)
}

// Waiter waits without taking CPU, again and again on one timer. The zero Waiter is ready for use by one goroutine at a
// time. Close frees what it holds.
type Waiter struct {
	timer *time.Timer
	exact *exactTimer // nil until it is used
	ctx   context.Context
	tells bool // ctx asks for exact waits
}

// Wait returns after d, or before with the context's error once ctx is done.
func (w *Waiter) Wait(ctx context.Context, d time.Duration) error {
	if d <= 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	if ctx != w.ctx {
		w.ctx, w.tells = ctx, ctx.Value(exactKey{}) != nil
		if w.tells && w.exact == nil {
			w.exact = newExactTimer()
		}
		if w.exact != nil {
			w.exact.watch(ctx)
		}
	}
	if w.tells && w.exact != nil {
		return w.exact.wait(ctx, d)
	}
	if w.timer == nil {
		w.timer = time.NewTimer(d)
	} else {
		w.timer.Reset(d)
	}
	select {
	case <-w.timer.C:
		return nil
	case <-ctx.Done():
		w.timer.Stop()
		return ctx.Err()
	}
}

// Close frees the kernel's timer, if there is one. The Waiter can be used again.
func (w *Waiter) Close() error {
	w.ctx = nil
	if w.exact == nil {
		return nil
	}
	t := w.exact
	w.exact = nil
	return t.close()
}
