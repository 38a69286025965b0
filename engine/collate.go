package engine

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/internal/machine"
	"github.com/pipectl/pipectl/stages"
)

// hostBatch is a batch's memory and its slots: slot i is an element that lies in place i of the batch's array, so that
// the last stage writes its result straight there.
type hostBatch struct {
	stages.Batch
	slots []stages.Element
	kept  []bool // by slot: the item arrived and wasn't skipped
	free  func()

	uncached bool  // its slots are
	pooled   bool  // it stays with the fused pool that made it, until it is freed
	bytes    int64 // of its data, where a pool made it
}

// newHostBatch takes memory for a batch of size samples from the device.
func newHostBatch(d gpu.Device, sample stages.Type, size int, pinned, uncached bool) (*hostBatch, error) {
	b := &hostBatch{kept: make([]bool, size), free: func() {}}
	b.Sample = sample
	b.Labels, b.Items = make([]int32, size), make([]stages.Item, size)
	if !sample.Fixed() {
		b.Ragged = make([]stages.Element, size)
		b.slots = b.Ragged
		return b, nil
	}
	mem, free, err := d.Alloc(size*sample.Size(), pinned)
	if err != nil {
		return nil, fmt.Errorf("taking %s of host memory for a batch: %w", stages.Bytes(size*sample.Size()), err)
	}
	b.free = free
	b.slots = make([]stages.Element, size)
	b.uncached = uncached
	n := sample.Len()
	switch sample.Kind {
	case stages.Tensor:
		b.F32 = unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(mem))), size*n)
	case stages.Tokens:
		b.I32 = unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(mem))), size*n)
	default:
		b.U8 = mem
	}
	b.reslot()
	return b, nil
}

// exceedsCache reports whether the CPU's cache can't hold two batches. One is read when the next is made: then nothing of it is still there.
func exceedsCache(sample stages.Type, size int) bool {
	cache := machine.LastLevelCache(os.DirFS("/"))
	return cache > 0 && 2*int64(size*sample.Size()) > cache
}

// reslot points every slot of a dense batch at its place.
func (b *hostBatch) reslot() {
	n := b.Sample.Len()
	for i := range b.slots {
		s := stages.Element{Type: b.Sample, Uncached: b.uncached}
		switch b.Sample.Kind {
		case stages.Tensor:
			s.F32 = b.F32[i*n : (i+1)*n : (i+1)*n]
		case stages.Tokens:
			s.I32 = b.I32[i*n : (i+1)*n : (i+1)*n]
		default:
			s.U8 = b.U8[i*n : (i+1)*n : (i+1)*n]
		}
		b.slots[i] = s
	}
}

// put copies an element into slot i, unless a stage left it there. The type must be the batch's, where that is fixed.
func (b *hostBatch) put(i int, el *stages.Element) error {
	slot := &b.slots[i]
	if b.Ragged == nil && el.Type != b.Sample {
		err := fmt.Errorf("gave %s where %s was promised", el.Type, b.Sample)
		b.reslot()
		return err
	}
	if el != slot {
		slot.CopyFrom(el)
	}
	return nil
}

// compact closes the gaps that skipped items left, and sets Len.
func (b *hostBatch) compact(expected int) {
	n := 0
	for i := range expected {
		if !b.kept[i] {
			continue
		}
		if i != n {
			b.Labels[n], b.Items[n] = b.Labels[i], b.Items[i]
			if b.Ragged != nil {
				b.Ragged[n], b.Ragged[i] = b.Ragged[i], b.Ragged[n]
			} else {
				b.slots[n].CopyFrom(&b.slots[i])
			}
		}
		n++
	}
	b.Len = n
}

// batchPool keeps the host batches that nobody uses, from interval to interval.
type batchPool struct {
	make func() (*hostBatch, error)
	mu   sync.Mutex
	free []*hostBatch
}

func (p *batchPool) get() (*hostBatch, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		return b, nil
	}
	return p.make()
}

func (p *batchPool) put(b *hostBatch) {
	p.mu.Lock()
	p.free = append(p.free, b)
	p.mu.Unlock()
}

func (p *batchPool) close() {
	for _, b := range p.free {
		b.free()
	}
	p.free = nil
}

