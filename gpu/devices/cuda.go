//go:build cuda

package devices

import (
	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/cuda"
)

// openCUDA opens the first CUDA device, or says why it can't. why is what its Info shall say.
func openCUDA(why string) (gpu.Device, error) {
	d, err := cuda.Open(why)
	if err != nil {
		return nil, err // not d: a nil *cuda.Device in a gpu.Device isn't nil
	}
	return d, nil
}
