package engine

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pipectl/pipectl/stages"
)

// uneven makes some items much slower than others, so that workers overtake each other.
func uneven(c *stages.Call, in, out *stages.Element) error {
	if c.Item.Index%13 == 0 {
		time.Sleep(200 * time.Microsecond)
	}
	return double(c, in, out)
}

// TestDeterministic hashes three epochs of batches under many settings: none of them may change a byte.
func TestDeterministic(t *testing.T) {
	type setting struct {
		load, a, b, c, batch, prefetch int
		pool                           string
	}
	settings := []setting{
		{load: 1, a: 1, b: 1, c: 1}, {load: 2, a: 1, b: 1, c: 1}, {load: 1, a: 4, b: 1, c: 1}, {load: 1, a: 1, b: 4, c: 1},
		{load: 1, a: 1, b: 1, c: 4}, {load: 4, a: 4, b: 4, c: 4}, {load: 8, a: 3, b: 2, c: 1}, {load: 1, a: 2, b: 3, c: 8},
		{load: 4, a: 4, b: 4, c: 4, prefetch: 1}, {load: 4, a: 4, b: 4, c: 4, prefetch: 2}, {load: 2, a: 8, b: 2, c: 8, prefetch: 100},
		{load: 1, a: 0, b: 0, c: 0}, {load: 0, a: 0, b: 0, c: 0}, {load: 2, a: 2, b: 0, c: 0}, {load: 2, a: 2, b: 2, c: 2, batch: 1},
		{load: 3, a: 2, b: 2, c: 2, batch: 3}, {load: 3, a: 3, b: 3, c: 3, pool: "some"}, {load: 3, a: 3, b: 3, c: 3, pool: "all"},
		{load: 3, a: 3, b: 3, c: 3, pool: "all", prefetch: 1}, {load: 16, a: 16, b: 16, c: 16, prefetch: 1},
	}
	for _, ragged := range []bool{false, true} {
		var want []uint64
		for _, s := range settings {
			t.Run(fmt.Sprintf("ragged=%v/%+v", ragged, s), func(t *testing.T) {
				var got []uint64
				src := &countSource{items: 100, shuffle: true, ragged: ragged}
				stagesOf := []Stage{prepare("a", uneven), augment("b", noise), prepare("c", pass)}
				if ragged {
					stagesOf = []Stage{prepare("a", pass), prepare("b", pass), prepare("c", pass)}
				}
				e := chain(src, 16, hashStep(&got), stagesOf...)
				e.Stages[4].Spec.(*BatchSpec).DropLast = false
				for i, n := range []int{s.load, s.a, s.b, s.c, s.batch} {
					e.Stages[i].Workers, e.Stages[i].Prefetch = n, s.prefetch
					if s.pool == "all" || s.pool == "some" && i > 0 && i < 3 {
						e.Stages[i].Pool, e.Stages[i].Workers, e.Stages[i].Prefetch = "pool", Auto, 0
					}
				}
				if s.pool != "" {
					e.Pools = []Pool{{Name: "pool", Workers: 3, Prefetch: s.prefetch}}
				}
				p := openTest(t, e)
				if err := p.Train(context.Background(), 3, nil, nil); err != nil {
					t.Fatal(err)
				}
				if len(got) != 21 {
					t.Fatalf("%d batches, want 21: 7 an epoch", len(got))
				}
				if want == nil {
					want = got
				}
				if !slices.Equal(got, want) {
					t.Errorf("batches %x\nwant    %x", got, want)
				}
				if slices.Equal(got[:7], got[7:14]) {
					t.Error("the second epoch repeats the first")
				}
			})
		}
	}
}

// TestProbesFeedTheSameBatches compares what the step eats under every probe with the baseline: the first pass through a
// cache gives the same bytes wherever it stands, and so does the second where the cache stands below the last augment.
func TestProbesFeedTheSameBatches(t *testing.T) {
	var got []uint64
	e := chain(&countSource{items: 100, shuffle: true}, 10, hashStep(&got), prepare("a", double), augment("b", noise), prepare("c", double))
	e.Stages = slices.Insert(e.Stages, 5, Stage{Address: "transfer", Block: TransferBlock, Spec: &TransferSpec{Pinned: true}, Workers: 1})
	for i := range 4 {
		e.Stages[i].Workers = 3
	}
	e.Bisect.CacheBatches = 10
	p := openTest(t, e)
	eat := func(probe Probe) []uint64 {
		got = nil
		clear(p.next)
		if _, err := p.Measure(context.Background(), probe, 1, 19); err != nil {
			t.Fatal(err)
		}
		return got
	}
	want := eat(Probe{})
	for k := 1; k <= 6; k++ {
		got := eat(Probe{To: k})
		if !slices.Equal(got[:10], want[:10]) {
			t.Errorf("the cache at %d gives other batches than the baseline", k)
		}
		if frozen := slices.Equal(got[10:20], got[:10]); frozen != (k > 2) {
			t.Errorf("the cache at %d repeats its batches: %v", k, frozen)
		}
		for j := 1; j < k; j++ {
			if got := eat(Probe{From: j, To: k}); !slices.Equal(got[:10], want[:10]) {
				t.Errorf("without %d…%d the step gets other batches than the baseline", j, k-1)
			}
		}
	}
}
