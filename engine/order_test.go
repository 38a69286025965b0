package engine

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

// rotated is a source whose shuffled epochs start at an item drawn at random, and go on in turn.
type rotated struct{ countSource }

func (s *rotated) Open(context.Context, uint64) (stages.Source, error) {
	return openRotated{openCount{&s.countSource}}, nil
}

type openRotated struct{ openCount }

func (s openRotated) Order(r *rand.Rand, order []int32) {
	start := r.IntN(len(order))
	for i := range order {
		order[i] = int32((start + i) % len(order))
	}
}

// TestOrderer checks that a source's own order is kept, a new one each epoch and the same in each run; and that it isn't asked for
// where items aren't shuffled.
func TestOrderer(t *testing.T) {
	eat := func(shuffle bool) (items []int) {
		step := stepFunc(func(_ context.Context, b *gpu.Batch) error {
			for i := range b.Len {
				items = append(items, int(b.F32[4*i]))
			}
			return nil
		})
		e := chain(&countSource{}, 10, step)
		e.Stages[0].Spec, e.Stages[0].Workers = &rotated{countSource{items: 50, shuffle: shuffle}}, 3
		if err := openTest(t, e).Train(context.Background(), 2, nil, nil); err != nil {
			t.Fatal(err)
		}
		return items
	}
	got := eat(true)
	for i := range got {
		if i%50 > 0 && got[i] != (got[i-1]+1)%50 {
			t.Fatalf("the items are %d", got)
		}
	}
	if got[0] == got[50] || !slices.Equal(got, eat(true)) {
		t.Errorf("the epochs start with %d and %d, then %d", got[0], got[50], eat(true)[0])
	}
	if got := eat(false); got[0] != 0 || got[50] != 0 {
		t.Errorf("without shuffling the epochs start with %d and %d", got[0], got[50])
	}
}
