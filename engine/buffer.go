package engine

import (
	"sync"

	"github.com/pipectl/pipectl/stages"
)

// buffer is an element's reusable memory, on loan from a freeList.
type buffer struct {
	stages.Element
	home *freeList
}

// release gives the buffer back; a nil buffer is nobody's.
func (b *buffer) release() {
	if b != nil {
		b.home.put(b)
	}
}

// freeList keeps the buffers that nobody uses. How many exist is bounded by the items that can be in flight.
type freeList struct {
	mu   sync.Mutex
	free []*buffer
}

func (l *freeList) get() *buffer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.free); n > 0 {
		b := l.free[n-1]
		l.free = l.free[:n-1]
		return b
	}
	return &buffer{home: l}
}

func (l *freeList) put(b *buffer) {
	l.mu.Lock()
	l.free = append(l.free, b)
	l.mu.Unlock()
}
