//go:build cuda

package cuda

import (
	"context"
	"errors"
	"sync"
	"time"

	"gorgonia.org/cu"
)

// event is a stretch of work on a stream, timed by the GPU's clock: what lies between begin and finish.
type event struct {
	d          *Device
	what       string // as the object of "waiting for"
	start, end cu.Event
	owned      bool // the driver's events stay the owner's, which calls recycle
	wait       sync.Once
	done       chan struct{}
	err        error         // of the work; set when done is closed
	elapsed    time.Duration // set when done is closed without an error
}

// eventPool holds the driver's events that no work uses.
type eventPool struct {
	mu        sync.Mutex
	all, idle []cu.Event
}

// begin marks the start of work on s. Called on a thread of the device.
func (d *Device) begin(what string, s cu.Stream) (*event, error) {
	e := &event{d: d, what: what, done: make(chan struct{})}
	var err error
	if e.start, err = d.events.take(); err != nil {
		return nil, err
	}
	if e.end, err = d.events.take(); err != nil {
		d.events.put(e.start)
		return nil, err
	}
	if err := e.start.Record(s); err != nil {
		e.recycle()
		return nil, failed(err, "marking the start of "+what)
	}
	return e, nil
}

// finish marks the end of the work. Called on the thread that called begin.
func (e *event) finish(s cu.Stream) error {
	return failed(e.end.Record(s), "marking the end of "+e.what)
}

// recycle gives the driver's events back.
func (e *event) recycle() { e.d.events.put(e.start, e.end) }

// Wait returns when the work is done, with the error that the driver has for it. An event that nobody waits for holds on to
// its two events of the driver until Close.
func (e *event) Wait(ctx context.Context) error {
	e.wait.Do(e.watch)
	select {
	case <-e.done:
		return e.err
	default:
	}
	select {
	case <-e.done:
		return e.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Elapsed returns how long the work took by the GPU's clock.
func (e *event) Elapsed() (time.Duration, bool) {
	e.wait.Do(e.watch)
	select {
	case <-e.done:
		return e.elapsed, e.err == nil
	default:
		return 0, false
	}
}

// watch lets a thread of its own wait for the work: the others go on giving work to the GPU.
func (e *event) watch() {
	d := e.d
	t, err := d.takeWaiter()
	if err != nil {
		e.err = err
		close(e.done)
		return
	}
	go func() {
		defer d.waiting.Done()
		e.err = d.on(t, func() error {
			if err := e.end.Synchronize(); err != nil {
				return failed(err, "waiting for "+e.what)
			}
			ms, err := e.start.Elapsed(e.end)
			e.elapsed = time.Duration(ms * float64(time.Millisecond))
			return failed(err, "reading the time of "+e.what)
		})
		if !e.owned {
			e.recycle()
		}
		d.putWaiter(t)
		close(e.done)
	}()
}

// takeWaiter returns a thread to wait on. Close waits until it is put back and waiting is told.
func (d *Device) takeWaiter() (*thread, error) {
	d.mu.Lock()
	if d.lost != nil {
		defer d.mu.Unlock()
		return nil, d.lost
	}
	d.waiting.Add(1)
	if n := len(d.waiters); n > 0 {
		t := d.waiters[n-1]
		d.waiters = d.waiters[:n-1]
		d.mu.Unlock()
		return t, nil
	}
	d.mu.Unlock()
	t := newThread()
	if err := d.on(t, func() error { return failed(cu.SetCurrentContext(d.context), "making the context current") }); err != nil {
		t.end()
		d.waiting.Done()
		return nil, err
	}
	return t, nil
}

func (d *Device) putWaiter(t *thread) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiters = append(d.waiters, t)
}

// take returns an event of the driver. Called on a thread of the device.
func (p *eventPool) take() (cu.Event, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		e := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return e, nil
	}
	// Whoever waits sleeps: the processor is the input pipeline's.
	e, err := cu.MakeEvent(cu.BlockingSyncEvent)
	if err != nil {
		return e, failed(err, "making an event")
	}
	p.all = append(p.all, e)
	return e, nil
}

func (p *eventPool) put(events ...cu.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, events...)
}

// free destroys all events. Called on the main thread.
func (p *eventPool) free() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, e := range p.all {
		errs = append(errs, failed(cu.DestroyEvent(&e), "freeing an event"))
	}
	p.all, p.idle = nil, nil
	return errors.Join(errs...)
}
