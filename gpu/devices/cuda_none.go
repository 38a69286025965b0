//go:build !cuda

package devices

import (
	"errors"

	"github.com/pipectl/pipectl/gpu"
)

// openCUDA opens the first CUDA device, or says why it can't. why is what its Info shall say.
func openCUDA(string) (gpu.Device, error) {
	return nil, &gpu.Unusable{Err: errors.New("this build has no CUDA support"), Fix: "Build pipectl with `make build`, which adds it on Linux."}
}
