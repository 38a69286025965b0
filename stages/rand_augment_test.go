package stages

import (
	"fmt"
	"slices"
	"testing"
)

func defaultRandAugment() *RandAugment { return randAugmentOperator().New().(*RandAugment) }

// The result is what the drawn steps make of the image, one after the other, whatever their number.
func TestRandAugment(t *testing.T) {
	in := golden(t, "resize_bilinear_24x32")
	for ops := range 6 {
		spec := defaultRandAugment()
		spec.NumOps = ops
		s := newStage(t, spec).(*randAugmenter)
		s.draw(testCall(t.Context()).Rand, 24, 32)
		steps := slices.Clone(s.augmenter.steps)
		s.augmenter.steps = nil
		want := in
		for _, step := range steps {
			next := new(Element)
			next.Image(24, 32)
			s.augmenter.apply(step, pixelsOf(next), pixelsOf(want))
			want = next
		}
		if got := process(t, spec, in); got.Type != in.Type || !slices.Equal(got.U8, want.U8) {
			t.Errorf("%d ops: not what the steps %v make of it", ops, steps)
		}
	}
}

// All steps have the magnitude of one bin, with either sign where they have one.
func TestRandAugmentDraw(t *testing.T) {
	spec := &RandAugment{NumOps: 7000, Magnitude: 2, NumMagnitudeBins: 5, Fill: []int{0}}
	s := newStage(t, spec).(*randAugmenter)
	s.draw(testCall(t.Context()).Rand, 331, 662)
	count := make(map[string]int)
	for _, step := range s.augmenter.steps {
		count[fmt.Sprintf("%d %.4g", step.augmentation, step.magnitude)]++
	}
	want := map[string]int{
		"1 0.15": 250, "1 -0.15": 250, "2 0.15": 250, "2 -0.15": 250, "3 150": 250, "3 -150": 250, "4 75": 250, "4 -75": 250, "5 15": 250, "5 -15": 250,
		"6 0.45": 250, "6 -0.45": 250, "7 0.45": 250, "7 -0.45": 250, "8 0.45": 250, "8 -0.45": 250, "9 0.45": 250, "9 -0.45": 250,
		"10 6": 500, "11 127.5": 500, "12 0": 500, "13 0": 500,
	}
	for step, n := range count {
		if n < want[step]*3/4 || n > want[step]*5/4 {
			t.Errorf("step %s came %d times, want about %d", step, n, want[step])
		}
	}
	if len(count) != len(want) {
		t.Errorf("%d different steps, want %d", len(count), len(want))
	}
}

func TestRandAugmentValidate(t *testing.T) {
	spec := defaultRandAugment()
	if got := fmt.Sprint(spec.Validate()); got != "[]" {
		t.Errorf("the defaults: %s", got)
	}
	spec.Magnitude, spec.Fill = 31, nil
	const want = "[{magnitude Magnitude too large With num_magnitude_bins = 31 it is at most 30. false} " +
		"{fill Not a colour A colour is one number for all channels, or a list of three, [red, green, blue]. This list has 0. false}]"
	if got := fmt.Sprint(spec.Validate()); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func BenchmarkRandAugment(b *testing.B) { benchmark(b, defaultRandAugment(), testImage(224, 224)) }
