package engine

import "sync"

// queue is a bounded queue between two pools of workers, who hand over several values at a time where items are cheap.
// A wait is entered in the waiting worker's clock, so that a hand-over without a wait reads no time.
type queue[T any] struct {
	mu       sync.Mutex
	readable sync.Cond
	writable sync.Cond
	turn     sync.Cond
	tickets  int // taken by producers, who push in this order
	serving  int // the ticket of the producer whose turn it is
	ring     []T
	head, n  int
	writers  int  // producers that haven't ended
	closed   bool // the run is over: nothing more is wanted

	// How many pushes there were, and how many values they found in the queue, for its mean occupancy.
	pushes, found int64
}

func newQueue[T any](capacity, writers int) *queue[T] {
	q := &queue[T]{ring: make([]T, capacity), writers: writers}
	q.readable.L = &q.mu
	q.writable.L = &q.mu
	q.turn.L = &q.mu
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
	n := min(len(buf), q.n)
	for i := range n {
		var none T
		buf[i], q.ring[q.head] = q.ring[q.head], none
		if q.head++; q.head == len(q.ring) {
			q.head = 0
		}
	}
	q.n -= n
	more := q.n > 0
	q.mu.Unlock()
	q.writable.Signal() // the one producer whose turn it is
	if more {
		q.readable.Signal()
	}
	return n
}

// push hands over all values, waiting for room. It returns how many it handed over: fewer once the run is over. The
// values of one push stay together: if those of several producers mixed whenever the queue is full, the samples of a
// batch would be spread over many others', and batches would come in bursts. Nobody barges in, for the same reason.
func (q *queue[T]) push(values []T, c *clock) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pushes++
	q.found += int64(q.n)
	waiting := false
	wait := func(on *sync.Cond) {
		if !waiting {
			c.enter(waitOut)
			waiting = true
		}
		on.Wait()
	}
	ticket := q.tickets
	q.tickets++
	for q.serving != ticket && !q.closed {
		wait(&q.turn)
	}
	done := 0
	for done < len(values) {
		for q.n == len(q.ring) && !q.closed {
			wait(&q.writable)
		}
		if q.closed {
			break
		}
		at := q.head + q.n
		if at >= len(q.ring) {
			at -= len(q.ring)
		}
		q.ring[at] = values[done]
		q.n++
		done++
		q.readable.Signal()
	}
	if q.serving++; q.serving != q.tickets {
		q.turn.Broadcast()
	}
	if waiting {
		c.enter(busy)
	}
	return done
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
	q.mu.Unlock()
	q.readable.Broadcast()
	q.writable.Broadcast()
	q.turn.Broadcast()
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
