package gpu

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/stages"
)

func TestAdd(t *testing.T) {
	r := new(stages.Registry)
	Add(r)
	if diff := cmp.Diff([]string{"cnn", "emulated"}, r.Types(stages.Train)); diff != "" {
		t.Errorf("train operators (-want +got):\n%s", diff)
	}
	for _, op := range r.Operators() {
		spec, ok := op.New().(TrainSpec)
		if !ok {
			t.Errorf("the spec of %s is no TrainSpec", op.Type)
			continue
		}
		if err := spec.Accepts(stages.TensorType(3, 32, 32)); err != nil {
			t.Errorf("%s with its defaults doesn't accept a tensor: %v", op.Type, err)
		}
	}
}
