package engine

import (
	"slices"
	"sync"
)

// placed is a value with a place in the order of all: an item of the stream, or a batch.
type placed interface{ place() int64 }

// queue is a bounded queue between two pools of workers, who hand over several values at a time where items are cheap.
// It hands out what comes first in the order of all, so that a value whose worker was late overtakes those that overtook it:
// else those behind would be at work on what isn't needed yet, while the step waits for the one that is.
// A wait is entered in the waiting worker's clock, so that a hand-over without a wait reads no time.
type queue[T placed] struct {
	mu       sync.Mutex
	readable sync.Cond
	waiting  []*producer // for room
	spare    []*producer
	ring     []T
	head, n  int
	newest   int64 // place of the last in the order of all that came so far
	writers  int   // producers that haven't ended
	closed   bool  // the run is over: nothing more is wanted

	// How many pushes there were, and how many values they found in the queue, for its mean occupancy.
	pushes, found int64
}

// producer is one that waits for room.
type producer struct {
	place int64 // of its next value
	room  sync.Cond
}

func newQueue[T placed](capacity, writers int) *queue[T] {
	q := &queue[T]{ring: make([]T, capacity), writers: writers}
	q.readable.L = &q.mu
	return q
}

// pop moves up to len(buf) values into buf, waiting for the first. It returns 0 once no more can come.
func (q *queue[T]) pop(buf []T, c *clock) int {
	q.mu.Lock()
	if q.n == 0 && q.writers > 0 && !q.closed {
		c.enter(waitIn)
		for q.n == 0 && q.writers > 0 && !q.closed {
			q.readable.Wait()
		}
		c.enter(busy)
	}
	if q.closed {
		q.mu.Unlock()
		return 0
	}
	n := copy(buf[:min(len(buf), q.n)], q.ring[q.head:]) // what stays in the ring is the engine's own memory, which lasts
	n += copy(buf[n:min(len(buf), q.n)], q.ring)
	q.head = q.at(n)
	q.n -= n
	more := q.n > 0
	q.invite()
	q.mu.Unlock()
	if more {
		q.readable.Signal()
	}
	return n
}

// push hands over all values, which are in order, waiting for room. It returns how many it handed over: fewer once the run is over.
// Where several producers wait, the next room is for what comes first in the order of all. If it were for whoever waits first, the
// samples of a batch would be spread over many others', and batches would come in bursts. Nobody barges in, for the same reason.
func (q *queue[T]) push(values []T, c *clock) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pushes++
	q.found += int64(q.n)
	done := 0
	if len(q.waiting) == 0 && !q.closed {
		done = q.insert(values)
	}
	if done == len(values) {
		return done
	}
	w := q.line()
	defer q.leave(w)
	c.enter(waitOut)
	defer c.enter(busy)
	for done < len(values) {
		w.place = values[done].place()
		for !q.closed && (q.n == len(q.ring) || q.first() != w) {
			q.invite()
			w.room.Wait()
		}
		switch {
		case q.closed:
			return done
		case len(q.waiting) == 1:
			done += q.insert(values[done:])
		default: // the place of the next may be behind another's
			done += q.insert(values[done : done+1])
		}
	}
	return done
}

// line lets a producer wait.
func (q *queue[T]) line() *producer {
	var w *producer
	if n := len(q.spare); n > 0 {
		w, q.spare = q.spare[n-1], q.spare[:n-1]
	} else {
		w = &producer{room: sync.Cond{L: &q.mu}}
	}
	q.waiting = append(q.waiting, w)
	return w
}

// leave ends a producer's wait.
func (q *queue[T]) leave(w *producer) {
	i := slices.Index(q.waiting, w)
	q.waiting = slices.Delete(q.waiting, i, i+1)
	q.spare = append(q.spare, w)
	q.invite()
}

// first returns the waiting producer whose value comes first.
func (q *queue[T]) first() *producer {
	first := q.waiting[0]
	for _, w := range q.waiting[1:] {
		if w.place < first.place {
			first = w
		}
	}
	return first
}

// invite wakes the producer that the room in the queue is for.
func (q *queue[T]) invite() {
	if len(q.waiting) > 0 && q.n < len(q.ring) {
		q.first().room.Signal()
	}
}

// insert puts values, which are in order, in their places, as many as there is room for: behind all others, but for those that are
// late. It returns how many that were.
func (q *queue[T]) insert(values []T) int {
	values = values[:min(len(values), len(q.ring)-q.n)]
	if len(values) == 0 {
		return 0
	}
	if values[0].place() >= q.newest {
		n := copy(q.ring[q.at(q.n):], values)
		copy(q.ring, values[n:])
		q.n += len(values)
	} else {
		for _, v := range values {
			place, at := v.place(), q.at(q.n)
			for i := q.n; i > 0 && q.ring[q.at(i-1)].place() > place; i-- {
				q.ring[at] = q.ring[q.at(i-1)]
				at = q.at(i - 1)
			}
			q.ring[at] = v
			q.n++
		}
	}
	q.newest = max(q.newest, values[len(values)-1].place())
	q.readable.Signal()
	return len(values)
}

// at returns where in the ring the value lies that i others are in front of.
func (q *queue[T]) at(i int) int {
	if i += q.head; i >= len(q.ring) {
		i -= len(q.ring)
	}
	return i
}

// done says that one producer has ended.
func (q *queue[T]) done() {
	q.mu.Lock()
	q.writers--
	q.mu.Unlock()
	q.readable.Broadcast()
}

// close ends all waits: the run is over.
func (q *queue[T]) close() {
	q.mu.Lock()
	q.closed = true
	for _, w := range q.waiting {
		w.room.Signal()
	}
	q.mu.Unlock()
	q.readable.Broadcast()
}

// drain hands what is left in the queue to f, once its workers have ended.
func (q *queue[T]) drain(f func(T)) {
	for ; q.n > 0; q.n-- {
		f(q.ring[q.head])
		q.head = (q.head + 1) % len(q.ring)
	}
}

// counts returns the number of pushes so far and how many values they found in the queue.
func (q *queue[T]) counts() (pushes, found int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pushes, q.found
}
