package cpu

import (
	"compress/gzip"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

const fashion = "../../examples/fashion/data"

// readIdx returns the bytes of an idx file after its header of n numbers.
func readIdx(t *testing.T, name string, n int) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join(fashion, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	header := make([]uint32, n)
	if err := binary.Read(z, binary.BigEndian, header); err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// fashionBatches returns images and labels in the given order (nil: the file's), in batches.
func fashionBatches(t *testing.T, images, labels string, size int) []*gpu.Batch {
	t.Helper()
	const pixels = 28 * 28
	sample := stages.TensorType(1, 28, 28)
	picture, label := readIdx(t, images, 4), readIdx(t, labels, 2)
	var batches []*gpu.Batch
	for i := 0; i < len(label); i += size {
		b := &stages.Batch{Sample: sample, Len: min(size, len(label)-i)}
		for j := i; j < i+b.Len; j++ {
			b.Labels = append(b.Labels, int32(label[j]))
			for _, v := range picture[j*pixels:][:pixels] {
				b.F32 = append(b.F32, (float32(v)/255-0.286)/0.353) // the training images' mean and standard deviation
			}
		}
		batches = append(batches, &gpu.Batch{Batch: b, Ready: gpu.Passed{}})
	}
	return batches
}

// The network learns to tell real pictures apart: Fashion-MNIST's first 6,000 training images, tried on 1,000 others.
func TestLearnsFashion(t *testing.T) {
	const size = 32
	epochs, steps, want := 5, 188, 0.80
	if raceEnabled {
		epochs, steps, want = 1, 60, 0.50
	}
	train := fashionBatches(t, "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", size)
	test := fashionBatches(t, "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz", size)
	s := open(t, gpu.CNN{Width: 8, Depth: 3, Stride: 1, LearningRate: 0.01, Momentum: 0.9}, train[0].Sample, size, 10)
	order := rand.New(rand.NewPCG(1, 2))
	for epoch := range epochs {
		sum := 0.0
		for _, i := range order.Perm(len(train))[:steps] {
			submit(t, s, train[i])
			sum += s.loss
		}
		t.Logf("epoch %d: mean loss %.3f", epoch, sum/float64(steps))
	}
	right, total := 0, 0
	for _, b := range test {
		classes := make([]int32, b.Len)
		if err := s.Predict(t.Context(), b, classes); err != nil {
			t.Fatal(err)
		}
		for i, c := range classes {
			total++
			if c == b.Labels[i] {
				right++
			}
		}
	}
	accuracy := float64(right) / float64(total)
	t.Logf("%d of %d right: %.1f %%", right, total, 100*accuracy)
	if accuracy <= want || total != 1000 {
		t.Errorf("%d of %d right, want more than %.0f %% of 1,000", right, total, 100*want)
	}
}
