package engine

import (
	"io"
	"time"

	"github.com/pipectl/pipectl/stages"
)

const (
	// maxChunk is how many items a worker takes at a time at most, and chunkTime how long it may be busy with them: slow
	// items are taken one by one, so that workers share them evenly.
	maxChunk  = 16
	chunkTime = 20 * time.Microsecond
	// sampleItems is how many fast items are executed for one whose stages are timed one by one, and sampleChunks how many
	// chunks for one that is timed as a whole.
	sampleItems  = 61 // no multiple of a chunk, so that all places in one get their turn
	sampleChunks = 16
)

// puller is where a worker's items come from: a queue, or the feeder for the first segment.
type puller interface {
	pop(buf []item, c *clock) int
}

// role is what a worker does where a stage stands.
type role uint8

const (
	execute  role = iota
	idle          // nothing: the stage is made free
	exchange      // the first of several stages that are made free: what came this far is dropped for what the cache holds behind them
	collate
)

// task is one stage as one worker executes it.
type task struct {
	index int // the stage's
	role  role
	// inPlace says that it writes to the batch's slot.
	inPlace bool
	call    stages.Call
	stage   stages.Stage // nil for load and batch
	draws   *draws       // nil but for augment
	out     *buffer      // where its results go, but for those that go into a batch's slot
}

// worker executes a segment's stages, one after the other, on each item.
type worker struct {
	run   *run
	in    puller
	out   *queue[item] // nil for the segment that collates
	kept  bool         // what passes a boundary may be
	free  *freeList    // the segment's buffers
	tasks []task
	clock *clock
	// collator makes batches of samples, where the engine itself doesn't.
	collator stages.Collator
	mixer    *mixer // nil where samples aren't mixed

	slow    bool // items are so slow that every stage of each can be timed
	seen    int64
	current int // index of the stage at work, for a panic's report
	items   []int64
	split   []time.Duration

	assembly    *assembly // of the last item's batch
	first, next int64     // that batch's first item, and the next batch's
}

// work works until no more items come or the run is over, and tells the next segment that this worker is gone.
func (w *worker) work() {
	if err := w.loop(); err != nil {
		w.run.fail(&StageError{Address: w.run.address(w.current), Err: err})
	}
	for i := range w.tasks {
		w.tasks[i].out.release()
	}
	w.clock.enter(gone)
	if w.out != nil {
		w.out.done()
	} else {
		w.run.asm.done()
	}
}

// loop takes items and hands them over. Its error is a panic in a stage.
func (w *worker) loop() (err error) {
	defer catch(&err)
	chunk := make([]item, maxChunk)
	want := 1
	for round := 0; ; round++ {
		n := w.in.pop(chunk[:want], w.clock)
		if n == 0 {
			return nil
		}
		measured := round%sampleChunks == 0
		var before time.Duration
		if measured {
			before = time.Since(w.clock.start)
		}
		w.slow = want == 1
		for i := range n {
			if !w.process(&chunk[i]) {
				for j := i; j < n; j++ {
					chunk[j].buf.release()
				}
				return nil
			}
		}
		if measured {
			each := max((time.Since(w.clock.start)-before)/time.Duration(n), 1)
			want = min(max(int(chunkTime/each), 1), maxChunk)
		}
		w.clock.add(w.items, w.split, 0)
		if w.out == nil {
			continue
		}
		for i := w.out.push(chunk[:n], w.clock); i < n; i++ {
			chunk[i].buf.release()
		}
	}
}

