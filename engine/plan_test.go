package engine

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

// TestSegments checks which stages share workers.
func TestSegments(t *testing.T) {
	auto := runtime.GOMAXPROCS(0)
	tests := []struct {
		name string
		edit func(e *Experiment)
		want string // first-last×workers/prefetch of each segment
	}{
		{"one each", func(e *Experiment) {}, "0-0×1/16 1-1×1/16 2-2×1/16 3-4×1/2 5-5×1/1 6-6×1/0"},
		{"workers and prefetch", func(e *Experiment) {
			e.Stages[1].Workers, e.Stages[1].Prefetch = 3, 5
			e.Stages[4].Prefetch, e.Stages[5].Prefetch = 7, 9
		}, "0-0×1/16 1-1×3/5 2-2×1/16 3-4×1/7 5-5×1/9 6-6×1/0"},
		{"the batch's own worker", func(e *Experiment) { e.Stages[4].Workers = 2 },
			"0-0×1/16 1-1×1/16 2-2×1/16 3-3×1/16 4-4×2/2 5-5×1/1 6-6×1/0"},
		{"auto is fused", func(e *Experiment) { e.Stages[1].Workers, e.Stages[2].Workers = Auto, Auto },
			fmt.Sprintf("0-0×1/16 1-2×%d/16 3-4×1/2 5-5×1/1 6-6×1/0", auto)},
		{"all auto", func(e *Experiment) {
			for i := range 4 {
				e.Stages[i].Workers = Auto
			}
		}, fmt.Sprintf("0-4×%d/2 5-5×1/1 6-6×1/0", auto)},
		{"a pool", func(e *Experiment) {
			e.Stages[1].Pool, e.Stages[2].Pool = "p", "p"
			e.Pools = []Pool{{Name: "p", Workers: 4, Prefetch: 3}}
		}, "0-0×1/16 1-2×4/3 3-4×1/2 5-5×1/1 6-6×1/0"},
		{"a pool up to batch", func(e *Experiment) {
			for i := range 5 {
				e.Stages[i].Pool = "p"
			}
			e.Pools = []Pool{{Name: "p", Workers: 4}}
		}, "0-4×4/2 5-5×1/1 6-6×1/0"},
		{"a pool with auto, and the batch's own prefetch", func(e *Experiment) {
			e.Stages[2].Pool, e.Stages[3].Pool, e.Stages[4].Prefetch = "p", "p", 5
			e.Pools = []Pool{{Name: "p", Workers: Auto, Prefetch: 3}}
		}, fmt.Sprintf("0-0×1/16 1-1×1/16 2-4×%d/5 5-5×1/1 6-6×1/0", auto)},
		{"two pools", func(e *Experiment) {
			e.Stages[0].Pool, e.Stages[1].Pool, e.Stages[2].Pool, e.Stages[3].Pool = "p", "p", "q", "q"
			e.Pools = []Pool{{Name: "p", Workers: 2}, {Name: "q", Workers: 3}}
		}, "0-1×2/16 2-4×3/2 5-5×1/1 6-6×1/0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := chain(&countSource{items: 100}, 8, nothing, prepare("a", pass), prepare("b", pass), prepare("c", pass))
			e.Stages = append(e.Stages[:5:5], Stage{Address: "transfer", Block: TransferBlock, Spec: &TransferSpec{}, Workers: 1}, e.Stages[5])
			tt.edit(e)
			p, problems := Compile(e, Dataset{Items: 100, Classes: 10}, 0)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			var got []string
			for _, g := range p.Segments {
				got = append(got, fmt.Sprintf("%d-%d×%d/%d", g.First, g.Last, g.Workers, g.Prefetch))
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("got  %s\nwant %s", s, tt.want)
			}
		})
	}
}

// TestCheck follows the types of a chain with faults in it: what can't be known is not complained about.
func TestCheck(t *testing.T) {
	step := nothing
	e := chain(&countSource{items: 10}, 2, step, prepare("a", pass))
	e.Stages[1].Spec = new(stages.RandomFlip)
	e.Stages = append(e.Stages[:2:2], append([]Stage{{Address: "prepare.decode", Block: stages.Prepare, Spec: new(stages.DecodeJPEG)},
		{Address: "augment.flip", Block: stages.Augment, Spec: new(stages.RandomFlip)}}, e.Stages[2:]...)...)
	types, problems := Check(e)
	tensor := stages.TensorType(1, 2, 2)
	if diff := cmp.Diff(types, []stages.Type{{}, tensor, tensor, {}, {}, {}}); diff != "" {
		t.Error(diff)
	}
	if len(problems) != 1 || problems[0].Address != "prepare.decode" || problems[0].Summary != "prepare.decode can't take float32 1×2×2" {
		t.Errorf("problems %+v", problems)
	}
}

// cpuStep is a step that asks for the CPU.
type cpuStep struct{ stepFunc }

func (cpuStep) Want() string { return "cpu" }

