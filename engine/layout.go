package engine

import "github.com/pipectl/pipectl/stages"

// layout says how a stream of items falls into epochs and batches. Items are numbered from 0 on through all epochs.
type layout struct {
	epoch int // items an epoch takes from the source
	size  int // samples in a batch
}

// newLayout lays out items of a source in batches of size. Where dropLast is set and an epoch has a full batch, its
// last, short one is left out.
func newLayout(items int, b *BatchSpec) layout {
	l := layout{epoch: items, size: b.Size}
	if b.DropLast && items >= b.Size {
		l.epoch -= items % b.Size
	}
	return l
}

// batches returns the number of batches in an epoch.
func (l layout) batches() int { return (l.epoch + l.size - 1) / l.size }

// place returns the batch that an item belongs to, and its slot in it.
func (l layout) place(seq int64) (batch int64, slot int) {
	epoch, pos := seq/int64(l.epoch), int(seq%int64(l.epoch))
	return epoch*int64(l.batches()) + int64(pos/l.size), pos % l.size
}

// first returns the first item of a batch.
func (l layout) first(batch int64) int64 {
	n := int64(l.batches())
	return batch/n*int64(l.epoch) + batch%n*int64(l.size)
}

// length returns the number of items in a batch.
func (l layout) length(batch int64) int { return int(l.first(batch+1) - l.first(batch)) }

// item is one item on its way. It is passed by value; its data lies in el.
type item struct { // 64 bytes: a line of the CPU's cache
	stages.Item
	ahead int             // 1 + the index of an item some places further down, whose record may be fetched from a disk; 0: there is none
	made  int32           // the boundary whose element it has already, from a checkpoint: the stages above have nothing to do
	skip  bool            // left out: a stage failed on it. It goes on, so that its batch knows
	el    *stages.Element // nil before the load stage
	buf   *buffer         // the reusable memory that el lies in; nil if el belongs to a cache or a source
}

func (it item) place() int64 { return it.Seq }
