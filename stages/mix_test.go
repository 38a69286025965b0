package stages

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// tensors returns a batch of n tensors of 2×2×3 whose values are their number and the place in them: sample 1 begins with 100.
func tensors(n int) *Batch {
	b := &Batch{Len: n, Sample: TensorType(2, 2, 3)}
	for i := range n {
		b.Labels = append(b.Labels, int32(10*i))
		for j := range 12 {
			b.F32 = append(b.F32, float32(100*i+j))
		}
	}
	return b
}

// The other of a sample is the one before it, as with torch.roll(1, 0).
func TestMixup(t *testing.T) {
	b := tensors(3)
	b.Len = 2 // short of a sample, as an epoch's last batch
	NewMixer(Mixing{}).mixup(b, 0.75)
	var want []float32
	for _, first := range []float32{25, 75, 200} {
		for j := range 12 {
			want = append(want, first+float32(j))
		}
	}
	if !slices.Equal(b.F32, want) || b.Own != 0.75 {
		t.Errorf("%v, own %v, want %v, own 0.75", b.F32, b.Own, want)
	}
}

func TestCutmix(t *testing.T) {
	b := tensors(3)
	NewMixer(Mixing{}).cutmix(b, box{Top: 1, Left: 1, Height: 1, Width: 2})
	want := []float32{
		0, 1, 2, 3, 204, 205, 6, 7, 8, 9, 210, 211,
		100, 101, 102, 103, 4, 5, 106, 107, 108, 109, 10, 11,
		200, 201, 202, 203, 104, 105, 206, 207, 208, 209, 110, 111,
	}
	if own := float32(1 - 2./6); !slices.Equal(b.F32, want) || b.Own != own {
		t.Errorf("%v, own %v, want %v, own %v", b.F32, b.Own, want, own)
	}
}

func TestCutmixOfImages(t *testing.T) {
	b := &Batch{Len: 2, Sample: ImageType(2, 2)}
	for i := range 24 {
		b.U8 = append(b.U8, byte(i))
	}
	NewMixer(Mixing{}).cutmix(b, box{Top: 0, Left: 1, Height: 2, Width: 1})
	want := []byte{0, 1, 2, 15, 16, 17, 6, 7, 8, 21, 22, 23, 12, 13, 14, 3, 4, 5, 18, 19, 20, 9, 10, 11}
	if !slices.Equal(b.U8, want) || b.Own != 0.5 {
		t.Errorf("%v, own %v, want %v, own 0.5", b.U8, b.Own, want)
	}
}

// A batch is mixed in one of the two ways, and its memory is used again.
func TestMix(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	m := NewMixer(Mixing{Mixup: 0.2, Cutmix: 1})
	b, cut := tensors(4), 0
	const n = 2000
	for range n {
		fresh := tensors(4)
		copy(b.F32, fresh.F32)
		m.Mix(b, r)
		if !b.Mixed || !slices.Equal(b.Labels, fresh.Labels) || b.Other(0) != 3 || b.Other(3) != 2 {
			t.Fatalf("mixed: %v, labels %v, others of the first and last %d and %d", b.Mixed, b.Labels, b.Other(0), b.Other(3))
		}
		// With cutmix every value is one sample's or another's.
		if first := b.F32[12] - 100*b.Own; slices.Contains([]float32{0, 100}, b.F32[12]) && slices.Contains([]float32{5, 105}, b.F32[17]) {
			cut++
		} else if math.Abs(float64(first)) > 1e-4 {
			t.Fatalf("the first value is %v with own %v", b.F32[12], b.Own)
		}
	}
	if cut < n*45/100 || cut > n*65/100 { // λ of mixup is often near 0 or 1 too
		t.Errorf("%d of %d by cutmix", cut, n)
	}
	if n := testing.AllocsPerRun(10, func() { m.Mix(b, r) }); n > 0 {
		t.Errorf("it allocates %v times a batch", n)
	}
}

// Beta(α, α) has the mean 1/2 and the variance 1/(8α + 4).
func TestBeta(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, alpha := range []float64{1e-3, 0.2, 1, 8} {
		const n = 20000
		mean, variance := 0.0, 0.0
		for range n {
			v := beta(r, alpha)
			if !(v >= 0 && v <= 1) {
				t.Fatalf("drew %v with α = %v", v, alpha)
			}
			mean += v / n
			variance += (v - 0.5) * (v - 0.5) / n
		}
		if want := 1 / (8*alpha + 4); math.Abs(mean-0.5) > 0.015 || math.Abs(variance/want-1) > 0.05 {
			t.Errorf("α = %v: mean %v, variance %v, want 0.5 and %v", alpha, mean, variance, want)
		}
	}
}

func TestDrawCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, w := rapid.IntRange(1, 100).Draw(t, "h"), rapid.IntRange(1, 100).Draw(t, "w")
		own := rapid.Float64Range(0, 1).Draw(t, "own")
		b := drawCut(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), own, h, w)
		if b.Top < 0 || b.Left < 0 || b.Height < 0 || b.Width < 0 || b.Top+b.Height > h || b.Left+b.Width > w || float64(b.Height*b.Width) > (1-own)*float64(h*w) {
			t.Errorf("%+v of %d×%d with own %v", b, h, w, own)
		}
	})
}

func TestMixingProblems(t *testing.T) {
	tensor, image := TensorType(3, 8, 8), ImageType(8, 8)
	const size = `Make all pictures the same size above it, such as with augment "random_resized_crop" or prepare "resize".`
	tests := []struct {
		mixing Mixing
		sample Type
		want   string
	}{
		{Mixing{}, Type{Kind: Encoded}, ""},
		{Mixing{1, 1}, Type{}, ""},
		{Mixing{1, 1}, tensor, ""},
		{Mixing{0, 1}, image, ""},
		{Mixing{1, 1}, image, `mixup takes tensors of one size, and the batch gets uint8 image 8×8×3. Make tensors of images above it, with prepare "normalize" or "to_float", and not on the device. Leave mixup out for anything else.`},
		{Mixing{1, 0}, TensorType(3, 0, 8), "mixup takes tensors of one size, and the batch gets float32 3×?×8. " + size},
		{Mixing{0, 1}, ImageType(0, 0), "cutmix takes images or tensors of one size, and the batch gets uint8 image ?×?×3. " + size},
		{Mixing{0, 1}, Type{Tokens, Shape{8}}, "cutmix takes images or tensors of one size, and the batch gets int32 tokens [8]. Leave it out."},
	}
	for _, tt := range tests {
		got := ""
		for _, p := range tt.mixing.Problems(tt.sample) {
			got += p.Detail
		}
		if got != tt.want {
			t.Errorf("%+v of %v:\n got %s\nwant %s", tt.mixing, tt.sample, got, tt.want)
		}
	}
}

func BenchmarkMix(b *testing.B) {
	batch := &Batch{Len: 64, Sample: TensorType(3, 224, 224), Labels: make([]int32, 64), F32: make([]float32, 64*3*224*224)}
	r := rand.New(rand.NewPCG(1, 2))
	for _, m := range []Mixing{{Mixup: 0.2}, {Cutmix: 1}} {
		b.Run(fmt.Sprintf("mixup=%v,cutmix=%v", m.Mixup, m.Cutmix), func(b *testing.B) {
			mixer := NewMixer(m)
			b.SetBytes(int64(batch.Size()))
			b.ReportAllocs()
			for b.Loop() {
				mixer.Mix(batch, r)
			}
		})
	}
}
