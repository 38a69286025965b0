package engine

import (
	"context"
	"runtime"
	"testing"
)

// TestNoAllocation runs ten thousand items through stages that copy, in pools of their own and in one, and counts what
// the steady state allocates: next to nothing, so nothing an item.
func TestNoAllocation(t *testing.T) {
	for _, pool := range []string{"", "loader"} {
		e := chain(&countSource{items: 1000}, 10, nothing, prepare("a", double), augment("b", noise), prepare("c", double))
		for i := range 4 {
			e.Stages[i].Pool = pool
		}
		e.Pools = []Pool{{Name: "loader", Workers: 2}}
		p := openTest(t, e)
		var before, after runtime.MemStats
		const steps = 1000
		n := 0
		err := p.Train(context.Background(), 11, func(Step) {
			switch n++; n {
			case 100:
				runtime.ReadMemStats(&before)
			case 100 + steps:
				runtime.ReadMemStats(&after)
			}
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		// The engine makes one object a batch, the test's device another.
		if got := float64(after.Mallocs-before.Mallocs) / (10 * steps); got > 0.25 {
			t.Errorf("pool %q: %.2f allocations an item", pool, got)
		}
	}
}
