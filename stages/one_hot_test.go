package stages

import (
	"fmt"
	"slices"
	"testing"
)

// The expected values are those of torch.nn.functional.one_hot(torch.tensor([2, 0, 2, 1]), 3).
func TestOneHot(t *testing.T) {
	s, out := newStage(t, &OneHot{3}), new(Element)
	for range 2 { // the second time in memory that isn't 0
		if err := s.Process(&Call{}, &Element{Type: Type{Tokens, Shape{4}}, I32: []int32{2, 0, 2, 1}}, out); err != nil {
			t.Fatal(err)
		}
		want := []float32{0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 1, 0}
		if out.Type != TensorType(1, 4, 3) || !slices.Equal(out.F32, want) {
			t.Errorf("%v %v, want %v", out.Type, out.F32, want)
		}
		for i := range out.F32 {
			out.F32[i] = 7
		}
	}
}

func TestOneHotOfNoClass(t *testing.T) {
	for _, token := range []int32{-1, 3} {
		want := fmt.Sprintf("token %d, in place 1, isn't one of 3 classes: give classes a number above the largest token", token)
		err := newStage(t, &OneHot{3}).Process(&Call{}, &Element{Type: Type{Tokens, Shape{2}}, I32: []int32{0, token}}, new(Element))
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestOneHotOutput(t *testing.T) {
	tests := []struct {
		in   Type
		want string
	}{
		{Type{Tokens, Shape{5}}, "float32 1×5×3 <nil>"},
		{Type{Kind: Tokens}, "float32 1×?×3 <nil>"},
		{Type{Kind: Encoded}, "unknown It takes tokens, and gets encoded bytes. Remove it, or put it below what gives tokens."},
	}
	for _, tt := range tests {
		out, err := (&OneHot{3}).Output(tt.in)
		if got := fmt.Sprint(out, err); got != tt.want {
			t.Errorf("of %v:\n got %s\nwant %s", tt.in, got, tt.want)
		}
	}
}

func BenchmarkOneHot(b *testing.B) {
	in := &Element{Type: Type{Tokens, Shape{128}}, I32: make([]int32, 128)}
	for i := range in.I32 {
		in.I32[i] = int32(i * 7 % 1000)
	}
	benchmark(b, &OneHot{1000}, in)
}
