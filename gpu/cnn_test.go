package gpu

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/stages"
)

func TestCNNAccepts(t *testing.T) {
	for _, tc := range []struct {
		name          string
		sample        stages.Type
		depth, stride int
		want          string // "" for no error
	}{
		{"tensor", stages.TensorType(3, 32, 32), 3, 1, ""},
		{"not known", stages.Type{}, 3, 1, ""},
		{"smallest", stages.TensorType(1, 8, 8), 3, 1, ""},
		{"smallest with stride 2", stages.TensorType(1, 15, 15), 3, 2, ""},
		{"encoded", stages.Type{Kind: stages.Encoded}, 3, 1,
			`It takes float32 C×H×W tensors of one size, and gets encoded bytes. Three stages are missing above it: one that decodes, such as prepare "decode_jpeg"; one that makes all pictures the same size, such as augment "random_resized_crop" or prepare "center_crop"; and prepare "normalize" (or "to_float").`},
		{"image", stages.ImageType(32, 32), 3, 1,
			`It takes float32 C×H×W tensors of one size, and gets uint8 image 32×32×3. A stage is missing above it: prepare "normalize" (or "to_float").`},
		{"images of many sizes", stages.ImageType(0, 32), 3, 1,
			`It takes float32 C×H×W tensors of one size, and gets uint8 image ?×32×3. Two stages are missing above it: one that makes all pictures the same size, such as augment "random_resized_crop" or prepare "center_crop"; and prepare "normalize" (or "to_float").`},
		{"tensors of many sizes", stages.TensorType(3, 0, 0), 3, 1,
			`It takes float32 C×H×W tensors of one size, and gets float32 3×?×?. A stage is missing above the one that makes the tensor: one that makes all pictures the same size, such as augment "random_resized_crop" or prepare "center_crop".`},
		{"tokens", stages.Type{Kind: stages.Tokens, Shape: stages.Shape{512}}, 3, 1,
			`It takes float32 C×H×W tensors of one size, and gets int32 tokens [512]. Load pictures, or take train "emulated", which eats anything.`},
		{"opaque", stages.Type{Kind: stages.Opaque}, 3, 1,
			`It takes float32 C×H×W tensors of one size, and gets opaque bytes [?]. Load pictures, or take train "emulated", which eats anything.`},
		{"too small for the depth", stages.TensorType(3, 7, 32), 3, 1,
			`depth = 3 with stride = 1 leaves nothing of pictures of 7×32 after block 3. Set depth to 2 or less, or make the pictures larger above it.`},
		{"too small for the stride", stages.TensorType(3, 14, 14), 3, 2,
			`depth = 3 with stride = 2 leaves nothing of pictures of 14×14 after block 3. Set depth to 2 or less, or make the pictures larger above it.`},
		{"too small for any depth", stages.TensorType(3, 1, 9), 1, 1,
			`depth = 1 with stride = 1 leaves nothing of pictures of 1×9 after block 1. Make the pictures larger above it.`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ""
			if err := (&CNN{Width: 4, Depth: tc.depth, Stride: tc.stride}).Accepts(tc.sample); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tc.want)
			}
		})
	}
}

func TestNet(t *testing.T) {
	cnn := &CNN{Width: 4, Depth: 2, Stride: 2}
	in := Input{Sample: stages.TensorType(3, 21, 32), Batch: 8, Classes: 10}
	got, err := cnn.Net(in)
	if err != nil {
		t.Fatal(err)
	}
	want := &Net{
		Blocks: []Conv{
			{H: 21, W: 32, In: 3, Out: 4, Stride: 2, Weights: 0, Bias: 108},
			{H: 5, W: 8, In: 4, Out: 8, Stride: 1, Weights: 112, Bias: 400},
		},
		Features: 2 * 4 * 8,
		Classes:  10,
		Weights:  408,
		Bias:     1048,
		Params:   1058,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("network (-want +got):\n%s", diff)
	}
}

func TestNetErrors(t *testing.T) {
	tensor := stages.TensorType(3, 32, 32)
	for _, tc := range []struct {
		name    string
		classes int
		in      Input
		want    string // "" for no error
	}{
		{"the source's classes", 0, Input{Sample: tensor, Batch: 1, Classes: 10}, ""},
		{"more classes", 20, Input{Sample: tensor, Batch: 1, Classes: 10}, ""},
		{"no labels", 10, Input{Sample: tensor, Batch: 1}, ""},
		{"too few classes", 9, Input{Sample: tensor, Batch: 1, Classes: 10},
			"classes = 9 is less than the 10 classes of the loaded items: set it to 10, or leave it out"},
		{"no labels or classes", 0, Input{Sample: tensor, Batch: 1},
			"the loaded items have no labels to learn: set classes, or load labelled ones"},
		{"no batch", 0, Input{Sample: tensor, Classes: 10}, "a batch of 0 samples can't be trained on"},
		{"type not known", 0, Input{Batch: 1, Classes: 10}, "the samples' type is not known"},
		{"wrong type", 0, Input{Sample: stages.ImageType(32, 32), Batch: 1, Classes: 10},
			`It takes float32 C×H×W tensors of one size, and gets uint8 image 32×32×3. A stage is missing above it: prepare "normalize" (or "to_float").`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ""
			if _, err := (&CNN{Classes: tc.classes, Width: 4, Depth: 2, Stride: 1}).Net(tc.in); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tc.want)
			}
		})
	}
}

// TestLearningRateLimit holds the learning rate to what float32 weights can be updated with.
func TestLearningRateLimit(t *testing.T) {
	for _, a := range stages.Attributes(cnnOperator().New()) {
		if a.Name == "learning_rate" && (!a.Allows(1e6) || a.Allows(1e39) || a.Allows(0.0)) {
			t.Errorf("learning_rate must be %s", a.Limits())
		}
	}
}

func TestCNNValidate(t *testing.T) {
	for _, tc := range []struct {
		device, precision string
		problems          int
	}{{"cpu", "float32", 0}, {"auto", "tf32", 0}, {"cuda", "tf32", 0}, {"cpu", "tf32", 1}} {
		if got := (&CNN{Device: tc.device, Precision: tc.precision}).Validate(); len(got) != tc.problems {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}
