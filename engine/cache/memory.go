// Package cache holds the stores that keep the elements of a boundary between two stages, to be replayed in order.
package cache

import (
	"sync"

	"github.com/pipectl/pipectl/stages"
)

// Entry is one kept element and the item it belongs to.
type Entry struct {
	Item    stages.Item
	Skipped bool // a stage before the boundary failed on the item; there is no element
	Made    int  // the number of the boundary whose element it is, where that lies further down
	Element stages.Element

	kept bool
}

// Memory keeps copies of elements in host memory, numbered from 0. Put may be called from several goroutines; Get only
// once they have ended.
type Memory struct {
	mu      sync.Mutex
	limit   int64
	used    int64
	entries []Entry
}

// NewMemory makes a store of n places that takes up to limit bytes of elements.
func NewMemory(n int, limit int64) *Memory {
	return &Memory{limit: limit, entries: make([]Entry, n)}
}

// Put keeps a copy of el, nil for a skipped item, in place i, and notes the boundary whose element it is. It reports false, keeping
// nothing, where the limit would be passed.
func (m *Memory) Put(i int, it stages.Item, made int, el *stages.Element) bool {
	e := &m.entries[i]
	e.Made = made
	if el == nil {
		e.Item, e.Skipped, e.kept = it, true, true
		return true
	}
	size := int64(el.Size())
	m.mu.Lock()
	if m.used+size > m.limit {
		m.mu.Unlock()
		return false
	}
	m.used += size
	m.mu.Unlock()
	e.Item, e.kept = it, true
	e.Element.CopyFrom(el)
	return true
}

// Get returns the entry in place i. Its element must not be written to.
func (m *Memory) Get(i int) *Entry { return &m.entries[i] }

// Kept returns how many places are filled without a gap from the first on.
func (m *Memory) Kept() int {
	for i := range m.entries {
		if !m.entries[i].kept {
			return i
		}
	}
	return len(m.entries)
}

// Used returns the bytes of the elements kept.
func (m *Memory) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}
