package cpu

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

// bytesBatch returns a batch of images of 3×4 pixels.
func bytesBatch(n int) *stages.Batch {
	b := &stages.Batch{Len: n, Sample: stages.ImageType(3, 4), Labels: make([]int32, n), Items: make([]stages.Item, n)}
	for i := range n * b.Sample.Len() {
		b.U8 = append(b.U8, byte(i*7))
	}
	return b
}

// TestApply applies stages to batches one after the other: results lie in memory that is used again, and the host's batch stays as it
// is.
func TestApply(t *testing.T) {
	d := New("Test.")
	flip, convert := &stages.RandomFlip{P: 1}, &stages.Normalize{Mean: []float64{0.5}, Std: []float64{0.25}}
	var want []float32
	for round := range 100 {
		host := bytesBatch(5)
		before := slices.Clone(host.U8)
		b, err := d.Upload(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range []stages.StageSpec{flip, convert} {
			if b, err = d.Apply(t.Context(), b, spec, func(i int) *rand.Rand { return rand.New(rand.NewPCG(1, uint64(i))) }); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Ready.Wait(t.Context()); err != nil || b.Sample != stages.TensorType(3, 3, 4) || b.Len != 5 || &b.Labels[0] != &host.Labels[0] {
			t.Fatalf("%v; %d samples of %v", err, b.Len, b.Sample)
		}
		// The first value is the red of the first row's last pixel.
		if got := (float32(before[3*3])/255 - 0.5) / 0.25; b.F32[0] != got {
			t.Fatalf("%v, want %v", b.F32[0], got)
		}
		if round == 0 {
			want = slices.Clone(b.F32)
		}
		if !slices.Equal(b.F32, want) || !slices.Equal(host.U8, before) {
			t.Fatal("another round gives another result, or the host's batch was changed")
		}
		b.Free()
	}
	if n := len(d.applied.idle); n != 2 {
		t.Errorf("%d pieces of memory for two stages", n)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// closing is a spec whose instance is to be closed, and that fails or gives what it didn't promise.
type closing struct {
	process func(out *stages.Element) error
	err     error
}

func (c *closing) Output(in stages.Type) (stages.Type, error)           { return in, nil }
func (c *closing) New() (stages.Stage, error)                           { return c, nil }
func (c *closing) Process(_ *stages.Call, _, out *stages.Element) error { return c.process(out) }
func (c *closing) Close() error                                         { return c.err }

// TestApplyFails checks that an error leaves the batch as it was, to be freed or worked on.
func TestApplyFails(t *testing.T) {
	d := New("Test.")
	host := bytesBatch(2)
	b, err := d.Upload(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	broken := &closing{func(*stages.Element) error { return errors.New("broken") }, errors.New("can't be closed")}
	liar := &closing{func(out *stages.Element) error { out.Image(1, 1); return nil }, nil}
	unsized := &gpu.Batch{Batch: &stages.Batch{Len: 1, Sample: stages.ImageType(0, 0), Ragged: make([]stages.Element, 1)}}
	for _, tc := range []struct {
		name  string
		ctx   context.Context
		batch *gpu.Batch
		spec  stages.StageSpec
		want  string
	}{
		{"ended", ended, b, new(stages.ToFloat), "context canceled"},
		{"a failing stage", t.Context(), b, broken, "sample 0 of the batch: broken"},
		{"another type than promised", t.Context(), b, liar, "sample 0 of the batch: the stage gave uint8 image 1×1×3 where uint8 image 3×4×3 was promised"},
		{"samples of any size", t.Context(), unsized, new(stages.ToFloat), "Devices work on batches whose samples are all of one size, and it gets uint8 image ?×?×3. Resize the items above the batch (prepare \"resize\")."},
	} {
		if _, err := d.Apply(tc.ctx, tc.batch, tc.spec, nil); err == nil || err.Error() != tc.want {
			t.Errorf("%s: error %v, want %s", tc.name, err, tc.want)
		}
	}
	if _, err := d.Apply(t.Context(), b, new(stages.ToFloat), nil); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err == nil || err.Error() != "can't be closed" {
		t.Errorf("closing: %v", err)
	}
}
