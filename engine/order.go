package engine

import (
	"hash/fnv"
	"math/rand/v2"

	"github.com/pipectl/pipectl/stages"
)

// mostShuffled is how many items can be shuffled: their order takes 4 bytes each, 1 GiB here.
const mostShuffled = 1 << 28

// order maps the places of an epoch to the source's items: in turn, or in a permutation drawn from (seed, epoch).
type order struct {
	shuffle bool
	orderer stages.Orderer // draws the permutation; nil for any, all equally likely
	seed    uint64
	epoch   int
	perm    []int32 // of the epoch; nil before the first
	items   int
}

// newOrder returns the order of a load block's source.
func newOrder(load Stage, src stages.Source, seed uint64) *order {
	orderer, _ := src.(stages.Orderer)
	return &order{shuffle: load.Spec.(stages.SourceSpec).Shuffled(), orderer: orderer, seed: seed, items: src.Len()}
}

// index returns the item at a place of an epoch.
func (o *order) index(epoch, pos int) int {
	if !o.shuffle {
		return pos
	}
	if o.perm == nil || o.epoch != epoch {
		if o.perm == nil {
			o.perm = make([]int32, o.items)
		}
		o.epoch = epoch
		r := rand.New(rand.NewPCG(mix(o.seed, hash("shuffle")), uint64(epoch)))
		if o.orderer != nil {
			o.orderer.Order(r, o.perm)
			return int(o.perm[pos])
		}
		for i := range o.perm {
			o.perm[i] = int32(i)
		}
		r.Shuffle(len(o.perm), func(i, j int) { o.perm[i], o.perm[j] = o.perm[j], o.perm[i] })
	}
	return int(o.perm[pos])
}

// mix spreads the bits of two numbers over one: the finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable
// pseudorandom number generators, OOPSLA 2014) on their combination.
func mix(a, b uint64) uint64 {
	z := a + b*0x9e3779b97f4a7c15 + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// draws is the random source of one stage in one worker, reseeded for every item from (seed, epoch, item, address).
type draws struct {
	pcg  *rand.PCG
	rand *rand.Rand
	base uint64
}

func newDraws(seed uint64, address string) draws {
	pcg := rand.NewPCG(0, 0)
	return draws{pcg: pcg, rand: rand.New(pcg), base: mix(seed, hash(address))}
}

func (d *draws) seed(epoch, index int) {
	d.pcg.Seed(mix(d.base, uint64(epoch)), mix(d.base^0x5bf03635, uint64(index)))
}
