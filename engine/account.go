package engine

import (
	"sync"
	"time"

	"github.com/pipectl/pipectl/stages"
)

// state is what a worker does.
type state uint8

const (
	busy      state = iota
	waitIn          // for input
	waitOut         // for room in the queue behind it
	elsewhere       // in another process, which tells afterwards what it did
	gone            // it has ended: nothing
	states
)

// clock accounts one worker's time. The worker tells it when what it does changes; anyone may read it, and then the
// state that goes on counts up to that moment. So the sums over an interval are exact, however long an item takes.
type clock struct {
	mu    sync.Mutex
	start time.Time
	since time.Duration
	state state
	spent [states]time.Duration
	// split is how the busy time falls to the stages of the worker's segment, as far as it was timed: all of it where items
	// are slow, one of many items where they are fast.
	split []time.Duration
	items []int64 // each stage's
	timed int64   // of the first stage's items, how many a device's own clock timed the stages of: then split is its word
}

func newClock(start time.Time, tasks int) *clock {
	return &clock{start: start, since: time.Since(start), split: make([]time.Duration, tasks), items: make([]int64, tasks)}
}

// newLedger returns the clock of a worker in another process.
func newLedger(start time.Time, tasks int) *clock {
	c := newClock(start, tasks)
	c.state = elsewhere
	return c
}

// book adds what the worker did in another process.
func (c *clock) book(w stages.PoolWork) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, d := range w.Busy {
		c.split[i] += d
		c.items[i] += w.Items[i]
		c.spent[busy] += d
	}
	c.spent[waitOut] += w.Wait
}

// enter says that from now on the worker does s, and returns the time since the run's start.
func (c *clock) enter(s state) time.Duration {
	now := time.Since(c.start)
	c.mu.Lock()
	c.spent[c.state] += now - c.since
	c.since, c.state = now, s
	c.mu.Unlock()
	return now
}

// add counts each stage's items, and the part of the busy time that was seen to be its own, and clears both. A device's clock
// timed so many of the items.
func (c *clock) add(items []int64, split []time.Duration, timed int64) {
	c.mu.Lock()
	c.timed += timed
	for i := range items {
		c.items[i] += items[i]
		c.split[i] += split[i]
		items[i], split[i] = 0, 0
	}
	c.mu.Unlock()
}

// made returns how many items the worker was done with: its last stage, or so many last ones that share the items.
func (c *clock) made(stages int) (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, items := range c.items[len(c.items)-stages:] {
		n += items
	}
	return n
}

// reading is what a clock shows at one moment.
type reading struct {
	spent [states]time.Duration
	split []time.Duration
	items []int64
	timed int64
}

// zero returns what the clock showed at the start.
func (c *clock) zero() reading {
	return reading{split: make([]time.Duration, len(c.split)), items: make([]int64, len(c.items))}
}

func (c *clock) read() reading {
	now := time.Since(c.start)
	c.mu.Lock()
	defer c.mu.Unlock()
	r := reading{spent: c.spent, split: append([]time.Duration(nil), c.split...), items: append([]int64(nil), c.items...), timed: c.timed}
	r.spent[c.state] += now - c.since
	return r
}

// sub returns the difference between two readings of one clock.
func (r reading) sub(o reading) reading {
	d := reading{split: make([]time.Duration, len(r.split)), items: make([]int64, len(r.items)), timed: r.timed - o.timed}
	for i := range r.spent {
		d.spent[i] = r.spent[i] - o.spent[i]
	}
	for i := range r.split {
		d.split[i] = r.split[i] - o.split[i]
		d.items[i] = r.items[i] - o.items[i]
	}
	return d
}

// byDevice takes the device's word for how long it worked, up to most, where its clock timed all items. In the rest of its busy
// time the worker was in another state.
func (r *reading) byDevice(most time.Duration, rest state) {
	if r.timed == 0 || r.timed != r.items[0] {
		return
	}
	var worked time.Duration
	for _, d := range r.split {
		worked += d
	}
	worked = min(worked, most)
	r.spent[rest] = max(r.spent[rest]+r.spent[busy]-worked, 0)
	r.spent[busy] = worked
}

// charge adds what one worker did in an interval to the accounts of its segment's stages.
func (r reading) charge(accounts []Account) {
	var timed time.Duration
	for _, d := range r.split {
		timed += d
	}
	for i := range accounts {
		accounts[i].Items += r.items[i]
		switch {
		case len(accounts) == 1:
			accounts[i].Busy += r.spent[busy]
		case timed > 0:
			accounts[i].Busy += time.Duration(float64(r.spent[busy]) * float64(r.split[i]) / float64(timed))
		case i == 0: // nothing ended in the interval: the segment was at work on something
			accounts[i].Busy += r.spent[busy]
		}
	}
	accounts[0].WaitIn += r.spent[waitIn]
	accounts[len(accounts)-1].WaitOut += r.spent[waitOut]
}
