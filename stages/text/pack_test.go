package text

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pipectl/pipectl/stages"
)

func tokens(ids ...int32) *stages.Element {
	e := new(stages.Element)
	copy(resize(e, len(ids)), ids)
	return e
}

func TestPack(t *testing.T) {
	stage := newStage(t, &Pack{Length: 3, PadID: 9})
	out := tokens(7, 7, 7) // as after another item
	for _, tt := range []struct{ in, want []int32 }{
		{[]int32{}, []int32{9, 9, 9}},
		{[]int32{1, 2}, []int32{1, 2, 9}},
		{[]int32{1, 2, 3}, []int32{1, 2, 3}},
		{[]int32{1, 2, 3, 4}, []int32{1, 2, 3}},
	} {
		in := tokens(tt.in...)
		if err := stage.Process(new(stages.Call), in, out); err != nil {
			t.Fatal(err)
		}
		got := out.Result()
		if got.Type != (stages.Type{Kind: stages.Tokens, Shape: stages.Shape{3}}) || !slices.Equal(got.I32, tt.want) || !slices.Equal(in.I32, tt.in) {
			t.Errorf("%v becomes %v %v, want %v", tt.in, got.Type, got.I32, tt.want)
		}
	}
}

func TestPackOutput(t *testing.T) {
	for in, want := range map[stages.Type]string{
		{Kind: stages.Tokens}:  "int32 tokens [3] <nil>",
		{}:                     "int32 tokens [3] <nil>",
		{Kind: stages.Opaque}:  `unknown It takes tokens, and gets opaque bytes [?]. Put prepare "tokenize" above it.`,
		stages.ImageType(1, 2): "unknown It takes tokens, and gets uint8 image 1×2×3. Remove it, or load text.",
	} {
		out, err := (&Pack{Length: 3}).Output(in)
		if got := fmt.Sprint(out, " ", err); got != want {
			t.Errorf("of %v: %s, want %s", in, got, want)
		}
	}
}

func BenchmarkPack(b *testing.B) {
	stage, in, out, c := newStage(b, &Pack{Length: 1024}), tokens(make([]int32, 700)...), new(stages.Element), new(stages.Call)
	b.ReportAllocs()
	for b.Loop() {
		if err := stage.Process(c, in, out); err != nil {
			b.Fatal(err)
		}
	}
}