// assembly is a batch that items are arriving for.
type assembly struct {
	batch    int64
	host     *hostBatch // nil where the batch stage is made free: items are only counted
	expected int
	missing  atomic.Int32
	complete bool
}

// assembler collates: it hands out the slots of batches, sees when a batch is whole, and delivers the batches in
// order. A worker that completes a batch waits while enough are ready; one that completes a batch before its turn
// doesn't, since the items still missing may be behind it.
type assembler struct {
	layout   layout
	pool     *batchPool // nil: only count
	capacity int        // batches that may be ready

	mu       sync.Mutex
	readable sync.Cond
	writable sync.Cond
	ring     []assembly // by batch modulo its length, the window of batches that may be under way
	ready    int64      // the first batch that isn't whole
	popped   int64      // the first batch that isn't delivered
	writers  int
	closed   bool

	pushes, found int64
}

func newAssembler(l layout, pool *batchPool, first int64, window, capacity, writers int) *assembler {
	a := &assembler{layout: l, pool: pool, capacity: capacity, ring: make([]assembly, window),
		ready: first, popped: first, writers: writers}
	for i := range a.ring {
		a.ring[i].batch = -1
	}
	a.readable.L = &a.mu
	a.writable.L = &a.mu
	return a
}

// open returns the assembly of a batch. The feeder's limit keeps it within the window.
func (a *assembler) open(batch int64) (*assembly, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &a.ring[batch%int64(len(a.ring))]
	if s.batch == batch {
		return s, nil
	}
	if a.pool != nil {
		host, err := a.pool.get()
		if err != nil {
			return nil, err
		}
		host.Index, host.Epoch = batch, int(batch/int64(a.layout.batches()))
		s.host = host
	}
	s.batch, s.complete = batch, false
	s.expected = a.layout.length(batch)
	s.missing.Store(int32(s.expected))
	return s, nil
}

// arrive says that an item's data is in its slot, or that it was skipped. It reports whether the batch is whole now;
// then the caller delivers it.
func (s *assembly) arrive(slot int, it *item) bool {
	if s.host != nil {
		s.host.Labels[slot], s.host.Items[slot], s.host.kept[slot] = it.Label, it.Item, !it.skip
	}
	return s.missing.Add(-1) == 0
}

// deliver makes a whole batch ready, and waits while too many are.
func (a *assembler) deliver(s *assembly, c *clock) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pushes++
	a.found += min(a.ready-a.popped, int64(a.capacity))
	s.complete = true
	for {
		next := &a.ring[a.ready%int64(len(a.ring))]
		if next.batch != a.ready || !next.complete {
			break
		}
		a.ready++
	}
	a.readable.Signal()
	if a.ready-a.popped > int64(a.capacity) && !a.closed {
		c.enter(waitOut)
		for a.ready-a.popped > int64(a.capacity) && !a.closed {
			a.writable.Wait()
		}
		c.enter(busy)
	}
}

// pop returns the next batch in order, its memory nil where batches are only counted. It reports false once no more
// can come.
func (a *assembler) pop(c *clock) (batch int64, host *hostBatch, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.popped == a.ready && a.writers > 0 && !a.closed {
		c.enter(waitIn)
		for a.popped == a.ready && a.writers > 0 && !a.closed {
			a.readable.Wait()
		}
		c.enter(busy)
	}
	if a.closed || a.popped == a.ready {
		return 0, nil, false
	}
	s := &a.ring[a.popped%int64(len(a.ring))]
	batch, host = s.batch, s.host
	s.batch, s.host = -1, nil
	a.popped++
	a.writable.Broadcast()
	return batch, host, true
}

func (a *assembler) done() {
	a.mu.Lock()
	a.writers--
	a.mu.Unlock()
	a.readable.Broadcast()
}

func (a *assembler) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.readable.Broadcast()
	a.writable.Broadcast()
}

// drain gives back the memory of the batches that were under way, once the workers have ended.
func (a *assembler) drain() {
	for i := range a.ring {
		if a.ring[i].host != nil {
			a.pool.put(a.ring[i].host)
			a.ring[i].host = nil
		}
	}
}

func (a *assembler) counts() (pushes, found int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pushes, a.found
}
