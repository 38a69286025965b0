package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pipectl/pipectl/engine/cache"
	"github.com/pipectl/pipectl/stages"
)

// CacheFolder is where caches lie whose checkpoint names no folder: in this one beside the experiment's file, in slashes.
const CacheFolder = ".pipectl/cache"

// keeper keeps what passes a boundary for all epochs and runs to come: a checkpoint with mode = "keep". An item that it holds skips
// the stages above the boundary, one that it doesn't is made as ever.
type keeper struct {
	boundary   int
	checkpoint *Checkpoint
	settings   cache.Settings
	buffers    freeList // of elements that come from the cache
	warn       func(format string, args ...any)
	// current returns the key again, which is another where the data set has changed meanwhile.
	current func() (cache.Key, error)

	disk    atomic.Pointer[cache.Disk] // nil where nothing is kept
	failed  atomic.Bool                // it can't be written, which isn't tried again
	failing sync.Mutex                 // held by whoever gives the cache up
	dropped []*cache.Disk              // given up; others may be at them still
}

// setKeepers works out what is kept, without looking whether it is there. The deepest come first: what one holds needs none above it.
func (p *Pipeline) setKeepers(ctx context.Context) error {
	plan := p.Plan
	for k := plan.batch; k > 0; k-- {
		c := plan.Experiment.Stages[k-1].Checkpoint
		if c == nil || c.Mode != KeepMode {
			continue
		}
		key, err := p.fingerprint(ctx, k)
		if err != nil {
			return &StageError{Address: c.Address(), Err: fmt.Errorf("telling whether its cache is up to date: %w", err)}
		}
		keeper := &keeper{boundary: k, checkpoint: c, warn: func(format string, args ...any) { p.warn(c.Address(), fmt.Sprintf(format, args...)) }}
		keeper.current = func() (cache.Key, error) { return p.fingerprint(ctx, k) }
		keeper.settings = cache.Settings{Key: key, Places: plan.Items, Limit: int64(c.Limit), Compress: c.Compress, Unmapped: plan.Experiment.Bisect.Cold,
			About: cache.About{Experiment: plan.Experiment.Name, Checkpoint: c.Name, After: plan.Experiment.Stages[k-1].Address}}
		p.keepers = append(p.keepers, keeper)
	}
	if len(p.keepers) == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(fileTick):
		return nil
	}
}

// fileTick is how coarsely file systems tell the times of changes at most, where they count no whole seconds: Linux takes them from a clock that ticks every 1 to
// 10 ms. What changes after what is read from then on has other times than the key says.
const fileTick = 10 * time.Millisecond

// open opens the cache, where there is one that can be read. One that is damaged is removed, so that it is filled again.
func (k *keeper) open() {
	disk, err := cache.Open(k.checkpoint.Path, k.settings)
	damage := (*cache.DamageError)(nil)
	switch {
	case err == nil:
		k.disk.Store(disk)
	case errors.As(err, &damage):
		k.remove(damage, "The cache is made anew.")
	}
}

// remove removes a damaged cache, and tells of it and of what follows.
func (k *keeper) remove(damage *cache.DamageError, then string) {
	removed := "It is removed"
	if err := damage.Remove(); err != nil {
		removed = fmt.Sprintf("It can't be removed (%v)", err)
	}
	k.warn("%v. %s. %s", damage, removed, then)
}

// create begins a cache, where there is none. The error is cache.ErrBusy where another process is filling it. Where it can't be written, the
// pipeline goes on without it.
func (k *keeper) create() error {
	if k.disk.Load() != nil || k.failed.Load() {
		return nil
	}
	disk, err := cache.Create(k.checkpoint.Path, k.settings)
	switch {
	case err == nil:
		k.disk.Store(disk)
		if err := cache.Sweep(k.checkpoint.Path); err != nil {
			k.warn("What a run that was killed left in %s can't be removed: %v.", k.checkpoint.Path, err)
		}
	case errors.Is(err, cache.ErrBusy):
		return err
	default:
		k.failed.Store(true)
		k.warn("Its cache can't be written: %v. The run goes on without it.", err)
	}
	return nil
}

// giveUp ends the keeping. Whoever reads the cache still may go on: it is closed at the end.
func (k *keeper) giveUp(disk *cache.Disk) bool {
	k.failing.Lock()
	defer k.failing.Unlock()
	if !k.disk.CompareAndSwap(disk, nil) {
		return false
	}
	k.dropped = append(k.dropped, disk)
	return true
}

