package gpu

import (
	"math"
	"slices"
	"testing"

	"github.com/pipectl/pipectl/stages"
)

func TestInit(t *testing.T) {
	n, err := (&CNN{Width: 64, Depth: 2, Stride: 1}).Net(Input{Sample: stages.TensorType(16, 32, 32), Batch: 1, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	params := n.Init(3)
	if len(params) != n.Params {
		t.Fatalf("%d parameters, want %d", len(params), n.Params)
	}
	for _, tc := range []struct {
		name             string
		from, to         int
		variance, within float64
	}{
		{"weights of block 0", n.Blocks[0].Weights, n.Blocks[0].Bias, 2. / (9 * 16), 0.05},
		{"bias of block 0", n.Blocks[0].Bias, n.Blocks[1].Weights, 0, 0},
		{"weights of block 1", n.Blocks[1].Weights, n.Blocks[1].Bias, 2. / (9 * 64), 0.05},
		{"bias of block 1", n.Blocks[1].Bias, n.Weights, 0, 0},
		{"weights of the linear layer", n.Weights, n.Bias, 1. / (8 * 8 * 128), 0.05},
		{"bias of the linear layer", n.Bias, n.Params, 0, 0},
	} {
		mean, square := 0.0, 0.0
		for _, v := range params[tc.from:tc.to] {
			mean += float64(v) / float64(tc.to-tc.from)
			square += float64(v) * float64(v) / float64(tc.to-tc.from)
		}
		if math.Abs(square-tc.variance) > tc.within*tc.variance || math.Abs(mean) > tc.within*math.Sqrt(tc.variance) {
			t.Errorf("%s: mean %v and variance %v, want 0 and %v", tc.name, mean, square-mean*mean, tc.variance)
		}
	}
	if !slices.Equal(params, n.Init(3)) {
		t.Error("the same seed gives other parameters")
	}
	if slices.Equal(params, n.Init(4)) {
		t.Error("another seed gives the same parameters")
	}
}

func BenchmarkInit(b *testing.B) {
	n, err := (&CNN{Width: 32, Depth: 3, Stride: 1}).Net(Input{Sample: stages.TensorType(3, 32, 32), Batch: 1, Classes: 10})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		n.Init(1)
	}
}
