//go:build cuda

package cuda

import (
	"errors"

	"github.com/pipectl/pipectl/gpu"
)

// images returns the PTX of the kernels.
func images() []string { return nil }

// NewClassifier makes the step of `train "cnn"`.
func (d *Device) NewClassifier(*gpu.CNN, gpu.Input) (gpu.Classifier, error) {
	return nil, errors.New("the GPU has no classifier yet")
}
