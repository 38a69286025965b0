package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"

	"github.com/pipectl/pipectl/stages"
)

// interleaved is what several load blocks read, as one Source: their items one after the other. In an epoch each has a quota, in proportion to
// the weights: as many items as there can be until one of them has given all of its own. The others go on in the next epoch
// where they stopped, so that all their items come in the course of the epochs.
type interleaved struct {
	sources []stages.Source
	first   []int // of each source's items; then the number of all
	quotas  []int // items of each source in an epoch
}

// openInterleaved opens the sources of several load blocks.
func openInterleaved(ctx context.Context, e *Experiment, loads []Stage) (m *interleaved, err error) {
	m = &interleaved{first: []int{0}}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close())
		}
	}()
	for _, load := range loads {
		src, err := openSource(ctx, e, load)
		if err != nil {
			return m, err
		}
		m.sources = append(m.sources, src)
		m.first = append(m.first, m.Len()+src.Len())
		if err := sameClasses(loads[0].Address, m.sources[0], src); err != nil {
			return m, &StageError{Address: load.Address, Err: err}
		}
	}
	shortest := 0
	for i, load := range loads {
		if float64(m.sources[i].Len())/load.Weight < float64(m.sources[shortest].Len())/loads[shortest].Weight {
			shortest = i
		}
	}
	items := 0
	for i, load := range loads {
		share := load.Weight / loads[shortest].Weight * float64(m.sources[shortest].Len())
		quota := min(int(math.Round(share)), m.sources[i].Len())
		if quota < 1 {
			return m, &StageError{Address: load.Address, Err: fmt.Errorf("with these weights an epoch, which is over with the items of %s, "+
				"has none of its own: make its weight larger", loads[shortest].Address)}
		}
		m.quotas = append(m.quotas, quota)
		if items += quota; items > mostShuffled {
			return m, &StageError{Address: load.Address, Err: fmt.Errorf("the items of an epoch are too many to mix: their order is kept in memory, "+
				"for %d at most", mostShuffled)}
		}
	}
	return m, nil
}

// sameClasses returns an error where the labels of a source don't mean the same as those of the first, as far as that is known.
func sameClasses(address string, first, src stages.Source) error {
	if n := first.Classes(); src.Classes() != n {
		return fmt.Errorf("its labels count %d classes, and those of %s %d: the same label must mean the same in all", src.Classes(), address, n)
	}
	a, named := first.(stages.ClassNamer)
	b, both := src.(stages.ClassNamer)
	if !named || !both {
		return nil
	}
	names := a.ClassNames()
	for label, name := range b.ClassNames() {
		if label < len(names) && name != names[label] {
			return fmt.Errorf("its label %d stands for %q, and that of %s for %q: the same label must mean the same in all", label, name, address, names[label])
		}
	}
	return nil
}

// epoch returns how many items an epoch has.
func (m *interleaved) epoch() int {
	n := 0
	for _, q := range m.quotas {
		n += q
	}
	return n
}

// part returns the source that an item is from.
func (m *interleaved) part(item int) int {
	i := 0
	for item >= m.first[i+1] {
		i++
	}
	return i
}

// Len returns the number of items of all sources.
func (m *interleaved) Len() int { return m.first[len(m.first)-1] }

// Name returns how messages call an item.
func (m *interleaved) Name(item int) string {
	i := m.part(item)
	return m.sources[i].Name(item - m.first[i])
}

// Classes returns the number of classes that the labels of each source count.
func (m *interleaved) Classes() int { return m.sources[0].Classes() }

// Read reads an item from its source.
func (m *interleaved) Read(c *stages.Call, item int, out *stages.Element) (int32, error) {
	i := m.part(item)
	c.Item.Index = item - m.first[i]
	return m.sources[i].Read(c, c.Item.Index, out)
}

// Files yields the files of all sources. It is nil where those of one aren't known.
func (m *interleaved) Files() iter.Seq[string] {
	var lists []iter.Seq[string]
	for _, s := range m.sources {
		lister, ok := s.(stages.FileLister)
		if !ok || lister.Files() == nil {
			return nil
		}
		lists = append(lists, lister.Files())
	}
	return func(yield func(string) bool) {
		for _, list := range lists {
			for path := range list {
				if !yield(path) {
					return
				}
			}
		}
	}
}

// Close closes all sources.
func (m *interleaved) Close() error {
	var errs []error
	for _, s := range m.sources {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// interleavedOrder maps the places of an epoch to the items of interleaved sources. Which source comes next is drawn from (seed, epoch), and each gives its
// items in its own order.
type interleavedOrder struct {
	*interleaved
	seed   uint64
	orders []*order // of each source's passes
	drawn  int      // the epoch of turns
	turns  []int32  // the places' sources; nil before the first epoch
	counts []int32  // which of its source's items in the epoch each place has
}

func newInterleavedOrder(m *interleaved, loads []Stage, seed uint64) *interleavedOrder {
	o := &interleavedOrder{interleaved: m, seed: mix(seed, hash("mix"))}
	for i, load := range loads {
		o.orders = append(o.orders, newOrder(load, m.sources[i], mix(seed, hash(load.Address))))
	}
	return o
}

// index returns the item at a place of an epoch.
func (o *interleavedOrder) index(epoch, pos int) int {
	if o.turns == nil || o.drawn != epoch {
		o.draw(epoch)
	}
	i := int(o.turns[pos])
	taken := epoch*o.quotas[i] + int(o.counts[pos])
	n := o.orders[i].items
	return o.first[i] + o.orders[i].index(taken/n, taken%n)
}

// draw draws whose turn each place of an epoch is.
func (o *interleavedOrder) draw(epoch int) {
	if o.turns == nil {
		o.turns, o.counts = make([]int32, o.epoch()), make([]int32, o.epoch())
	}
	o.drawn = epoch
	pos := 0
	for i, quota := range o.quotas {
		for range quota {
			o.turns[pos] = int32(i)
			pos++
		}
	}
	r := rand.New(rand.NewPCG(o.seed, uint64(epoch)))
	r.Shuffle(len(o.turns), func(i, j int) { o.turns[i], o.turns[j] = o.turns[j], o.turns[i] })
	given := make([]int32, len(o.quotas))
	for pos, i := range o.turns {
		o.counts[pos] = given[i]
		given[i]++
	}
}
