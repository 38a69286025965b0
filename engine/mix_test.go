package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

// mixedStep notes of each batch its bytes, its labels and the labels' share.
func mixedStep(notes *[]string) stepFunc {
	return func(_ context.Context, b *gpu.Batch) error {
		if !b.Mixed {
			return errors.New("a batch isn't mixed")
		}
		*notes = append(*notes, fmt.Sprintf("%x %v %v", hashBatch(b.Batch), b.Labels[:b.Len], b.Own))
		return nil
	}
}

// Batches are mixed the same whichever workers make them, and each epoch's anew.
func TestMixingDeterministic(t *testing.T) {
	var want []string
	for _, workers := range []int{1, 2, 5} {
		var got []string
		e := chain(&countSource{items: 30}, 8, mixedStep(&got), prepare("a", uneven))
		e.Stages[1].Workers = workers
		e.Stages[2].Spec = &BatchSpec{Size: 8, Mixing: stages.Mixing{Mixup: 0.5, Cutmix: 1}}
		p := openTest(t, e)
		if err := p.Train(context.Background(), 2, nil, nil); err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d workers:\n got %v\nwant %v", workers, got, want)
		}
	}
	if len(want) != 8 {
		t.Fatalf("%d batches, want 8", len(want))
	}
	for i := range 4 {
		if want[i] == want[4+i] {
			t.Errorf("batch %d is mixed as in the first epoch", i)
		}
	}
}

// A skipped item takes no part.
func TestMixingSkips(t *testing.T) {
	var got []string
	e := chain(&countSource{items: 8, bad: func(i int) error {
		if i != 2 && i != 5 {
			return fmt.Errorf("item %d is bad", i)
		}
		return nil
	}}, 4, mixedStep(&got))
	e.Stages[0].OnError = Skip
	e.Stages[1].Spec = &BatchSpec{Size: 8, Mixing: stages.Mixing{Mixup: 1}}
	p := openTest(t, e)
	if err := p.Train(context.Background(), 1, nil, nil); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || !strings.Contains(got[0], "[2 5]") {
		t.Errorf("%v, want one batch of items 2 and 5", got)
	}
}

// collates is a CollateSpec of which it matters only that it is set.
type collates struct{ stages.CollateSpec }

func (collates) Collates() bool { return true }

// remoteStep is a step that another process does.
type remoteStep struct {
	stepFunc
	stages.Remote
}

func TestCheckMixing(t *testing.T) {
	const python = "[{batch cutmix Batches of Python's Python makes the batches here, and pipectl can't mix their samples. Mix them where they are collated, or in the training step. false}]"
	tensor, cutmix := stages.TensorType(1, 2, 2), stages.Mixing{Cutmix: 1}
	tests := []struct {
		batch  BatchSpec
		sample stages.Type
		fused  bool
		want   string
	}{
		{BatchSpec{}, stages.Type{Kind: stages.Object}, true, "[]"},
		{BatchSpec{Mixing: cutmix}, tensor, false, "[]"},
		{BatchSpec{Mixing: cutmix}, tensor, true, python},
		{BatchSpec{Mixing: cutmix, Collate: collates{}}, tensor, false, python},
		{BatchSpec{Mixing: cutmix}, stages.Type{Kind: stages.Object}, false, python},
		{BatchSpec{Mixing: cutmix}, stages.Type{Kind: stages.Encoded}, false,
			"[{batch cutmix Samples that can't be mixed cutmix takes images or tensors of one size, and the batch gets encoded bytes. Leave it out. false}]"},
	}
	for _, tt := range tests {
		if got := fmt.Sprint(checkMixing(&tt.batch, tt.sample, tt.fused)); got != tt.want {
			t.Errorf("%+v of %v, fused = %v:\n got %s\nwant %s", tt.batch, tt.sample, tt.fused, got, tt.want)
		}
	}
	e := chain(&countSource{items: 8, ragged: true}, 4, nothing)
	e.Stages[1].Spec = &BatchSpec{Size: 4, Mixing: stages.Mixing{Mixup: 1}}
	if _, problems := Check(e); len(problems) != 1 || problems[0].Attribute != "mixup" {
		t.Errorf("ragged samples are mixed: %v", problems)
	}
	e = chain(&countSource{items: 8}, 4, nothing)
	e.Stages[1].Spec = &BatchSpec{Size: 4, Mixing: cutmix}
	e.Stages[2].Spec = remoteStep{stepFunc: nothing}
	want := "[{batch cutmix Batches of Python's The training function gets samples of one label each, and pipectl mixes them here. Mix them in the function. false}]"
	if _, problems := Check(e); fmt.Sprint(problems) != want {
		t.Errorf("samples are mixed for a step in another process: %v", problems)
	}
}
