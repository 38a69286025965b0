package stages

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// syntheticSpec returns the defaults, changed.
func syntheticSpec(change func(*Synthetic)) *Synthetic {
	s := syntheticOperator().New().(*Synthetic)
	change(s)
	return s
}

// readItem reads an item into an element of its own.
func readItem(tb testing.TB, src Source, i int) (*Element, int32) {
	tb.Helper()
	out := new(Element)
	label, err := src.Read(new(Call), i, out)
	if err != nil {
		tb.Fatal(err)
	}
	return out.Result(), label
}

func TestSynthetic(t *testing.T) {
	for _, tt := range []struct {
		name string
		spec *Synthetic
		want Type
		size int // bytes of an item; 0: any
	}{
		{"defaults", syntheticSpec(func(*Synthetic) {}), ImageType(224, 224), 224 * 224 * 3},
		{"one pixel", syntheticSpec(func(s *Synthetic) { s.Shape = []int{1, 1, 3} }), ImageType(1, 1), 3},
		{"image", syntheticSpec(func(s *Synthetic) { s.Shape = []int{30, 50, 3} }), ImageType(30, 50), 4500},
		{"bytes", syntheticSpec(func(s *Synthetic) { s.Kind, s.Bytes = "bytes", 1001 }), Type{Opaque, Shape{1001}}, 1001},
		{"jpeg", syntheticSpec(func(s *Synthetic) { s.Encode = "jpeg" }), Type{Kind: Encoded}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.spec.Validate(); got != nil {
				t.Errorf("Validate() = %v, want nothing", got)
			}
			if got := tt.spec.Output(); got != tt.want {
				t.Errorf("Output() = %v, want %v", got, tt.want)
			}
			src, again, other := openSource(t, tt.spec, 7), openSource(t, tt.spec, 7), openSource(t, tt.spec, 8)
			if src.Len() != 1000 || src.Classes() != 10 {
				t.Errorf("%d items in %d classes, want 1000 in 10", src.Len(), src.Classes())
			}
			var different [][]byte
			for i := range 100 {
				got, label := readItem(t, src, i)
				if got.Type != tt.want || tt.size > 0 && len(got.U8) != tt.size || label != int32(i%10) {
					t.Fatalf("item %d: %v of %d bytes, label %d", i, got.Type, len(got.U8), label)
				}
				same := func(b []byte) bool { return bytes.Equal(got.U8, b) }
				if !slices.ContainsFunc(different, same) {
					different = append(different, got.U8)
				}
			}
			if len(different) != maxPayloads {
				t.Errorf("%d different items, want %d", len(different), maxPayloads)
			}
			a, _ := readItem(t, src, 3)
			b, _ := readItem(t, again, 3)
			c, _ := readItem(t, other, 3)
			if !bytes.Equal(a.U8, b.U8) || bytes.Equal(a.U8, c.U8) {
				t.Error("an item doesn't depend on the seed alone")
			}
		})
	}
}

// A JPEG item is a real file, of about half a byte a pixel, whose picture is the one that isn't encoded.
func TestSyntheticJPEG(t *testing.T) {
	plain := openSource(t, syntheticSpec(func(*Synthetic) {}), 7)
	src := openSource(t, syntheticSpec(func(s *Synthetic) { s.Encode = "jpeg" }), 7)
	decoder := newDecoder(t, &DecodeJPEG{MaxPixels: maxDecoded})
	for i := range 5 {
		file, _ := readItem(t, src, i)
		out := new(Element)
		if err := decoder.Process(new(Call), file, out); err != nil {
			t.Fatal(err)
		}
		want, _ := readItem(t, plain, i)
		if out.Type != want.Type {
			t.Fatalf("%v, want %v", out.Type, want.Type)
		}
		if mean, _ := difference(out.U8, want.U8); mean > 8 {
			t.Errorf("item %d differs from its picture by %.1f", i, mean)
		}
		if perPixel := float64(len(file.U8)) / (224 * 224); math.Abs(perPixel-0.5) > 0.15 {
			t.Errorf("item %d takes %.2f bytes a pixel, want about 0.5", i, perPixel)
		}
	}
}

func TestSyntheticMemory(t *testing.T) {
	for _, tt := range []struct {
		spec *Synthetic
		want int
	}{
		{syntheticSpec(func(s *Synthetic) { s.Items = math.MaxInt }), 64},
		{syntheticSpec(func(s *Synthetic) { s.Items = 3 }), 3},
		{syntheticSpec(func(s *Synthetic) { s.Kind, s.Bytes = "bytes", 100<<20 }), 2},
		{syntheticSpec(func(s *Synthetic) { s.Kind, s.Bytes = "bytes", 2<<30 }), 1},
		{syntheticSpec(func(s *Synthetic) { s.Shape = []int{4096, 4096, 3} }), 5},
	} {
		if got := len(openSource(t, tt.spec, 1).(*syntheticSource).payloads); got != tt.want {
			t.Errorf("%d different items, want %d", got, tt.want)
		}
	}
}

func TestSyntheticProblems(t *testing.T) {
	shape := func(got string) []Problem {
		return []Problem{{Attribute: "shape", Summary: "Not an image's shape", Detail: "A shape is [height, width, 3], for red, green and blue; this one is " + got + "."}}
	}
	for _, tt := range []struct {
		spec *Synthetic
		want []Problem
	}{
		{syntheticSpec(func(s *Synthetic) { s.Shape = []int{224} }), shape("[224]")},
		{syntheticSpec(func(s *Synthetic) { s.Shape = []int{224, 224, 1} }), shape("[224, 224, 1]")},
		{syntheticSpec(func(s *Synthetic) { s.Shape = []int{65500, 65500, 3} }), []Problem{{Attribute: "shape", Summary: "Picture too large",
			Detail: "A picture has at most 178956970 pixels, the most that decode stages take by default."}}},
		{syntheticSpec(func(s *Synthetic) { s.Kind, s.Encode = "bytes", "jpeg" }), []Problem{{Attribute: "encode", Summary: "Bytes can't be encoded",
			Detail: `Only pictures are encoded as JPEG. Use kind = "image", or leave out encode.`}}},
	} {
		if diff := cmp.Diff(tt.want, tt.spec.Validate()); diff != "" {
			t.Error(diff)
		}
		tt.spec.Output()
	}
}

func BenchmarkSynthetic(b *testing.B) {
	src := openSource(b, syntheticSpec(func(s *Synthetic) { s.Items = math.MaxInt }), 1)
	c, out := new(Call), new(Element)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := src.Read(c, i, out); err != nil {
			b.Fatal(err)
		}
		out.Result()
	}
}
