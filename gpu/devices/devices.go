// Package devices picks the device that a training step runs on.
package devices

import (
	"fmt"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/cpu"
)

// Open returns the device that a step wants: "cpu", "cuda", or "auto", which is CUDA where it can be used and else the
// CPU. Its Info says which it is and why.
func Open(want string) (gpu.Device, error) {
	switch want {
	case "cpu":
		return cpu.New("The step asks for the CPU."), nil
	case "cuda":
		d, err := openCUDA("The step asks for CUDA.")
		if err != nil {
			return nil, fmt.Errorf("device = \"cuda\" can't be used: %w; set it to \"auto\" or \"cpu\" to train on the CPU", err)
		}
		return d, nil
	case "auto":
		d, err := openCUDA("device = \"auto\" takes CUDA where it can be used.")
		if err != nil {
			return cpu.New(fmt.Sprintf("device = \"auto\" takes the CPU, because %v.", err)), nil
		}
		return d, nil
	}
	return nil, fmt.Errorf("there is no device %q: take \"auto\", \"cuda\" or \"cpu\"", want)
}
