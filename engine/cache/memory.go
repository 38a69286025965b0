// Package cache holds the stores that keep the elements of a boundary between two stages, to be replayed in order.
package cache

import (
	"errors"
	"os"
	"sync"

	"github.com/pipectl/pipectl/stages"
)

// Entry is one kept element and the item it belongs to.
type Entry struct {
	Item    stages.Item
	Skipped bool // a stage before the boundary failed on the item; there is no element
	Made    int  // the number of the boundary whose element it is, where that lies further down
	Element stages.Element

	kept     bool
	at, size int64 // of its data in the file, where there is one
}

// Memory keeps copies of elements in host memory, or in a file that stands in for it, numbered from 0. Put may be called from several
// goroutines; Get only once they have ended.
type Memory struct {
	mu      sync.Mutex
	limit   int64
	used    int64
	entries []Entry

	file   *os.File // nil for host memory
	end    int64    // of what is in it
	mapped []byte
}

// NewMemory makes a store of n places that takes up to limit bytes of elements.
func NewMemory(n int, limit int64) *Memory {
	return &Memory{limit: limit, entries: make([]Entry, n)}
}

// NewScratch makes a store like NewMemory's whose elements lie in a file without a name in a folder, which is made where it is missing.
// So it may be larger than the host's memory, and is gone with the process however that ends.
func NewScratch(folder string, n int, limit int64) (*Memory, error) {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(folder, "probe-*"+partialSuffix)
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name()) // or at the end, where files that are open have to keep their names
	m := NewMemory(n, limit)
	m.file = f
	return m, nil
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
	if m.file == nil {
		m.mu.Unlock()
		e.Item, e.kept = it, true
		e.Element.CopyFrom(el)
		return true
	}
	e.at, e.size = m.end, size
	m.end += aligned(size)
	m.mu.Unlock()
	if _, err := m.file.WriteAt(view(el), e.at); err != nil { // the disk is full: that is a limit, too
		return false
	}
	e.Item, e.kept, e.Element.Type = it, true, el.Type
	return true
}

// Get returns the entry in place i. Its element must not be written to.
func (m *Memory) Get(i int) *Entry { return &m.entries[i] }

// Map lets the elements of a store in a file be got. It is called once, after the last Put.
func (m *Memory) Map() error {
	if m.end == 0 {
		return nil
	}
	if m.mapped = mapFile(m.file); m.mapped == nil {
		return errors.New("a cache's file can't be mapped into memory")
	}
	for i := range m.entries {
		if e := &m.entries[i]; e.kept && !e.Skipped {
			attach(&e.Element, e.Element.Type, m.mapped[e.at:e.at+e.size:e.at+e.size])
		}
	}
	return nil
}

// Close frees what isn't memory, and what is lost with it is of no more use. What Get gave may not be used any more.
func (m *Memory) Close() {
	if m.file == nil {
		return
	}
	if m.mapped != nil {
		_ = unmapFile(m.mapped)
	}
	_ = m.file.Close()
	_ = os.Remove(m.file.Name()) // it is gone already where files that are open can lose their names
}

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