// get leaves an item's element in el. It reports false where it isn't kept.
func (k *keeper) get(it *item, el *stages.Element) bool {
	disk := k.disk.Load()
	if disk == nil {
		return false
	}
	if it.ahead > 0 {
		disk.Fetch(it.ahead - 1)
	}
	label, ok, err := disk.Get(it.Index, el)
	if damage := (*cache.DamageError)(nil); errors.As(err, &damage) && k.giveUp(disk) {
		k.remove(damage, "The stages above make its items, and a session's next interval or the next run fills it again.")
	}
	if ok {
		it.Label = label
	}
	return ok
}

// put keeps an item's element. It reports true when the cache can be sealed then.
func (k *keeper) put(it *item, el *stages.Element) (full bool) {
	disk := k.disk.Load()
	if disk == nil || disk.Sealed() || int(it.made) >= k.boundary {
		return false
	}
	if err := disk.Put(it.Index, it.Label, el); err != nil {
		k.discard(disk, "can't be written", err)
		return false
	}
	return disk.Full()
}

// discard gives up a cache that isn't whole.
func (k *keeper) discard(disk *cache.Disk, what string, err error) {
	if k.giveUp(disk) {
		k.failed.Store(true)
		k.warn("Its cache %s: %v. The run goes on without it, and nothing is left of it.", what, errors.Join(err, disk.Discard()))
	}
}

// seal completes the cache, unless it may be of data that its key isn't of.
func (k *keeper) seal() {
	disk := k.disk.Load()
	if disk == nil || disk.Sealed() {
		return
	}
	key, err := k.current()
	if errors.Is(err, context.Canceled) { // the run is interrupted
		return
	}
	if err == nil && key != k.settings.Key {
		err = errors.New("the data set has changed while it was filled")
	}
	if err != nil {
		k.discard(disk, "isn't kept", err)
		return
	}
	if err := disk.Seal(); err != nil && !disk.Sealed() {
		k.discard(disk, "can't be written", err)
		return
	}
	if items, _, _ := disk.Size(); items == 0 && k.checkpoint.Limit > 0 {
		k.warn("Its limit of %s leaves no room for a single item, so that it keeps nothing.", k.checkpoint.Limit)
	}
}

// keptNote is the code of the note that says what a checkpoint keeps.
const keptNote = "kept"

// notes says what the cache holds, and so how far the stages above it are part of what is measured.
func (k *keeper) notes(plan *Plan) []stages.PoolNote {
	disk := k.disk.Load()
	if disk == nil {
		return nil
	}
	items, _, stored := disk.Size()
	var above []string
	for _, s := range plan.Experiment.Stages[:k.boundary] {
		above = append(above, s.Address)
	}
	text := fmt.Sprintf("Checkpoint %q keeps %d of %d items, in %s on disk. ", k.checkpoint.Name, items, plan.Items, stages.Bytes(stored))
	if load := above[0]; items == plan.Items {
		text += fmt.Sprintf("Nothing above it runs: what %s takes is the reading of its cache.", load)
	} else {
		text += fmt.Sprintf("For these nothing above it runs: what %s takes is partly the reading of its cache.", load)
	}
	return []stages.PoolNote{{Code: keptNote, Text: text, Stages: above}}
}

// Kept returns notes on what checkpoints keep.
func (p *Pipeline) Kept() (notes []stages.PoolNote) {
	for _, k := range p.keepers {
		notes = append(notes, k.notes(p.Plan)...)
	}
	return notes
}

func (k *keeper) close() error {
	var errs []error
	if disk := k.disk.Load(); disk != nil {
		errs = append(errs, disk.Close())
	}
	for _, disk := range k.dropped {
		errs = append(errs, disk.Close())
	}
	return errors.Join(errs...)
}

// wanting returns the keepers that a pass through the data set would fill, the deepest first: none behind which all is kept.
func (p *Pipeline) wanting() []*keeper {
	var list []*keeper
	for _, k := range p.keepers {
		disk := k.disk.Load()
		if disk != nil && disk.Sealed() {
			if items, _, _ := disk.Size(); items == p.Plan.Items {
				break
			}
			continue
		}
		list = append(list, k)
	}
	return list
}

