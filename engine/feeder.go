package engine

import (
	"sync"

	"github.com/pipectl/pipectl/engine/cache"
	"github.com/pipectl/pipectl/stages"
)

// feeder deals out a run's items in their order to the workers of its first segment. It deals no item whose batch is
// too far ahead of the one that the step eats: so every item that is under way has its slot, and a slow item can hold
// its followers up but never lock them in.
type feeder struct {
	layout layout
	order  indexer       // of the source's items; nil where items come from a cache
	cache  *cache.Memory // nil where they come from the source
	ahead  int           // how many places further down a disk's records may be fetched from; 0: there is none

	mu     sync.Mutex
	room   sync.Cond
	next   int64
	limit  int64 // the first item that may not be dealt yet
	end    int64 // the first item that is not wanted; -1: there is no end
	closed bool
}

// indexer maps the places of an epoch to the source's items. Epochs are asked for one after the other.
type indexer interface{ index(epoch, pos int) int }

func newFeeder(l layout, start, end, limit int64) *feeder {
	f := &feeder{layout: l, next: start, limit: limit, end: end}
	f.room.L = &f.mu
	return f
}

// pop moves up to len(buf) items into buf, waiting until the first may be dealt. It returns 0 after the last.
func (f *feeder) pop(buf []item, c *clock) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	ended := func() bool { return f.closed || f.end >= 0 && f.next >= f.end }
	if f.next >= f.limit && !ended() {
		// The pipeline is full: that is waiting to hand over, although nothing was made yet.
		c.enter(waitOut)
		for f.next >= f.limit && !ended() {
			f.room.Wait()
		}
		c.enter(busy)
	}
	if ended() {
		return 0
	}
	last := f.limit
	if f.end >= 0 {
		last = min(last, f.end)
	}
	n := int(min(int64(len(buf)), last-f.next))
	epoch, pos := int(f.next/int64(f.layout.epoch)), int(f.next%int64(f.layout.epoch))
	for i := range n {
		f.deal(&buf[i], epoch, pos)
		f.next++
		if pos++; pos == f.layout.epoch {
			epoch, pos = epoch+1, 0
		}
	}
	return n
}

// deal makes it the next item, which is at a place of an epoch.
func (f *feeder) deal(it *item, epoch, pos int) {
	*it = item{Item: stages.Item{Seq: f.next, Epoch: epoch}}
	if f.cache == nil {
		it.Index = f.order.index(epoch, pos)
		if f.ahead > 0 && pos+f.ahead < f.layout.epoch {
			it.ahead = f.order.index(epoch, pos+f.ahead) + 1
		}
		return
	}
	it.take(f.cache.Get(pos))
}

// take makes the item the one that a cache holds; its place in the run and its epoch stay.
func (it *item) take(e *cache.Entry) {
	it.Index, it.Label, it.skip, it.made = e.Item.Index, e.Item.Label, e.Skipped, int32(e.Made)
	it.el, it.buf = &e.Element, nil
}

// allow lets items up to limit be dealt.
func (f *feeder) allow(limit int64) {
	f.mu.Lock()
	f.limit = limit
	f.mu.Unlock()
	f.room.Broadcast()
}

// close ends all waits: the run is over.
func (f *feeder) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.room.Broadcast()
}