// TestCheckpoints reports caches that can't be, as far as the files alone tell: an item takes 16 B, and a batch of two 32 B.
func TestCheckpoints(t *testing.T) {
	const last = 3 // the boundary in front of the step
	for _, tt := range []struct {
		name string
		at   int
		c    Checkpoint
		want []Problem
	}{
		{"a limit of an item", 1, Checkpoint{Store: DiskStore, Mode: KeepMode, Limit: 16}, nil},
		{"a limit below", 1, Checkpoint{Store: DiskStore, Mode: KeepMode, Limit: 15}, []Problem{{Address: "checkpoint.c", Attribute: "limit", Summary: "No room for one item",
			Detail: "The cache may take 15 B, and one item takes 16 B. Set a higher limit, or leave it out."}}},
		{"compressed, it may fit", 1, Checkpoint{Store: DiskStore, Mode: KeepMode, Limit: 15, Compress: true}, nil},
		{"a probe that can be left out", 1, Checkpoint{Limit: 1}, nil},
		{"the ceiling can't", last, Checkpoint{Limit: 31}, []Problem{{Address: "checkpoint.c", Attribute: "limit", Summary: "No room for one batch",
			Detail: "The cache may take 31 B, and one batch takes 32 B. Set a higher limit, or leave it out."}}},
		{"a batch", last, Checkpoint{Limit: 32}, nil},
		{"pinned on the CPU", last, Checkpoint{Store: PinnedStore}, []Problem{{Address: "checkpoint.c", Attribute: "store", Summary: "No CUDA device",
			Detail: `Caches in store = "pinned" need a CUDA device, and the training step runs on the CPU. Leave store out.`}}},
		{"pinned, but off", last, Checkpoint{Store: PinnedStore, Mode: OffMode}, nil},
	} {
		e := chain(&countSource{items: 10}, 2, nothing, prepare("a", pass))
		e.Stages[last].Spec = cpuStep{nothing}
		tt.c.Name = "c"
		e.Stages[tt.at-1].Checkpoint = &tt.c
		_, problems := Check(e)
		if diff := cmp.Diff(tt.want, problems); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// shaper is a stage of which only the file says what shape it gives.
type shaper struct {
	stages.StageSpec
	out       stages.Type
	shapeless bool
}

func (s shaper) Output(stages.Type) (stages.Type, error) { return s.out, nil }
func (s shaper) Shapeless() bool                         { return s.shapeless }

// TestShapeAdvice names the block whose shape is missing.
func TestShapeAdvice(t *testing.T) {
	const refused = "It takes float32 C×H×W tensors of one size, and gets float32 3×?×?. A stage is missing above the one that makes the tensor: one that makes all pictures the same size, such as augment \"random_resized_crop\" or prepare \"center_crop\"."
	normalize := &stages.Normalize{Mean: []float64{0, 0, 0}, Std: []float64{1, 1, 1}}
	for _, tt := range []struct {
		name  string
		specs []any
		want  string
	}{
		{"after a crop", []any{&stages.RandomResizedCrop{Size: []int{64}}, shaper{out: stages.ImageType(0, 0), shapeless: true}, normalize},
			"prepare.s1 doesn't say what shape it gives: if that is always the same, set shape = [64, 64, 3] on its block. If it isn't: " + refused},
		{"after pictures of many sizes", []any{shaper{out: stages.ImageType(0, 0), shapeless: true}, normalize},
			"prepare.s0 doesn't say what shape it gives: if that is always the same, set shape = [height, width, 3] on its block. If it isn't: " + refused},
		{"a tensor", []any{shaper{out: stages.TensorType(3, 0, 0), shapeless: true}},
			"prepare.s0 doesn't say what shape it gives: if that is always the same, set shape = [channels, height, width] on its block. If it isn't: " + refused},
		{"of another stage", []any{shaper{out: stages.ImageType(0, 0)}, normalize}, refused},
	} {
		e := &Experiment{Stages: []Stage{{Address: "load.d", Block: stages.Load, Spec: shaper{out: stages.ImageType(0, 0)}}}}
		for i, spec := range tt.specs {
			e.Stages = append(e.Stages, Stage{Address: fmt.Sprintf("prepare.s%d", i), Block: stages.Prepare, Spec: spec})
		}
		e.Stages = append(e.Stages, Stage{Address: "train.step", Block: stages.Train, Spec: &gpu.CNN{Width: 4, Depth: 1, Stride: 1}})
		_, problems := Check(e)
		if len(problems) != 1 || problems[0].Address != "train.step" || problems[0].Detail != tt.want {
			t.Errorf("%s: %+v\nwant %s", tt.name, problems, tt.want)
		}
	}
}

// TestMemory refuses what wouldn't fit.
func TestMemory(t *testing.T) {
	e := chain(&countSource{items: 1 << 20}, 1<<19, nothing, prepare("a", pass))
	if _, problems := Compile(e, Dataset{Items: 1 << 20, Classes: 10}, 1<<30); len(problems) > 0 {
		t.Errorf("with 1 GiB: %v", problems)
	}
	_, problems := Compile(e, Dataset{Items: 1 << 20, Classes: 10}, 1<<24)
	if len(problems) != 1 || problems[0].Summary != "Not enough memory" || problems[0].Address != "batch" {
		t.Errorf("with 16 MiB: %+v", problems)
	}
}

// TestLayout checks where items and batches lie in epochs.
func TestLayout(t *testing.T) {
	for _, tt := range []struct {
		items, size int
		drop        bool
		batches     int
		lengths     []int
	}{
		{10, 4, false, 3, []int{4, 4, 2, 4, 4, 2}},
		{10, 4, true, 2, []int{4, 4, 4, 4}},
		{8, 4, true, 2, []int{4, 4, 4}},
		{3, 4, true, 1, []int{3, 3}},
		{1, 1, true, 1, []int{1, 1}},
	} {
		l := newLayout(tt.items, &BatchSpec{Size: tt.size, DropLast: tt.drop})
		if l.batches() != tt.batches {
			t.Errorf("%+v: %d batches", tt, l.batches())
		}
		seq := int64(0)
		for b, n := range tt.lengths {
			if got := l.length(int64(b)); got != n {
				t.Errorf("%+v: batch %d has %d items", tt, b, got)
			}
			for slot := range n {
				if gb, gs := l.place(seq); gb != int64(b) || gs != slot {
					t.Errorf("%+v: item %d is in batch %d, slot %d", tt, seq, gb, gs)
				}
				seq++
			}
		}
	}
}