// busyPause is how long it takes until a look whether another process has filled a cache.
const busyPause = 200 * time.Millisecond

// keep fills the caches that are kept and aren't whole, in one pass through the data set up to the deepest. Where another process is at it, it waits.
func (p *Pipeline) keep(ctx context.Context) error {
	wanting := p.wanting()
	if len(wanting) == 0 {
		return nil
	}
	for _, k := range wanting {
		for told := false; errors.Is(k.create(), cache.ErrBusy); told = true {
			if !told {
				k.warn("Another process is filling its cache. This one waits for it.")
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(busyPause):
			}
			k.open()
		}
	}
	if err := p.pass(ctx, 0); err != nil {
		return err
	}
	for _, k := range wanting {
		k.seal()
	}
	return nil
}

// filesRead returns the files that items are read from: the caches that are kept, and the data set's where these don't hold everything.
func (p *Pipeline) filesRead() (files []string) {
	for _, k := range p.keepers {
		if disk := k.disk.Load(); disk != nil {
			files = append(files, disk.Path())
			if items, _, _ := disk.Size(); items == p.Plan.Items {
				return files
			}
		}
	}
	return append(files, p.files...)
}

// keepAlong lets caches be filled by the first epoch of a run that is about to begin. It makes only what that leaves out.
func (p *Pipeline) keepAlong(ctx context.Context) error {
	for _, k := range p.wanting() {
		if errors.Is(k.create(), cache.ErrBusy) {
			k.warn("Another process is filling its cache. This run makes its items itself.")
		}
	}
	return p.pass(ctx, int64(p.Plan.layout.epoch))
}

// pass makes the items from place first of the first epoch on, those that drop_last leaves out included, as far as the caches that are
// being filled need them. It begins with a batch.
func (p *Pipeline) pass(ctx context.Context, first int64) error {
	wanting := slices.DeleteFunc(p.wanting(), func(k *keeper) bool { return k.disk.Load() == nil })
	if len(wanting) == 0 {
		return nil
	}
	plan := p.Plan
	r := p.newRun(ctx, Probe{}, 0, int64(plan.Items))
	r.filling = true
	r.until = wanting[0].boundary
	whole := layout{epoch: plan.Items, size: plan.layout.size}
	batch := first / int64(whole.size)
	order := r.feeder.order
	r.feeder = newFeeder(whole, first, int64(plan.Items), whole.first(batch+r.window))
	r.feeder.order = order
	last := p.segment(plan.batch)
	r.asm = newAssembler(whole, p.batches, batch, int(r.window), plan.Segments[last].Prefetch, plan.Segments[last].Workers)
	done := p.begin(ctx, r)
	for {
		batch, host, ok := r.asm.pop(r.train)
		if !ok {
			break
		}
		r.samples.Add(int64(whole.length(batch)))
		r.steps.Add(1)
		r.finish(delivery{batch: batch, host: host})
	}
	err := errors.Join(r.end(), ctx.Err())
	done()
	return err
}

const (
	fetchedBytes = 16 << 20 // that are fetched ahead from a disk: more than it gives in the time that it takes to answer
	mostAhead    = 64       // records
)

// lookahead returns how many items ahead records are fetched.
func (p *Pipeline) lookahead() int {
	for _, k := range p.keepers {
		if disk := k.disk.Load(); disk != nil {
			if items, _, stored := disk.Size(); items > 0 {
				return min(max(int(fetchedBytes*int64(items)/max(stored, 1)), 1), mostAhead)
			}
		}
	}
	return 0
}

// serve gives an item what a checkpoint keeps of it. It reports false where none does.
func (r *run) serve(it *item) bool {
	for _, k := range r.keepers {
		buf := k.buffers.get()
		if k.get(it, &buf.Element) {
			it.el, it.buf, it.made = &buf.Element, buf, int32(k.boundary)
			return true
		}
		buf.release()
	}
	return false
}

// retain keeps what passes a boundary, where a checkpoint there says so.
func (r *run) retain(boundary int, it *item, el *stages.Element) {
	for _, k := range r.keepers {
		if k.boundary == boundary && !it.skip && k.put(it, el) && r.until == 0 {
			r.wg.Go(k.seal) // it waits for the disk
		}
	}
	if boundary == r.until {
		it.skip = true // the pass is there for the cache alone
	}
}