// process takes one item through the segment's stages. It reports false once the run is over.
func (w *worker) process(it *item) bool {
	r := w.run
	timed := len(w.tasks) > 1 && (w.slow || w.seen%sampleItems == 0)
	w.seen++
	var last time.Duration
	if timed {
		last = time.Since(w.clock.start)
	}
	var whole *assembly // set when the item completes its batch
	from := -1          // the task in whose memory the element lies; -1: in the item's own, or a cache's
	cur := it.el
	for i := range w.tasks {
		t := &w.tasks[i]
		w.current = t.index
		switch t.role {
		case idle:
			continue
		case exchange:
			it.buf.release()
			it.take(r.cached.Get(int(it.Seq % r.usable)))
			cur, from = it.el, -1
			continue
		case collate:
			a, slot, ok := w.slot(it)
			if !ok {
				return false
			}
			if a.host != nil && !it.skip {
				if err := a.host.put(slot, cur); err != nil {
					r.fail(&StageError{Address: r.address(t.index - 1), Item: r.name(it), Err: err})
					return false
				}
			}
			if a.arrive(slot, it) {
				whole = a
				if !w.collate(a) {
					return false
				}
			}
			w.items[i]++
		case execute:
			if it.skip || t.index < int(it.made) || r.elsewhere(t.index, it) {
				break
			}
			if t.index == 0 && r.serve(it) {
				w.items[i]++
				cur, from = it.el, -1
				break
			}
			out := &t.out.Element
			if t.inPlace {
				a, slot, ok := w.slot(it)
				if !ok {
					return false
				}
				out = &a.host.slots[slot]
			}
			err := w.execute(t, it, cur, out)
			res := out.Result()
			if err != nil {
				if r.ctx.Err() != nil || !r.skip(t.index, it, err) {
					return false
				}
				it.skip = true
				break
			}
			w.items[i]++
			switch {
			case res == out:
				cur, from = res, i
				if t.inPlace {
					from = -1
				}
			case res != cur:
				cur, from = res, -1
			}
		}
		if w.kept && t.index < r.plan.batch {
			r.keep(t.index+1, it, cur)
		}
		if timed {
			now := time.Since(w.clock.start)
			w.split[i] += now - last
			last = now
		}
	}
	if w.out == nil {
		it.buf.release()
		it.buf = nil
		if whole != nil {
			r.asm.deliver(whole, w.clock)
		}
		return true
	}
	switch {
	case from >= 0:
		it.buf.release()
		it.buf = w.tasks[from].out
		w.tasks[from].out = w.free.get()
	case cur != it.el:
		it.buf.release()
		it.buf = nil
	}
	it.el = cur
	return true
}

// elsewhere reports whether a stage is a load block that an item isn't from.
func (r *run) elsewhere(stage int, it *item) bool {
	m := r.p.interleaved
	return m != nil && stage < len(m.sources) && stage != m.part(it.Index)
}

// collate makes a batch of the samples that arrived. It reports false where that fails, which ends the run.
func (w *worker) collate(a *assembly) bool {
	if a.host == nil {
		return true
	}
	a.host.compact(a.expected)
	if w.mixer != nil && a.host.Len > 0 {
		w.mixer.mix(&a.host.Batch)
	}
	if w.collator == nil || a.host.Len == 0 {
		return true
	}
	if err := w.collator.Collate(w.run.ctx, &a.host.Batch); err != nil {
		w.run.fail(&StageError{Address: BatchBlock, Err: err})
		return false
	}
	return true
}

// execute calls a stage.
func (w *worker) execute(t *task, it *item, in, out *stages.Element) error {
	t.call.Item = it.Item
	if t.stage == nil {
		label, err := w.run.source.Read(&t.call, it.Index, out)
		it.Label = label
		return err
	}
	if t.draws != nil {
		epoch := it.Epoch
		if t.index < w.run.plan.frozen {
			epoch = 0 // kept or not, so that batches don't depend on what is kept already
		}
		t.draws.seed(epoch, it.Index)
	}
	return t.stage.Process(&t.call, in, out)
}

// slot returns the assembly of an item's batch and its slot there. It reports false where there is no memory for it,
// which ends the run.
func (w *worker) slot(it *item) (*assembly, int, bool) {
	if it.Seq < w.first || it.Seq >= w.next {
		l := w.run.asm.layout
		batch, slot := l.place(it.Seq)
		a, err := w.run.asm.open(batch)
		if err != nil {
			w.run.fail(&StageError{Address: BatchBlock, Err: err})
			return nil, 0, false
		}
		w.assembly, w.first = a, it.Seq-int64(slot)
		w.next = w.first + int64(l.length(batch))
	}
	return w.assembly, int(it.Seq - w.first), true
}

// closeStage frees what a stage holds.
func closeStage(s stages.Stage) error {
	if c, ok := s.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
